import type { Completion, CompletionContext, CompletionResult } from '@codemirror/autocomplete'
import { jsonCompletionsOf } from './complete-json.ts'
import { isNode, memberOf, type Node, textOf, whole } from './json-schema.ts'

const INDENT = /^(\s*)((?:-\s+)*)/
const KEY = /^["']?([\w.$-]+)["']?\s*:(?:\s+(.*))?$/

interface Line {
  readonly indent: number
  readonly key?: string
  readonly value?: string
  readonly isItem: boolean
}

function lineOf(text: string): Line | undefined {
  const [head = '', , dashes = ''] = INDENT.exec(text) ?? []
  const rest = text.slice(head.length)
  if (rest === '' && dashes === '') return undefined
  if (rest.startsWith('#')) return undefined
  const [, key, value] = KEY.exec(rest) ?? []
  return {
    indent: head.length,
    isItem: dashes !== '',
    ...(key === undefined ? {} : { key }),
    ...(value === undefined ? {} : { value }),
  }
}

/** The keys above a line of YAML, outermost first. `-` stands for an item of a list. */
function pathAt(lines: readonly string[], at: number, indent: number): readonly string[] {
  const path: string[] = []
  let inside = indent
  for (let row = at - 1; row >= 0 && inside > 0; row--) {
    const line = lineOf(lines[row]!)
    if (!line || line.indent >= inside) continue
    if (line.isItem) path.unshift('-')
    if (line.key !== undefined) path.unshift(line.key)
    inside = line.indent
  }
  return path
}

/** The plain values of the keys beside a line: a node says its type there. */
function siblingsAt(lines: readonly string[], at: number, indent: number): Readonly<Record<string, string>> {
  const found: Record<string, string> = {}
  const look = (rows: readonly string[]) => {
    for (const text of rows) {
      const line = lineOf(text)
      if (!line) continue
      if (line.indent < indent) return
      if (line.indent === indent && line.key !== undefined) found[line.key] = line.value?.replace(/^["']|["']$/g, '') ?? ''
    }
  }
  look(lines.slice(0, at).toReversed())
  look(lines.slice(at + 1))
  return found
}

const valueCompletions = (schemas: readonly Node[]): Completion[] =>
  schemas.flatMap(({ enum: values, const: only, type, description }) => {
    const all = Array.isArray(values) ? values : only === undefined ? (type === 'boolean' ? [true, false] : []) : [only]
    const about = textOf(description)
    return all.map(value => ({ label: String(value), ...(about === undefined ? {} : { info: about }) }))
  })

const keyCompletions = (schemas: readonly Node[], used: Readonly<Record<string, string>>): Completion[] =>
  schemas.flatMap(({ properties, required }) => {
    if (!isNode(properties)) return []
    const needed = Array.isArray(required) ? required : []
    return Object.entries(properties)
      .filter(([key]) => !Object.hasOwn(used, key))
      .map(([key, member]) => {
        const about = isNode(member) ? textOf(member.description) : undefined
        return {
          label: key,
          apply: `${key}: `,
          ...(about === undefined ? {} : { detail: about.slice(0, 60) }),
          boost: needed.includes(key) ? 10 : 0,
        }
      })
  })

const distinct = (options: readonly Completion[]): Completion[] => [
  ...new Map(options.map(option => [option.label, option])).values(),
]

/** The keys and values that a schema allows at the cursor. */
export function completionsOf(schema: unknown, language: 'yaml' | 'json', context: CompletionContext): CompletionResult | null {
  if (!isNode(schema)) return null
  return language === 'json' ? jsonCompletionsOf(schema, context) : yamlCompletionsOf(schema, context)
}

function yamlCompletionsOf(schema: Node, context: CompletionContext): CompletionResult | null {
  const { state, pos, explicit } = context
  const line = state.doc.lineAt(pos)
  const before = line.text.slice(0, pos - line.from)
  const word = /[\w.-]*$/.exec(before)![0]
  if (word === '' && !explicit && !before.endsWith(': ')) return null
  const lines = state.doc.toString().split('\n')
  const at = line.number - 1
  const indent = INDENT.exec(before)![0].length
  const values = siblingsAt(lines, at, indent)
  const [, key] = /^["']?([\w.$-]+)["']?\s*:\s/.exec(before.slice(indent)) ?? []
  const path = pathAt(lines, at, indent)
  // on the way down, nothing beside is known but at the end
  const steps = key === undefined ? path : [...path, key]
  let found: readonly Node[] = whole(schema, [schema], path.length === 0 ? values : {})
  for (const [depth, step] of steps.entries()) {
    const isLast = depth === path.length - 1
    found = whole(schema, memberOf(found, step), isLast ? values : siblingsAtDepth(lines, at, path, depth))
  }
  const options = distinct(key === undefined ? keyCompletions(found, values) : valueCompletions(found))
  return options.length === 0 ? null : { from: pos - word.length, options, validFor: /^[\w.-]*$/ }
}

/** The values of an outer place on the way to the cursor, such as the type of the node that has a body. */
function siblingsAtDepth(
  lines: readonly string[],
  at: number,
  path: readonly string[],
  depth: number
): Readonly<Record<string, string>> {
  let left = path.length - 1 - depth
  let inside = INDENT.exec(lines[at] ?? '')![0].length
  for (let row = at - 1; row >= 0; row--) {
    const line = lineOf(lines[row]!)
    if (!line || line.indent >= inside) continue
    inside = line.indent
    left -= line.isItem && line.key !== undefined ? 2 : 1
    if (left <= 0) return siblingsAt(lines, row, inside)
  }
  return {}
}
