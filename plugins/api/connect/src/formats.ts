import { isTree } from '@svc/core'
import type { ParseError } from 'jsonc-parser'

export type Format = 'json' | 'toml' | 'yaml'

/** One value to set. */
export interface Setting {
  readonly keys: readonly (string | number)[]
  readonly value: unknown
  /** Whether an earlier run wrote the other value that is there. Without it, another value is a conflict. */
  readonly isOurs?: boolean
  /** Keeps a value that is there. */
  readonly isDefault?: boolean
}

/** Reads and edits text. `edit` keeps comments and the order of what is there. */
interface FormatTools {
  /** Throws an error for invalid text. Empty text is an empty object. */
  parse(text: string): unknown
  edit(text: string, settings: readonly Setting[]): string
}

/** Each parser is loaded when a client needs it. */
export const FORMATS: Readonly<Record<Format, () => Promise<FormatTools>>> = { json: jsonTools, toml: tomlTools, yaml: yamlTools }

/** JSON with comments and trailing commas, which several clients accept. */
async function jsonTools(): Promise<FormatTools> {
  const { applyEdits, modify, parse, printParseErrorCode } = await import('jsonc-parser')
  return {
    parse(text) {
      if (text.trim() === '') return {}
      const errors: ParseError[] = []
      const tree: unknown = parse(text, errors, { allowTrailingComma: true })
      const [first] = errors
      if (first) throw new Error(`${printParseErrorCode(first.error)} at character ${first.offset}`)
      return tree
    },
    edit(text, settings) {
      const tab = /\n(\t| +)["/]/.exec(text)?.[1] ?? '  '
      const formattingOptions = { insertSpaces: tab !== '\t', tabSize: tab.length, eol: text.includes('\r\n') ? '\r\n' : '\n' }
      const start = text.trim() === '' ? '{}\n' : text
      return settings.reduce(
        (all, { keys, value }) => applyEdits(all, modify(all, [...keys], value, { formattingOptions })),
        start
      )
    },
  }
}

async function yamlTools(): Promise<FormatTools> {
  const { isMap, parseDocument } = await import('yaml')
  const read = (text: string) => {
    const document = parseDocument(text)
    if (document.errors[0]) throw document.errors[0]
    return document
  }
  return {
    parse: text => (read(text).toJS({ maxAliasCount: 100 }) as unknown) ?? {},
    edit(text, settings) {
      const document = read(text)
      if (!isMap(document.contents)) document.contents = document.createNode({}) as never
      for (const { keys, value } of settings) document.setIn(keys, document.createNode(value))
      return document.toString({ lineWidth: 0 })
    },
  }
}

/**
 * No library edits TOML and keeps its comments. Values of the first level go before the first table, tables to the end; those of an
 * earlier run are replaced. The caller compares what is parsed then, so that nothing else changes.
 */
async function tomlTools(): Promise<FormatTools> {
  const { parse, stringify } = await import('smol-toml')
  return {
    parse,
    edit(text, settings) {
      const at = /^[ \t]*\[/m.exec(text)?.index ?? text.length
      let [head, body] = [ended(text.slice(0, at)), ended(text.slice(at))]
      for (const { keys, value } of settings) {
        const key = String(keys.at(-1))
        if (isTree(value)) body = withTable(head === '', body, keys.join('.'), stringify(value))
        else head = withLine(head, key, stringify({ [key]: value }).trim())
      }
      return head + body
    },
  }
}

const ended = (text: string) => (text === '' || text.endsWith('\n') ? text : `${text}\n`)

function withLine(head: string, key: string, line: string): string {
  const old = new RegExp(`^[ \\t]*${key}[ \\t]*=.*$`, 'm')
  return old.test(head) ? head.replace(old, () => line) : `${line}\n${head}`
}

/** Replaces the table, or adds it after the others. */
function withTable(isFirst: boolean, body: string, name: string, content: string): string {
  const table = ended(`[${name}]\n${content}`)
  const lines = body.split('\n')
  const from = lines.findIndex(line => line.trim() === `[${name}]`)
  if (from < 0) return `${body}${isFirst && body === '' ? '' : '\n'}${table}`
  const next = lines.findIndex((line, at) => at > from && /^\s*\[/.test(line))
  const rest = next < 0 ? '' : `\n${lines.slice(next).join('\n')}`
  return [...lines.slice(0, from), ''].join('\n') + table + rest
}
