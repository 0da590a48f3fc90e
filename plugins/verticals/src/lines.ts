import type { Document, LineCounter, Node, Pair } from 'yaml'

/** One thing wrong with a file. */
export interface Problem {
  /** From 1. */
  readonly line: number
  /** Where in it: `teams.board.formation`; empty for the whole. */
  readonly path: string
  readonly message: string
  readonly mend?: string
}

/** A text of YAML with the line of everything in it. */
export interface Read {
  readonly value: unknown
  /** Faults of its syntax. */
  readonly faults: readonly Problem[]
  /** The line of a key or an item, or of the nearest thing around it. */
  readonly line: (keys: readonly string[]) => number
}

/** Reads YAML; what is there twice is a fault. */
export async function readYaml(text: string): Promise<Read> {
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
