import type { Body, Graph, NodeDefinition } from '@svc/core/contracts'

/** Where a way ends. */
export const END = 'end'
/** The name of the only node of a body that is written as a node. */
export const ONLY = 'do'

/** The keys that every node may have; all others are settings of its type. */
export const NODE_KEYS: ReadonlySet<string> = new Set([
  'type',
  'description',
  'next',
  'branches',
  'retry',
  'timeout',
  'catch',
  'compensate',
  'repeatable',
  'max_visits',
  'do',
  'bodies',
])

export const isGraph = (body: Body): body is Graph => 'nodes' in body && typeof body.nodes === 'object'

/** A body as a graph: a node alone is the graph of it. */
export const graphOf = (body: Body): Graph => (isGraph(body) ? body : { nodes: { [ONLY]: body } })

export const startOf = (graph: Graph): string => graph.start ?? Object.keys(graph.nodes)[0] ?? END

/** The bodies of a node, by name. */
export const bodiesOf = (node: NodeDefinition): Readonly<Record<string, Body>> => ({
  ...(node.do ? { do: node.do } : {}),
  ...node.bodies,
})

/** The settings of a node that are its type's own. */
export const settingsOf = (node: NodeDefinition): Record<string, unknown> =>
  Object.fromEntries(Object.entries(node).filter(([key]) => !NODE_KEYS.has(key)))

/** Every node of a graph and of all within, with the keys that lead to it. */
export function* nodesWithin(
  graph: Graph,
  keys: readonly string[] = []
): Generator<{ keys: readonly string[]; name: string; node: NodeDefinition; graph: Graph }> {
  for (const [name, node] of Object.entries(graph.nodes)) {
    const at = [...keys, 'nodes', name]
    yield { keys: at, name, node, graph }
    for (const [key, body] of bodyEntries(node)) yield* within(body, [...at, ...key])
  }
}

function* within(body: Body, keys: readonly string[]): ReturnType<typeof nodesWithin> {
  if (isGraph(body)) return yield* nodesWithin(body, keys)
  yield { keys, name: ONLY, node: body, graph: graphOf(body) }
  for (const [key, inner] of bodyEntries(body)) yield* within(inner, [...keys, ...key])
}

/** All that a node holds inside, by the keys that lead there from it. */
const bodyEntries = (node: NodeDefinition): (readonly [readonly string[], Body])[] => [
  ...(node.do ? [[['do'], node.do] as const] : []),
  ...Object.entries(node.bodies ?? {}).map(([name, body]) => [['bodies', name], body] as const),
  ...(node.compensate ? [[['compensate'], node.compensate] as const] : []),
]

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** How lengths of time are written, as a pattern of JSON Schema. */
export const DURATION_PATTERN = String.raw`^\d+(\.\d+)?(ms|s|m|h|d)$`
const DURATION = new RegExp(DURATION_PATTERN)

/** Milliseconds of a length of time: `250ms`, `1.5s`, `5m`, `2h`, `7d`; undefined where it is none. */
export function durationMs(text: string): number | undefined {
  const [, , unit] = DURATION.exec(text) ?? []
  return unit === undefined ? undefined : Number.parseFloat(text) * UNITS[unit]!
}
