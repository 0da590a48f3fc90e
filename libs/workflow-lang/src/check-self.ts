import { isTree } from '@svc/core'
import type { Graph, NodeDefinition } from '@svc/core/contracts'
import { type Check, DEEPEST, graphIn, type Keys } from './check.ts'

type Named = Graph & { readonly name: string }

/** A workflow that a node names. */
interface Call {
  readonly name: string
  readonly keys: Keys
}

/** A workflow that contains itself, by whatever way, would never end. */
export function checkSelf(check: Check, definition: Named): void {
  const told = new Set<string>()
  for (const call of callsIn(check, definition, [], 0)) {
    if (told.has(call.name)) continue
    told.add(call.name)
    const way = call.name === definition.name ? [call.name] : wayBack(check, call.name, definition.name)
    if (way)
      check.notes.add(
        call.keys,
        `the workflow contains itself: ${[definition.name, ...way].join(' → ')}`,
        'a cycle of nodes, or a loop, does a thing again'
      )
  }
}

/** The workflows from one to another that it contains. */
function wayBack(check: Check, from: string, to: string): readonly string[] | undefined {
  const ways = new Map<string, readonly string[]>([[from, [from]]])
  for (const [name, way] of ways) {
    const definition = check.ground.definitionOf?.(name)
    for (const call of definition ? callsIn(check, definition, [], 0) : []) {
      if (call.name === to) return [...way, to]
      if (!ways.has(call.name)) ways.set(call.name, [...way, call.name])
    }
  }
  return undefined
}

function* callsIn(check: Check, graph: Graph, keys: Keys, depth: number): Generator<Call> {
  if (depth > DEEPEST) return
  for (const [name, node] of Object.entries(graph.nodes)) yield* callsOf(check, node, [...keys, 'nodes', name], depth)
}

function* callsOf(check: Check, node: NodeDefinition, keys: Keys, depth: number): Generator<Call> {
  const names = typeof node.type === 'string' ? (check.ground.typeOf(node.type)?.names ?? {}) : {}
  for (const [key, kind] of Object.entries(names)) {
    const value = node[key]
    if (kind === 'workflow' && typeof value === 'string' && !value.includes('${{')) yield { name: value, keys: [...keys, key] }
  }
  const bodies = { ...(node.do ? { do: node.do } : {}), ...(node.compensate ? { compensate: node.compensate } : {}) }
  for (const [key, body] of Object.entries(bodies)) yield* callsWithin(check, body, [...keys, key], depth + 1)
  for (const [name, body] of Object.entries(isTree(node.bodies) ? node.bodies : {}))
    yield* callsWithin(check, body, [...keys, 'bodies', name], depth + 1)
}

function* callsWithin(check: Check, body: unknown, keys: Keys, depth: number): Generator<Call> {
  const graph = graphIn(body)
  if (!graph || !isTree(body)) return
  if ('nodes' in body) yield* callsIn(check, graph, keys, depth)
  else if (depth <= DEEPEST) yield* callsOf(check, graph.nodes.do!, keys, depth)
}
