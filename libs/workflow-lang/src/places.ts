import { nearest } from '@svc/core'
import type { Graph } from '@svc/core/contracts'
import { type Flow, flowOf } from './flow.ts'
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
