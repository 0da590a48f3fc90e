import { readdirSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const NOT_OURS = new Set(['node_modules', 'dist', '.git', 'coverage'])

/** One function with its length in lines of code. */
export interface FunctionFound {
  readonly file: string
  readonly line: number
  readonly length: number
}
/** What an import names: `from` as written, the names it takes (`*` for all). */
export interface ImportFound {
  readonly from: string
  readonly names: readonly string[]
  readonly line: number
}

/** All files of the project below a folder, as paths from the root. */
export function filesBelow(folder: string, matches: RegExp = /./): string[] {
  const at = join(ROOT, folder)
  const inside = readdirSync(at, { withFileTypes: true, recursive: false })
  return inside
    .filter(item => !NOT_OURS.has(item.name))
    .flatMap(item => {
      const path = join(folder, item.name)
      return item.isDirectory() ? filesBelow(path, matches) : item.isFile() && matches.test(path) ? [relative('.', path)] : []
    })
}

/** The folders below this one that hold a package. */
export const packagesBelow = (folder: string): string[] =>
  filesBelow(folder, /^[^]*\/package\.json$/)
    .map(dirname)
    .filter(item => !/\/(test|templates|fixtures)\//.test(item))

export const textOf = (file: string) => readFileSync(join(ROOT, file), 'utf8')
const lineAt = (text: string, at: number) => text.slice(0, at).split('\n').length

/** Comments as blanks, and (unless `keep`) what stands in quotes too; every character keeps its place. */
export function blanked(text: string, keep: 'strings' | 'nothing' = 'nothing'): string {
  let out = ''
  for (let at = 0; at < text.length; ) {
    const [length, kind] = tokenAt(text, at, out)
    const token = text.slice(at, at + length)
    const hidden = kind === 'comment' || (kind === 'string' && keep === 'nothing')
    out += kind === 'template' ? templateOf(token, keep) : hidden ? blank(token) : token
    at += length
  }
  return out
}

const blank = (token: string) => token.replace(/[^\n]/g, ' ')

function tokenAt(text: string, at: number, before: string): [length: number, kind: 'comment' | 'string' | 'template' | 'code'] {
  const rest = text.slice(at, at + 2)
  if (rest === '//' || (at === 0 && rest === '#!')) return [lengthUntil(text, at, /\n|$/g), 'comment']
  if (rest === '/*') return [lengthUntil(text, at + 2, /\*\/|$/g) + 4, 'comment']
  if (rest[0] === "'" || rest[0] === '"') return [quoted(text, at, rest[0]), 'string']
  if (rest[0] === '`') return [templateLength(text, at), 'template']
  if (rest[0] === '/' && /(^|[(,=:[!&|?{};+\-*%~^<>]|\breturn|\bcase|\btypeof)\s*$/.test(before))
    return [regexLength(text, at), 'string']
  return [1, 'code']
}

function lengthUntil(text: string, at: number, end: RegExp): number {
  end.lastIndex = at
  return (end.exec(text)?.index ?? text.length) - at
}

function quoted(text: string, at: number, quote: string): number {
  let to = at + 1
  while (to < text.length && text[to] !== quote && text[to] !== '\n') to += text[to] === '\\' ? 2 : 1
  return to + 1 - at
}

function regexLength(text: string, at: number): number {
  let inClass = false
  let to = at + 1
  for (; to < text.length && text[to] !== '\n' && (inClass || text[to] !== '/'); to++) {
    if (text[to] === '\\') to++
    else if (text[to] === '[') inClass = true
    else if (text[to] === ']') inClass = false
  }
  return to + 1 - at
}

function templateLength(text: string, at: number): number {
  let to = at + 1
  while (to < text.length && text[to] !== '`') {
    if (text[to] === '\\') to += 2
    else if (text.startsWith('${', to)) to += holeLength(text, to)
    else to++
  }
  return to + 1 - at
}

/** The length of `${…}`, with what is nested in it. */
function holeLength(text: string, at: number): number {
  let depth = 1
  let to = at + 2
  while (to < text.length && depth > 0) {
    const [length] = tokenAt(text, to, text.slice(at, to))
    if (length === 1) depth += text[to] === '{' ? 1 : text[to] === '}' ? -1 : 0
    to += length
  }
  return to - at
}

/** A template with its text blank and the code in its holes as it is. */
function templateOf(token: string, keep: 'strings' | 'nothing'): string {
  let out = ''
  for (let at = 0; at < token.length; ) {
    if (token.startsWith('${', at)) {
      const length = holeLength(token, at)
      out += `  ${blanked(token.slice(at + 2, at + length - 1), keep)} `
      at += length
    } else {
      out += keep === 'strings' || token[at] === '\n' ? token[at] : ' '
      at++
    }
  }
  return out
}

const IMPORT = /(?<![\w$.])(?:import|export)\b(?:\s+type\b)?([^'"`;()]*?)(?:\bfrom\s*)?(?:\(\s*)?(['"])([^'"\n]+)\2/g

/** Everything a file imports: static, exported on, dynamic, and by type. */
export function importsOf(file: string): ImportFound[] {
  const text = blanked(textOf(file), 'strings')
  return [...text.matchAll(IMPORT)]
    .filter(match => /\bfrom\s*['"]|^import\s*\(?\s*['"]/.test(match[0]))
    .map(match => ({ from: match[3]!, names: namesIn(match[1]!), line: lineAt(text, match.index) }))
}

function namesIn(clause: string): string[] {
  const list = /\{([^}]*)\}/.exec(clause)?.[1]
  if (list === undefined) return clause.trim() === '' || clause.includes('*') ? ['*'] : ['default']
  return list
    .split(',')
    .map(
      name =>
        name
          .replace(/\btype\b/, '')
          .trim()
          .split(/\s+as\s+/)[0]!
    )
    .filter(Boolean)
}

const CONTROL = new Set(['if', 'for', 'while', 'switch', 'catch', 'with', 'await'])

/** The functions of a file that have a block, and those of one expression that have a name. */
export function functionsOf(file: string): FunctionFound[] {
  const code = blanked(stripTypeScriptTypes(textOf(file), { mode: 'strip' }))
  const spans = [...blockFunctions(code), ...expressionFunctions(code)]
  const lines = code.split('\n')
  return spans.map(([from, to]) => {
    const [first, last] = [lineAt(code, from), lineAt(code, to)]
    return { file, line: first, length: lines.slice(first - 1, last).filter(line => line.trim() !== '').length }
  })
}

function* blockFunctions(code: string): Generator<[from: number, to: number]> {
  for (const { index } of code.matchAll(/\{/g)) {
    const head = code.slice(0, index).trimEnd()
    const from = head.endsWith('=>')
      ? parametersBefore(head.slice(0, -2).trimEnd())
      : head.endsWith(')')
        ? nameBefore(head)
        : undefined
    if (from !== undefined) yield [from, closing(code, index)]
  }
}

function parametersBefore(head: string): number {
  return head.endsWith(')') ? opening(head) : head.length - (/[\w$]+$/.exec(head)?.[0].length ?? 0)
}

function nameBefore(head: string): number | undefined {
  const before = head.slice(0, opening(head)).trimEnd()
  const name = /[\w$#\]]+$/.exec(before)?.[0]
  return name === undefined || CONTROL.has(name) ? undefined : before.length - name.length
}

const NAMED_ARROW =
  /(?:\b(?:const|let)\s+[\w$]+\s*=|[\w$]+\s*:|=>)\s*(?:async\s*)?(?:\((?:[^()]|\([^()]*\))*\)|[\w$]+)\s*=>\s*(?![\s{])/g

function* expressionFunctions(code: string): Generator<[from: number, to: number]> {
  for (const match of code.matchAll(NAMED_ARROW))
    if (!match[0].startsWith('=>')) yield [match.index, expressionEnd(code, match.index + match[0].length)]
}

/** Where an expression ends: at a comma, a closing bracket or a line's end that nothing carries on. */
function expressionEnd(code: string, at: number): number {
  let depth = 0
  for (let to = at; to < code.length; to++) {
    const char = code[to]!
    if ('([{'.includes(char)) depth++
    else if (')]}'.includes(char) && depth-- === 0) return to - 1
    else if (depth === 0 && (char === ',' || (char === '\n' && !carriesOn(code, to)))) return to - 1
  }
  return code.length - 1
}

const carriesOn = (code: string, at: number) =>
  /^\s*(?:[.?:&|+*<>=-]|instanceof\b|in\b)/.test(code.slice(at)) || /(?:[=(&|+?:<>*,-]|=>)\s*$/.test(code.slice(0, at))

function opening(head: string): number {
  let depth = 0
  for (let at = head.length - 1; at >= 0; at--) {
    depth += head[at] === ')' ? 1 : head[at] === '(' ? -1 : 0
    if (depth === 0) return at
  }
  return 0
}

function closing(code: string, at: number): number {
  let depth = 0
  for (let to = at; to < code.length; to++) {
    depth += code[to] === '{' ? 1 : code[to] === '}' ? -1 : 0
    if (depth === 0) return to
  }
  return code.length - 1
}

export const median = (numbers: readonly number[]) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0
