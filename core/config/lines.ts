import { type Document, isMap, isPair, isScalar, LineCounter, type Node, parseDocument, visit } from 'yaml'

/** A file of YAML or JSON with the line of every value and key. */
export interface Lines {
  readonly value: unknown
  /** Faults of the syntax, with their lines. */
  readonly errors: { message: string; line: number }[]
  /** The line of the value at `keys`, or of the nearest thing around it. */
  line(keys: readonly string[]): number | undefined
}

/** Reads YAML (a JSON file is YAML) and keeps the lines. Duplicate keys are errors. */
export function readLines(text: string): Lines {
  const counter = new LineCounter()
  const document = parseDocument(text, { lineCounter: counter })
  const errors = document.errors.map(e => ({ message: e.message.split(' at line')[0]!, line: e.linePos?.[0].line ?? 1 }))
  visit(document, {
    Alias(_key, node) {
      const line = counter.linePos(node.range?.[0] ?? 0).line
      if (!node.resolve(document))
        errors.push({ message: `*${node.source} is an alias of nothing: put text that begins with * into quotes`, line })
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

/** The line of a key in a text of JSON or YAML. */
export const lineOf = (text: string, keys: readonly string[]) => readLines(text).line(keys)

function offsetOf(document: Document, keys: readonly string[]): number | undefined {
  const parent = document.getIn(keys.slice(0, -1), true)
  const last = keys.at(-1)!
  const pair = isMap(parent)
    ? parent.items.find(item => isPair(item) && isScalar(item.key) && String(item.key.value) === last)
    : undefined
  const node = (pair?.key ??
    document.getIn(
      keys.map(key => (/^\d+$/.test(key) ? Number(key) : key)),
      true
    )) as Node | undefined
  return node?.range?.[0]
}
