import type { Body, Graph, NodeDefinition } from '@svc/core/contracts'

/** The target that ends a path. */
export const END = 'end'
/** The node type that ends a run and starts the next one. */
export const CONTINUE = 'continue_as_new'
/** The name of the node in a body that is a single node. */
export const ONLY = 'do'

/** Keys of every node. Other keys are settings of its type. */
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

/** A body as a graph. A single node becomes a graph with this node. */
export const graphOf = (body: Body): Graph => (isGraph(body) ? body : { nodes: { [ONLY]: body } })

export const startOf = (graph: Graph): string => graph.start ?? Object.keys(graph.nodes)[0] ?? END

/** The bodies of a node, by name. */
export const bodiesOf = (node: NodeDefinition): Readonly<Record<string, Body>> => ({
  ...(node.do ? { do: node.do } : {}),
  ...node.bodies,
})

/** The settings of a node that belong to its type. */
export const settingsOf = (node: NodeDefinition): Record<string, unknown> =>
  Object.fromEntries(Object.entries(node).filter(([key]) => !NODE_KEYS.has(key)))

/** All nodes of a graph and of nested graphs, with their keys. */
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

/** The bodies of a node, with their keys. */
const bodyEntries = (node: NodeDefinition): (readonly [readonly string[], Body])[] => [
  ...(node.do ? [[['do'], node.do] as const] : []),
  ...Object.entries(node.bodies ?? {}).map(([name, body]) => [['bodies', name], body] as const),
  ...(node.compensate ? [[['compensate'], node.compensate] as const] : []),
]

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** The JSON Schema pattern of durations. */
export const DURATION_PATTERN = String.raw`^\d+(\.\d+)?(ms|s|m|h|d)$`
const DURATION = new RegExp(DURATION_PATTERN)

/** Parses a duration: `250ms`, `1.5s`, `5m`, `2h`, `7d`. Returns milliseconds, or undefined if it is invalid. */
export function durationMs(text: string): number | undefined {
  const [, , unit] = DURATION.exec(text) ?? []
  return unit === undefined ? undefined : Number.parseFloat(text) * UNITS[unit]!
}
