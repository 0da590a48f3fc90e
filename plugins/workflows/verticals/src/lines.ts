import type { Document, LineCounter, Node, Pair } from 'yaml'

/** One thing wrong with a file. */
export interface Problem {
  /** From 1. */
  readonly line: number
  /** Where in it: `teams.board.formation`; empty for the whole. */
  readonly path: string
  readonly message: string
  readonly hint?: string
}

/** A text of YAML or JSON with the line of everything in it. */
export interface Read {
  readonly value: unknown
  /** Faults of its syntax. */
  readonly faults: readonly Problem[]
  /** The line of a key or an item, or of the nearest thing around it. */
  readonly line: (keys: readonly string[]) => number | Promise<number>
}

/** Reads JSON, in a hundredth of the time that YAML takes, or YAML; its lines are looked for when they are asked. */
export async function readText(text: string): Promise<Read> {
  return asJson(text) ?? readYaml(text)
}

function asJson(text: string): Read | undefined {
  if (!text.startsWith('{')) return undefined
  try {
    return { value: JSON.parse(text) as unknown, faults: [], line: async keys => (await readYaml(text)).line(keys) }
  } catch {
    // what is wrong with it is told with its line
    return undefined
  }
}

/** What is there twice is a fault. */
async function readYaml(text: string): Promise<Read> {
  const { isMap, isScalar, LineCounter, parseDocument } = await import('yaml')
  const counter = new LineCounter()
  const document = parseDocument(text, { lineCounter: counter })
  // what follows the first fault is mostly its consequence
  const faults = document.errors.slice(0, 1).map(one => ({
    line: one.linePos?.[0].line ?? 1,
    path: '',
    message: one.message.split(' at line')[0]!,
  }))
  const keyOf = (keys: readonly string[]) => {
    const parent = document.getIn(keys.slice(0, -1).map(indexed), true)
    const pair = isMap(parent)
      ? parent.items.find(item => isScalar(item.key) && String(item.key.value) === keys.at(-1))
      : undefined
    return (pair as Pair<Node> | undefined)?.key
  }
  return { ...valueOf(document, faults), line: keys => lineOf(document, counter, keyOf, keys) }
}

/** Aliases of nothing, and those that would grow without end, are told as the parser says them. */
function valueOf(document: Document, faults: readonly Problem[]): Pick<Read, 'value' | 'faults'> {
  if (faults.length > 0) return { value: undefined, faults }
  try {
    return { value: document.toJS() as unknown, faults }
  } catch (error) {
    return { value: undefined, faults: [{ line: 1, path: '', message: (error as Error).message }] }
  }
}

const indexed = (key: string) => (/^\d+$/.test(key) ? Number(key) : key)

function lineOf(
  document: Document,
  counter: LineCounter,
  keyOf: (keys: readonly string[]) => Node | undefined,
  keys: readonly string[]
) {
  for (let depth = keys.length; depth > 0; depth--) {
    const at = keys.slice(0, depth)
    const node = keyOf(at) ?? (document.getIn(at.map(indexed), true) as Node | undefined)
    if (node?.range) return counter.linePos(node.range[0]).line
  }
  return 1
}
