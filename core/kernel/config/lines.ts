import { createRequire } from 'node:module'
import type * as Yaml from 'yaml'

/** Parsed YAML or JSON with the line of every value and key. */
export interface ParsedText {
  readonly value: unknown
  /** Syntax errors with their lines. */
  readonly errors: { message: string; line: number }[]
  /** The line of the value at `keys`, or of the nearest value around it. */
  line(keys: readonly string[]): number | undefined
}

/** Parses YAML (a JSON file is YAML) and keeps the lines. Duplicate keys are errors. */
export function parseText(text: string): ParsedText {
  const quick = readJson(text)
  let read: ParsedText | undefined
  return quick ? { ...quick, errors: [], line: keys => (read ??= readYaml(text)).line(keys) } : readYaml(text)
}

/** Returns the value of JSON without duplicate keys. So a start with a valid JSON file does not load the YAML parser. */
function readJson(text: string): { value: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return keysIn(value) === [...text.matchAll(STRING)].filter(([, colon]) => colon).length ? { value } : undefined
  } catch {
    return undefined
  }
}

/** In JSON, a string that a colon follows is a key. */
const STRING = /"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?/g

function keysIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  const members: unknown[] = Object.values(value)
  return members.reduce<number>((sum, member) => sum + keysIn(member), Array.isArray(value) ? 0 : members.length)
}

const yaml = () => createRequire(import.meta.url)('yaml') as typeof Yaml

function readYaml(text: string): ParsedText {
  const { LineCounter, parseDocument, visit } = yaml()
  const counter = new LineCounter()
  const document = parseDocument(text, { lineCounter: counter })
  const errors = document.errors.map(e => ({ message: e.message.split(' at line')[0]!, line: e.linePos?.[0].line ?? 1 }))
  visit(document, {
    Alias(_key, node) {
      const line = counter.linePos(node.range?.[0] ?? 0).line
      if (!node.resolve(document))
        errors.push({ message: `the alias *${node.source} has no anchor: quote text that begins with *`, line })
    },
  })
  return {
    value: errors.length > 0 ? undefined : (document.toJS() as unknown),
    errors,
    line(keys) {
      for (let depth = keys.length; depth > 0; depth--) {
        const offset = offsetOf(document, keys.slice(0, depth))
        if (offset !== undefined) return counter.linePos(offset).line
      }
      return undefined
    },
  }
}

/** The line of a key in JSON or YAML text. */
export const lineOf = (text: string, keys: readonly string[]) => parseText(text).line(keys)

function offsetOf(document: Yaml.Document, keys: readonly string[]): number | undefined {
  const { isMap, isPair, isScalar } = yaml()
  const parent = document.getIn(keys.slice(0, -1), true)
  const last = keys.at(-1)!
  const pair = isMap(parent)
    ? parent.items.find(item => isPair(item) && isScalar(item.key) && String(item.key.value) === last)
    : undefined
  const node = (pair?.key ??
    document.getIn(
      keys.map(key => (/^\d+$/.test(key) ? Number(key) : key)),
      true
    )) as Yaml.Node | undefined
  return node?.range?.[0]
}
