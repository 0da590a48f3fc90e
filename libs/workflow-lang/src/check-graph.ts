import { isTree } from '@svc/core'
import type { Graph, NodeDefinition, WorkflowNode } from '@svc/core/contracts'
import { type Check, DEEPEST, graphIn, type Keys, outputOf } from './check.ts'
import { checkNode, type Standing } from './check-node.ts'
import { checkTemplates } from './check-values.ts'
import { checkGraphWays, checkWays } from './check-ways.ts'
import { ERROR, namesAt, type Place, placeOf } from './places.ts'
import type { Known } from './schemas.ts'
import { GRAPH_SHAPE } from './shape.ts'

type Vars = ReadonlyMap<string, Known>

/** A graph within: where it stands, and what its expressions have from there. */
interface Within {
  readonly keys: Keys
  readonly vars: Vars
  readonly outer?: Place['outer']
  readonly depth: number
  /** A node that stands for its graph: it has no name of its own. */
  readonly isNode?: boolean
}

/** A graph with all that is in it. */
export function checkGraph(check: Check, graph: Graph, within: Within): void {
  const { keys, vars, outer, depth } = within
  if (depth > DEEPEST) return check.notes.add(keys, `has more than ${DEEPEST} bodies within each other`)
  const outputs = (name: string) => outputOf(check.ground, graph.nodes[name]?.type)
  const place = placeOf(graph, { vars, outputOf: outputs, ...(outer ? { outer } : {}) })
  if (!within.isNode) checkGraphWays(check, place, keys)
  for (const [name, node] of Object.entries(graph.nodes)) {
    const at = within.isNode ? keys : [...keys, 'nodes', name]
    checkInGraph(check, { place, name, node, keys: at }, depth)
  }
  if (graph.result !== undefined && !within.isNode)
    checkTemplates(check, graph.result, [...keys, 'result'], namesAt(place, 'afterwards'))
}

function checkInGraph(check: Check, standing: Standing, depth: number): void {
  const { node } = standing
  const type = typeof node.type === 'string' ? check.ground.typeOf(node.type) : undefined
  checkNode(check, standing)
  checkWays(check, type, standing)
  if (type) checkHasBodies(check, type, standing)
  const vars = new Map([...standing.place.vars, ...Object.entries(type?.vars ?? {})])
  const outer = { place: standing.place, node: standing.name }
  for (const [key, body] of bodiesIn(node))
    checkBody(check, body, { keys: [...standing.keys, ...key], vars, outer, depth: depth + 1 })
  if (node.compensate !== undefined) checkCompensation(check, standing, depth)
}

const bodiesIn = (node: NodeDefinition): (readonly [Keys, unknown])[] => [
  ...(node.do === undefined ? [] : [[['do'], node.do] as const]),
  ...(isTree(node.bodies) ? Object.entries(node.bodies).map(([name, body]) => [['bodies', name], body] as const) : []),
]

/** It runs after all of its graph: every output of it may be there. */
function checkCompensation(check: Check, { place, node, keys }: Standing, depth: number): void {
  const vars = new Map<string, Known>([...place.vars, ['output', outputOf(check.ground, node.type)], ['error', ERROR]])
  const everything: Place = { ...place, flow: { ...place.flow, leads: () => undefined } }
  checkBody(check, node.compensate, {
    keys: [...keys, 'compensate'],
    vars,
    outer: { place: everything, node: '' },
    depth: depth + 1,
  })
}

function checkBody(check: Check, body: unknown, within: Within): void {
  // what is no object is told by the shape of its node
  if (!isTree(body)) return
  const isNode = !('nodes' in body)
  if (!isNode)
    for (const { keys, message, keyword, nearest } of GRAPH_SHAPE.check(shallow(body))) {
      const hint = keyword === 'unknown' && nearest ? { hint: `did you mean "${nearest}"?` } : {}
      check.notes.note({ keys: [...within.keys, ...keys], message, ...hint })
    }
  const graph = graphIn(body)
  if (graph) checkGraph(check, graph, { ...within, isNode })
}

/** So that defaults are not written into what was given. */
const shallow = (body: object) => ({ ...body })

const NAME = /^[A-Za-z0-9_-]{1,64}$/

function checkHasBodies({ notes }: Check, { body }: WorkflowNode, { node, keys }: Standing): void {
  if (body === 'do' && node.do === undefined)
    notes.add([...keys, 'do'], `is missing: a ${node.type} has a body`, 'write do: with a node, or with a graph')
  if (body === 'bodies' && node.bodies === undefined)
    notes.add([...keys, 'bodies'], `is missing: a ${node.type} has bodies`, 'write bodies: with a node or a graph by each name')
  if (body !== 'do' && node.do !== undefined)
    notes.add([...keys, 'do'], `a ${node.type} has no such body`, body === 'bodies' ? 'write bodies: { <name>: … }' : undefined)
  if (body !== 'bodies' && node.bodies !== undefined)
    notes.add([...keys, 'bodies'], `a ${node.type} has no bodies`, body === 'do' ? 'write do' : undefined)
  for (const name of isTree(node.bodies) ? Object.keys(node.bodies) : [])
    if (!NAME.test(name))
      notes.add([...keys, 'bodies', name], `"${name}" is no name for a body`, 'write letters, digits, _ and -')
}
