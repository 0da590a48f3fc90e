import { nearest } from '@svc/core'
import type { Graph, NodeDefinition } from '@svc/core/contracts'
import { startOf } from './graph.ts'
import type { ValueSchema } from './schemas.ts'
import type { Named, Names } from './typed.ts'

/** A graph in its outer graphs, with the variables of its expressions. */
export interface GraphScope {
  readonly graph: Graph
  readonly flow: Flow
  readonly vars: ReadonlyMap<string, ValueSchema>
  /** The node of the outer graph that contains it as a body. */
  readonly outer?: { readonly place: GraphScope; readonly node: string }
  /** The schema of the output of a node. */
  readonly outputOf: (node: string) => ValueSchema
  /** Names that are suggested for unknown names. */
  readonly names: readonly string[]
}

/** Maximum number of names that are compared for suggestions. */
const LOOKED_AT = 300

export const graphScope = (graph: Graph, rest: Pick<GraphScope, 'vars' | 'outer' | 'outputOf'>): GraphScope => ({
  graph,
  flow: flowOf(graph),
  names: Object.keys(graph.nodes).slice(0, LOOKED_AT),
  ...rest,
})

/** A position in a graph: at a node, or after all nodes. */
export type At = { readonly node: string } | 'afterwards'

/** The names that an expression can use at a position. */
export function namesAt(place: GraphScope, at: At, more: ReadonlyMap<string, ValueSchema> = new Map()): Names {
  const hasError = at === 'afterwards' ? place.flow.afterCatch.size > 0 : place.flow.afterCatch.has(at.node)
  const vars = new Map([...place.vars, ...(hasError ? [['error', ERROR] as const] : []), ...more])
  return {
    vars,
    node: name => nodeNamed(place, at, name),
    hintOf: name => HINTS[name] ?? `Use one of: ${[...vars.keys(), 'nodes'].join(', ')}`,
  }
}

export const ERROR = {
  type: 'object',
  properties: { code: { type: 'string' }, message: { type: 'string' }, details: {} },
  additionalProperties: false,
} as const

const HINTS: Readonly<Record<string, string>> = {
  error: 'Use error only in nodes after a `catch`',
  inputs: 'Write input',
  params: 'Write parameters',
  env: 'Use a secret or a parameter; workflows have no environment variables',
}

/** Resolves a node name. An inner node that has run hides an outer node. */
function nodeNamed(place: GraphScope, at: At, name: string): Named {
  const isOwn = Object.hasOwn(place.graph.nodes, name)
  if (isOwn && mayHaveRun(place, at, name)) return { known: place.outputOf(name) }
  const { outer } = place
  const found = outer && nodeNamed(outer.place, { node: outer.node }, name)
  if (found && (!isOwn || 'known' in found)) return found
  if (isOwn)
    return {
      message: `nodes.${name} has no output here: no path leads from "${name}" to this node`,
      hint: 'Use a node that runs before',
    }
  const near = nearest(name, namesOf(place))
  return { message: `node "${name}" does not exist`, ...(near ? { hint: `did you mean "${near}"?` } : {}) }
}

function mayHaveRun({ flow }: GraphScope, at: At, name: string): boolean {
  if (at === 'afterwards') return flow.reached.has(name)
  // an unreachable node is reported separately
  return !flow.reached.has(at.node) || flow.leads(name, at.node) !== false
}

const namesOf = ({ names, outer }: GraphScope): readonly string[] => (outer ? [...names, ...namesOf(outer.place)] : names)

/** The order of nodes. */
interface Flow {
  /** Reachable nodes. */
  readonly reached: ReadonlySet<string>
  /** Whether a path leads from a node to another; undefined if the search takes too long. */
  leads(from: string, to: string): boolean | undefined
  /** Nodes that can run after a caught failure. */
  readonly afterCatch: ReadonlySet<string>
}

/** Maximum number of search steps for a graph; most queries need none. */
const STEPS = 5_000_000

const isThere = (graph: Graph, name: unknown): name is string => typeof name === 'string' && Object.hasOwn(graph.nodes, name)

/** The unchecked targets of a node. */
const targetsOf = ({ next, branches, catch: caught }: NodeDefinition): unknown[] => [
  next,
  ...(typeof branches === 'object' && branches !== null ? Object.values(branches) : []),
  caught,
]

function flowOf(graph: Graph): Flow {
  const after = new Map<string, string[]>()
  const follow = (name: string) => {
    const there = after.get(name) ?? targetsOf(graph.nodes[name]!).filter(target => isThere(graph, target))
    after.set(name, there)
    return there
  }
  const start = startOf(graph)
  const order = isThere(graph, start) ? orderOf(start, follow) : { spans: new Map<string, Span>(), hasCycle: false }
  const catches = Object.values(graph.nodes).flatMap(({ catch: caught }) => (isThere(graph, caught) ? [caught] : []))
  return {
    reached: new Set(order.spans.keys()),
    leads: leading(order, follow),
    afterCatch: reachedFrom(catches, follow, { left: STEPS }),
  }
}

type Follow = (name: string) => readonly string[]
/** Times at which a depth-first search entered and left a node. */
interface Span {
  readonly came: number
  left: number
}
interface Order {
  readonly spans: ReadonlyMap<string, Span>
  readonly hasCycle: boolean
}

/** A depth-first search without recursion, because paths can be long. */
function orderOf(start: string, follow: Follow): Order {
  let [clock, hasCycle] = [0, false]
  const spans = new Map<string, Span>([[start, { came: clock++, left: Number.POSITIVE_INFINITY }]])
  const open = [{ name: start, next: 0 }]
  for (let top = open.at(-1); top; top = open.at(-1)) {
    const to = follow(top.name)[top.next++]
    if (to === undefined) {
      spans.get(top.name)!.left = clock++
      open.pop()
    } else if (spans.has(to)) hasCycle ||= spans.get(to)!.left === Number.POSITIVE_INFINITY
    else {
      spans.set(to, { came: clock++, left: Number.POSITIVE_INFINITY })
      open.push({ name: to, next: 0 })
    }
  }
  return { spans, hasCycle }
}

/** Answers most queries from the search order: a node found below another comes after it. Without cycles, a node that was left later does not. */
function leading({ spans, hasCycle }: Order, follow: Follow): Flow['leads'] {
  const found = new Map<string, ReadonlySet<string>>()
  const steps = { left: STEPS }
  return (from, to) => {
    const [a, b] = [spans.get(from), spans.get(to)]
    if (!a || !b) return undefined
    if (a.came < b.came && b.left < a.left) return true
    if (!hasCycle && a.left <= b.left) return false
    const there = found.get(from) ?? reachedFrom(follow(from), follow, steps)
    found.set(from, there)
    return steps.left > 0 || there.has(to) ? there.has(to) : undefined
  }
}

function reachedFrom(first: readonly string[], follow: Follow, steps: { left: number }): ReadonlySet<string> {
  const reached = new Set(first)
  for (const name of reached) {
    const next = follow(name)
    steps.left -= 1 + next.length
    if (steps.left < 0) break
    for (const item of next) reached.add(item)
  }
  return reached
}
