import type { Body, Json, NodeDefinition } from '@svc/core/contracts'

/** A number in [0, 1), the same for the same seed (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

type Nodes = Record<string, NodeDefinition>
type Ended = { readonly output: Json } | { readonly failed: true }

/** What a graph comes to, and how often each of its `act` steps is called when nothing beside it fails. */
export interface Expected {
  readonly ended: Ended
  readonly calls: ReadonlyMap<string, number>
}

/** A graph by chance: acts that fail so many times, with retries and catches; branches, loops, lists, things at once. */
export function randomGraph(random: () => number, depth = 2): { readonly nodes: Nodes } {
  const int = (below: number) => Math.floor(random() * below)
  const names = Array.from({ length: 2 + int(3) }, (_, at) => `n${at}`)
  const later = (at: number) => (at + 1 < names.length ? names[at + 1 + int(names.length - at - 1)]! : 'end')
  const node = (at: number): NodeDefinition => {
    const next = { next: names[at + 1] ?? 'end' }
    const kind = depth > 0 ? int(7) : int(3)
    if (kind === 3)
      return { type: 'condition', if: random() < 0.5 ? 'true' : 'false', branches: { true: later(at), false: later(at) } }
    if (kind === 4)
      return {
        type: 'parallel',
        bodies: { a: randomGraph(random, depth - 1), b: randomGraph(random, depth - 1) },
        ...caught(at),
        ...next,
      }
    if (kind === 5)
      return { type: 'map', over: '[1, 2, 3]', width: 1 + int(3), do: randomGraph(random, depth - 1), ...caught(at), ...next }
    if (kind === 6) return { type: 'loop', until: `last >= ${int(3)}`, do: { type: 'act', value: '${{ index }}' }, ...next }
    return {
      type: 'act',
      value: int(100),
      fails: random() < 0.3 ? 1 + int(2) : 0,
      ...(random() < 0.5 ? { retry: { attempts: 2, delay: '1ms' } } : {}),
      ...caught(at),
      ...next,
    }
  }
  const caught = (at: number) => (random() < 0.4 && later(at) !== 'end' ? { catch: names.at(-1)! } : {})
  const nodes: Nodes = {}
  for (const [at, name] of names.entries()) nodes[name] = node(at)
  return { nodes: reachable(nodes, names[0]!) }
}

/** What no way leads to is a fault of a definition. */
function reachable(nodes: Nodes, start: string): Nodes {
  const found = new Set([start])
  for (const name of found)
    for (const next of [nodes[name]!.next, nodes[name]!.catch, ...Object.values(nodes[name]!.branches ?? {})])
      if (next !== undefined && next !== 'end') found.add(next)
  return Object.fromEntries(Object.entries(nodes).filter(([name]) => found.has(name)))
}

/** What a graph comes to: one thing after the other, in a few lines. */
export function expectedOf(graph: { readonly nodes: Nodes }): Expected {
  const calls = new Map<string, number>()
  return { ended: walked(graph.nodes, '', {}, calls), calls }
}

function walked(nodes: Nodes, path: string, vars: { readonly index?: number }, calls: Map<string, number>): Ended {
  let output: Json = null
  for (let name = Object.keys(nodes)[0]!; name !== 'end'; ) {
    const node = nodes[name]!
    const ended = done(node, path + name, vars, calls)
    if ('failed' in ended) {
      if (node.catch === undefined) return ended
      name = node.catch
      continue
    }
    output = ended.output
    name = node.branches ? node.branches[output === true ? 'true' : 'false']! : node.next!
  }
  return { output }
}

const within = (body: Body, path: string, vars: { readonly index?: number }, calls: Map<string, number>): Ended =>
  walked('nodes' in body ? (body.nodes as Nodes) : { do: { next: 'end', ...body } as NodeDefinition }, path, vars, calls)

function done(node: NodeDefinition, step: string, vars: { readonly index?: number }, calls: Map<string, number>): Ended {
  if (node.type === 'condition') return { output: node.if === 'true' }
  if (node.type === 'act') return acted(node, step, vars, calls)
  if (node.type === 'loop') {
    const most = Number(String(node.until).split('>= ')[1])
    for (let index = 0; index <= most; index++) within(node.do!, `${step}/${index}/`, { index }, calls)
    return { output: { last: most, rounds: most + 1, done: true } }
  }
  const bodies = node.type === 'map' ? [0, 1, 2].map(at => [String(at), node.do!] as const) : Object.entries(node.bodies!)
  const ended = bodies.map(([key, body]) => [key, within(body, `${step}/${key}/`, vars, calls)] as const)
  if (ended.some(([, item]) => 'failed' in item)) return { failed: true }
  const outputs = ended.map(([key, item]) => [key, (item as { output: Json }).output] as const)
  return { output: node.type === 'map' ? outputs.map(([, output]) => output) : Object.fromEntries(outputs) }
}

function acted(node: NodeDefinition, step: string, vars: { readonly index?: number }, calls: Map<string, number>): Ended {
  const [fails, attempts] = [(node.fails as number | undefined) ?? 0, node.retry?.attempts ?? 1]
  calls.set(step, Math.min(fails + 1, attempts))
  return fails >= attempts ? { failed: true } : { output: typeof node.value === 'number' ? node.value : vars.index! }
}
