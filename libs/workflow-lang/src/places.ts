import { nearest } from '@svc/core'
import type { Graph, NodeDefinition } from '@svc/core/contracts'
import { startOf } from './graph.ts'
import type { Known } from './schemas.ts'
import type { Named, Names } from './typed.ts'

/** A graph within others, and what its expressions can name. */
export interface Place {
  readonly graph: Graph
  readonly flow: Flow
  readonly vars: ReadonlyMap<string, Known>
  /** The node of the graph round it that it is a body of. */
  readonly outer?: { readonly place: Place; readonly node: string }
  /** What is known of the output of a node of it. */
  readonly outputOf: (node: string) => Known
  /** Names that one which is not there may be meant for. */
  readonly names: readonly string[]
}

/** So many names are looked at for the nearest one. */
const LOOKED_AT = 300

export const placeOf = (graph: Graph, rest: Pick<Place, 'vars' | 'outer' | 'outputOf'>): Place => ({
  graph,
  flow: flowOf(graph),
  names: Object.keys(graph.nodes).slice(0, LOOKED_AT),
  ...rest,
})

/** Where in a graph: at a node, or after all of them. */
export type At = { readonly node: string } | 'afterwards'

/** What an expression can name there. */
export function namesAt(place: Place, at: At, more: ReadonlyMap<string, Known> = new Map()): Names {
  const hasError = at === 'afterwards' ? place.flow.afterCatch.size > 0 : place.flow.afterCatch.has(at.node)
  const vars = new Map([...place.vars, ...(hasError ? [['error', ERROR] as const] : []), ...more])
  return {
    vars,
    node: name => nodeNamed(place, at, name),
    hintOf: name => HINTS[name] ?? `there are ${[...vars.keys(), 'nodes'].join(', ')}`,
  }
}

export const ERROR = {
  type: 'object',
  properties: { code: { type: 'string' }, message: { type: 'string' }, details: {} },
  additionalProperties: false,
} as const

const HINTS: Readonly<Record<string, string>> = {
  error: 'only nodes that come after a `catch` have it',
  inputs: 'the input is called input',
  params: 'they are called parameters',
  env: 'there are no environment variables: name a secret, or a parameter',
}

/** Of two nodes with one name the inner one is meant, once it has run. */
function nodeNamed(place: Place, at: At, name: string): Named {
  const isOwn = Object.hasOwn(place.graph.nodes, name)
  if (isOwn && mayHaveRun(place, at, name)) return { known: place.outputOf(name) }
  const { outer } = place
  const found = outer && nodeNamed(outer.place, { node: outer.node }, name)
  if (found && (!isOwn || 'known' in found)) return found
  if (isOwn)
    return {
      message: `nodes.${name} has no output yet: no way leads from "${name}" to here`,
      hint: 'name a node that comes before',
    }
  const near = nearest(name, namesOf(place))
  return { message: `there is no node "${name}"`, ...(near ? { hint: `did you mean "${near}"?` } : {}) }
}

function mayHaveRun({ flow }: Place, at: At, name: string): boolean {
  if (at === 'afterwards') return flow.reached.has(name)
  // what is not reached is a problem of its own
  return !flow.reached.has(at.node) || flow.leads(name, at.node) !== false
}

const namesOf = ({ names, outer }: Place): readonly string[] => (outer ? [...names, ...namesOf(outer.place)] : names)

/** Which node can come after which. */
interface Flow {
  /** Nodes that some way leads to. */
  readonly reached: ReadonlySet<string>
  /** Whether a way leads from one node to another; undefined where finding out would take too long. */
  leads(from: string, to: string): boolean | undefined
  /** Nodes that may run after one that failed and was caught. */
  readonly afterCatch: ReadonlySet<string>
}

/** Steps that all questions to a graph may take together; most are answered without any. */
const STEPS = 5_000_000

const isThere = (graph: Graph, name: unknown): name is string => typeof name === 'string' && Object.hasOwn(graph.nodes, name)

/** Where the ways of a node lead, as it is written. */
const targetsOf = ({ next, branches, catch: caught }: NodeDefinition): unknown[] => [
  next,
  ...(typeof branches === 'object' && branches !== null ? Object.values(branches) : []),
  caught,
]

function flowOf(graph: Graph): Flow {
  const after = new Map<string, string[]>()
  const follow = (name: string) => {
    const there = after.get(name) ?? targetsOf(graph.nodes[name]!).filter(one => isThere(graph, one))
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
/** When a search in depth came to a node, and when it left it. */
interface Span {
  readonly came: number
  left: number
}
interface Order {
  readonly spans: ReadonlyMap<string, Span>
  readonly hasCycle: boolean
}

/** A search in depth, without recursion: a way may have any length. */
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

/** Most questions are answered by the order of the search: what was found within a node comes after it, and where nothing goes back, what was left later does not. */
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
    for (const one of next) reached.add(one)
  }
  return reached
}
