import { isTree, nearest } from '@svc/core'
import type { Graph, NodeDefinition, WorkflowNode } from '@svc/core/contracts'
import { checkNode, checkTemplates, type PlacedNode } from './check-node.ts'
import { type DefinitionCheck, DEEPEST, graphIn, type KeyPath, outputOf } from './check.ts'
import { CONTINUE, END } from './graph.ts'
import { ERROR, namesAt, type GraphScope, graphScope } from './places.ts'
import type { ValueSchema } from './schemas.ts'
import { GRAPH_SHAPE, NODE_NAME } from './shape.ts'
import { holdsExpression } from './template.ts'

type Vars = ReadonlyMap<string, ValueSchema>

/** A nested graph: its position, and the variables of its expressions. */
interface Within {
  readonly keys: KeyPath
  readonly vars: Vars
  readonly outer?: GraphScope['outer']
  readonly depth: number
  /** Whether the graph is a single node without a name. */
  readonly isNode?: boolean
}

/** Checks a graph recursively. */
export function checkGraph(check: DefinitionCheck, graph: Graph, within: Within): void {
  const { keys, vars, outer, depth } = within
  if (depth > DEEPEST) return check.notes.add(keys, `has more than ${DEEPEST} nested bodies`)
  const outputs = (name: string) => outputOf(check.context, graph.nodes[name]?.type)
  const place = graphScope(graph, { vars, outputOf: outputs, ...(outer ? { outer } : {}) })
  if (!within.isNode) checkGraphWays(check, place, keys)
  for (const [name, node] of Object.entries(graph.nodes)) {
    const at = within.isNode ? keys : [...keys, 'nodes', name]
    checkInGraph(check, { place, name, node, keys: at }, depth)
  }
  if (graph.result !== undefined && !within.isNode)
    checkTemplates(check, graph.result, [...keys, 'result'], namesAt(place, 'afterwards'))
}

function checkInGraph(check: DefinitionCheck, placed: PlacedNode, depth: number): void {
  const { node } = placed
  const type = typeof node.type === 'string' ? check.context.typeOf(node.type) : undefined
  checkNode(check, placed)
  checkWays(check, type, placed)
  if (node.type === CONTINUE) checkContinue(check, placed, depth)
  if (type) checkHasBodies(check, type, placed)
  const vars = new Map([...placed.place.vars, ...Object.entries(type?.vars ?? {})])
  const outer = { place: placed.place, node: placed.name }
  for (const [key, body] of bodiesIn(node))
    checkBody(check, body, { keys: [...placed.keys, ...key], vars, outer, depth: depth + 1 })
  if (node.compensate !== undefined) checkCompensation(check, placed, depth)
}

/** A run is continued as a whole, and nothing follows. */
function checkContinue({ notes }: DefinitionCheck, { node, keys }: PlacedNode, depth: number): void {
  if (depth > 0)
    notes.add([...keys, 'type'], `${CONTINUE} must be a node of the outermost graph`, 'Return a value, and continue there')
  for (const key of ['next', 'compensate'])
    if (node[key] !== undefined && node[key] !== END)
      notes.add([...keys, key], `has no meaning: ${CONTINUE} ends the run`, 'Remove it')
}

const bodiesIn = (node: NodeDefinition): (readonly [KeyPath, unknown])[] => [
  ...(node.do === undefined ? [] : [[['do'], node.do] as const]),
  ...(isTree(node.bodies) ? Object.entries(node.bodies).map(([name, body]) => [['bodies', name], body] as const) : []),
]

/** A compensation runs after its graph, so it can use every output. */
function checkCompensation(check: DefinitionCheck, { place, node, keys }: PlacedNode, depth: number): void {
  const vars = new Map<string, ValueSchema>([...place.vars, ['output', outputOf(check.context, node.type)], ['error', ERROR]])
  const everything: GraphScope = { ...place, flow: { ...place.flow, leads: () => undefined } }
  checkBody(check, node.compensate, {
    keys: [...keys, 'compensate'],
    vars,
    outer: { place: everything, node: '' },
    depth: depth + 1,
  })
}

function checkBody(check: DefinitionCheck, body: unknown, within: Within): void {
  // the shape of the node reports values that are not objects
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

/** Copies the object, so that the check does not add defaults to it. */
const shallow = (body: object) => ({ ...body })

const NAME = /^[A-Za-z0-9_-]{1,64}$/

function checkHasBodies({ notes }: DefinitionCheck, { body }: WorkflowNode, { node, keys }: PlacedNode): void {
  if (body === 'do' && node.do === undefined)
    notes.add([...keys, 'do'], `is required: a ${node.type} has a body`, 'Write do: with a node or a graph')
  if (body === 'bodies' && node.bodies === undefined)
    notes.add([...keys, 'bodies'], `is required: a ${node.type} has bodies`, 'Write bodies: with a node or a graph for each name')
  if (body !== 'do' && node.do !== undefined)
    notes.add([...keys, 'do'], `is not a key of a ${node.type}`, body === 'bodies' ? 'Write bodies: { <name>: … }' : undefined)
  if (body !== 'bodies' && node.bodies !== undefined)
    notes.add([...keys, 'bodies'], `is not a key of a ${node.type}`, body === 'do' ? 'Write do' : undefined)
  for (const name of isTree(node.bodies) ? Object.keys(node.bodies) : [])
    if (!NAME.test(name))
      notes.add([...keys, 'bodies', name], `"${name}" is not a valid body name`, 'Use letters, digits, _ and -')
}

type Named = Graph & { readonly name: string }

/** A reference from a node to a workflow. */
interface Call {
  readonly name: string
  readonly keys: KeyPath
}

/** Finds a workflow that contains itself, directly or indirectly, and would never end. */
export function checkSelf(check: DefinitionCheck, definition: Named): void {
  const problemLines = new Set<string>()
  for (const call of callsIn(check, definition, [], 0)) {
    if (problemLines.has(call.name)) continue
    problemLines.add(call.name)
    const way = call.name === definition.name ? [call.name] : wayBack(check, call.name, definition.name)
    if (way)
      check.notes.add(
        call.keys,
        `the workflow contains itself: ${[definition.name, ...way].join(' → ')}`,
        'Use a cycle of nodes or a loop to repeat work'
      )
  }
}

/** The path from a workflow to a workflow that it contains. */
function wayBack(check: DefinitionCheck, from: string, to: string): readonly string[] | undefined {
  const ways = new Map<string, readonly string[]>([[from, [from]]])
  for (const [name, way] of ways) {
    const definition = check.context.definitionOf?.(name)
    for (const call of definition ? callsIn(check, definition, [], 0) : []) {
      if (call.name === to) return [...way, to]
      if (!ways.has(call.name)) ways.set(call.name, [...way, call.name])
    }
  }
  return undefined
}

function* callsIn(check: DefinitionCheck, graph: Graph, keys: KeyPath, depth: number): Generator<Call> {
  if (depth > DEEPEST) return
  for (const [name, node] of Object.entries(graph.nodes)) yield* callsOf(check, node, [...keys, 'nodes', name], depth)
}

function* callsOf(check: DefinitionCheck, node: NodeDefinition, keys: KeyPath, depth: number): Generator<Call> {
  const names = typeof node.type === 'string' ? (check.context.typeOf(node.type)?.names ?? {}) : {}
  for (const [key, kind] of Object.entries(names)) {
    const value = node[key]
    if (kind === 'workflow' && typeof value === 'string' && !value.includes('${{')) yield { name: value, keys: [...keys, key] }
  }
  const bodies = { ...(node.do ? { do: node.do } : {}), ...(node.compensate ? { compensate: node.compensate } : {}) }
  for (const [key, body] of Object.entries(bodies)) yield* callsWithin(check, body, [...keys, key], depth + 1)
  for (const [name, body] of Object.entries(isTree(node.bodies) ? node.bodies : {}))
    yield* callsWithin(check, body, [...keys, 'bodies', name], depth + 1)
}

function* callsWithin(check: DefinitionCheck, body: unknown, keys: KeyPath, depth: number): Generator<Call> {
  const graph = graphIn(body)
  if (!graph || !isTree(body)) return
  if ('nodes' in body) yield* callsIn(check, graph, keys, depth)
  else if (depth <= DEEPEST) yield* callsOf(check, graph.nodes.do!, keys, depth)
}

const NAMES = new RegExp(NODE_NAME)

/** Checks node names, the start of the graph, and unreachable nodes. */
function checkGraphWays({ notes }: DefinitionCheck, place: GraphScope, keys: KeyPath): void {
  const { graph, flow } = place
  for (const name of Object.keys(graph.nodes)) {
    const at = [...keys, 'nodes', name]
    if (!NAMES.test(name))
      notes.add(
        at,
        `"${name}" is not a valid node name`,
        'Use letters, digits and _, not starting with a digit, and no name of an object property such as constructor'
      )
    else if (name === END) notes.add(at, '"end" cannot be the name of a node', 'Rename the node; "end" marks the end of a path')
    else if (!flow.reached.has(name) && flow.reached.size > 0)
      notes.add(at, `"${name}" is unreachable`, 'Refer to it in a next, a branch or a catch, or remove it')
  }
  if (graph.start !== undefined) checkTarget({ notes }, place, graph.start, [...keys, 'start'], false)
}

function checkTarget(
  { notes }: Pick<DefinitionCheck, 'notes'>,
  { graph, names }: GraphScope,
  to: unknown,
  keys: KeyPath,
  mayEnd = true
): void {
  if (typeof to !== 'string' || Object.hasOwn(graph.nodes, to) || (mayEnd && to === END)) return
  const near = nearest(to, mayEnd ? [...names, END] : names)
  notes.add(keys, `node "${to}" does not exist in this graph`, near ? `did you mean "${near}"?` : undefined)
}

/** Checks the edges of a node. */
function checkWays(check: DefinitionCheck, type: WorkflowNode | undefined, { place, node, keys }: PlacedNode): void {
  checkTarget(check, place, node.next, [...keys, 'next'])
  checkTarget(check, place, node.catch, [...keys, 'catch'])
  const branches = isTree(node.branches) ? node.branches : undefined
  for (const [branch, to] of Object.entries(branches ?? {})) checkTarget(check, place, to, [...keys, 'branches', branch])
  if (type) checkBranches(check, type, { node, keys, branches })
}

interface Branches {
  readonly node: PlacedNode['node']
  readonly keys: KeyPath
  readonly branches: object | undefined
}

function checkBranches({ notes }: DefinitionCheck, type: WorkflowNode, { node, keys, branches }: Branches): void {
  const at = [...keys, 'branches']
  if (type.branches === undefined && branches) return notes.add(at, `a ${node.type} returns no branch`, 'Write next instead')
  const answered = answeredBy(type, node)
  if (!answered || (type.branches === 'any' && !branches)) return
  const { needed, all } = answered
  for (const branch of Object.keys(branches ?? {})) {
    if (all.includes(branch)) continue
    const near = nearest(branch, all)
    const hint = all.length === 0 ? 'Write next instead' : `Use one of: ${all.join(', ')}`
    notes.add([...at, branch], `a ${node.type} never returns "${branch}"`, near ? `did you mean "${near}"?` : hint)
  }
  const missing = needed.filter(branch => !branches || !Object.hasOwn(branches, branch))
  // an explicit `next: end` counts only without branches
  const goesOn = node.next !== undefined && (node.next !== END || !branches)
  if (missing.length > 0 && !goesOn) notes.add(at, `has no target for ${missing.join(', ')}`, hintOf(missing))
}

interface Answered {
  readonly needed: readonly string[]
  readonly all: readonly string[]
}

/** The branches that a node can return with its settings; undefined if only the run knows. */
function answeredBy({ branches, answers = [] }: WorkflowNode, node: NodeDefinition): Answered | undefined {
  if (branches !== 'any') return branches && { needed: branches, all: branches }
  const decisive = answers.flatMap(({ having = {}, listed }) => [
    ...Object.keys(having),
    ...(listed === undefined ? [] : [listed]),
  ])
  if (decisive.some(key => holdsExpression(node[key]))) return undefined
  const rule = answers.find(({ given = [], having = {} }) => {
    const isGiven = given.every(key => node[key] !== undefined)
    return isGiven && Object.entries(having).every(([key, value]) => node[key] === value)
  })
  if (!rule) return undefined
  const listed = rule.listed === undefined ? [] : node[rule.listed]
  const needed = [...(rule.branches ?? []), ...(Array.isArray(listed) ? listed.map(String) : [])]
  return { needed, all: [...needed, ...(rule.optional ?? [])] }
}

const hintOf = (missing: readonly string[]) =>
  `Write branches: { ${missing.map(branch => `${branch}: <node>`).join(', ')} }, with end for the end of a path`
