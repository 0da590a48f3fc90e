import { isTree } from '@svc/core'
import type { Graph, NodeDefinition, RunStep, StepStatus, WorkflowDefinition } from '@svc/core/contracts'
import { graphIn } from './check.ts'
import { END, startOf } from './graph.ts'
import { drawnIdOf, STATES } from './states.ts'

/** States of steps, by the ids of drawn nodes. */
export type GraphState = ReadonlyMap<string, StepStatus>

/** An edge between nodes; `label` is the branch. */
interface DrawnWay {
  readonly to: string
  readonly label?: string
  readonly kind: 'next' | 'catch'
}

/** A drawn node. */
export interface DrawnNode {
  /** Its path, such as `each/do/fetch`. */
  readonly id: string
  readonly name: string
  readonly type: string
  readonly ways: readonly DrawnWay[]
  readonly bodies: readonly { readonly name: string; readonly nodes: readonly DrawnNode[] }[]
}

/** Maximum number of drawn nodes. */
const MOST_DRAWN = 2_000

/** The nodes of a graph in reading order, with nested nodes. */
export function drawnNodes(graph: Graph, path = '', left = { nodes: MOST_DRAWN }): DrawnNode[] {
  const made: DrawnNode[] = []
  for (const name of orderOf(graph)) {
    if (--left.nodes < 0) break
    const node = nodeOf(graph, name) ?? LOST
    const id = path + name
    const bodies = bodiesOf(node).map(([key, body]) => ({ name: key, nodes: drawnNodes(body, `${id}/${key}/`, left) }))
    made.push({ id, name, type: String(node.type), ways: waysOf(node, path), bodies })
  }
  return made
}

/** Drawn for an edge to a missing node. */
const LOST: NodeDefinition = { type: 'no such node' }

const nodeOf = ({ nodes }: Graph, name: string): NodeDefinition | undefined =>
  Object.hasOwn(nodes, name) ? nodes[name] : undefined

/** Depth-first order from the start, then unreachable nodes. */
function orderOf(graph: Graph): Iterable<string> {
  const ordered = new Set<string>()
  const open = [...Object.keys(graph.nodes).toReversed(), startOf(graph)]
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    if (ordered.has(name) || (isEnd(name) && !nodeOf(graph, name))) continue
    ordered.add(name)
    open.push(
      ...targetsOf(nodeOf(graph, name) ?? LOST)
        .map(([, to]) => to)
        .toReversed()
    )
  }
  return ordered
}

/** An unchecked definition can contain any value here. */
const isEnd = (to: unknown) => typeof to !== 'string' || to === END

type Target = readonly [kind: 'next' | 'catch', to: string, label?: string]

function targetsOf({ next, branches, catch: caught }: NodeDefinition): Target[] {
  const branched = Object.entries(branches ?? {}).map(([branch, to]): Target => ['next', String(to), branch])
  return [
    ...branched,
    ...(next === undefined ? [] : [['next', next] as const]),
    ...(caught === undefined ? [] : [['catch', caught] as const]),
  ]
}

const waysOf = (node: NodeDefinition, path: string): DrawnWay[] =>
  targetsOf(node).map(([kind, to, label]) => ({
    kind,
    to: isEnd(to) ? END : path + to,
    ...(label === undefined ? {} : { label }),
  }))

function bodiesOf(node: NodeDefinition): (readonly [string, Graph])[] {
  const named = [
    ...(node.do === undefined ? [] : [['do', node.do] as const]),
    ...(isTree(node.bodies) ? Object.entries(node.bodies) : []),
  ]
  const all = node.compensate === undefined ? named : [...named, ['compensate', node.compensate] as const]
  return all.flatMap(([name, body]) => {
    const graph = graphIn(body)
    return graph ? [[name, graph] as const] : []
  })
}

/** States of nodes from the steps of a run. The last step of a node wins. */
export function stateOf(graph: Graph, steps: readonly Pick<RunStep, 'step' | 'status'>[]): GraphState {
  const ids = new Set(idsOf(drawnNodes(graph)))
  return new Map(
    steps.flatMap(({ step, status }) => [drawnIdOf(step, ids)].flatMap(id => (id === undefined ? [] : [[id, status] as const])))
  )
}

const idsOf = (nodes: readonly DrawnNode[]): string[] =>
  nodes.flatMap(({ id, bodies }) => [id, ...bodies.flatMap(body => idsOf(body.nodes))])

interface TerminalOptions {
  readonly state?: GraphState
  /** Width in columns; default 80. */
  readonly width?: number
}

/** Draws a workflow as text: a line for each node in reading order, with its branches and bodies below. Lines are cut to the width. */
export function drawTerminal(definition: WorkflowDefinition, { state = new Map(), width = 80 }: TerminalOptions = {}): string {
  const nodes = drawnNodes(definition)
  const all = [plain(definition.name), ...linesOf(nodes, state)]
  const shown = countOf(nodes) >= MOST_DRAWN ? [...all, `… only the first ${MOST_DRAWN} nodes are drawn`] : all
  return shown.map(line => cut(line, Math.max(20, width))).join('\n')
}

const countOf = (nodes: readonly DrawnNode[]): number =>
  nodes.reduce((sum, { bodies }) => sum + 1 + bodies.reduce((inner, body) => inner + countOf(body.nodes), 0), 0)

const linesOf = (nodes: readonly DrawnNode[], state: GraphState): string[] =>
  nodes.flatMap((node, at) => nodeLines(node, nodes.slice(0, at + 1), nodes[at + 1]?.id, state))

/** The edge to the node right below is a line; other edges are text. */
function nodeLines(node: DrawnNode, above: readonly DrawnNode[], below: string | undefined, state: GraphState): string[] {
  const status = state.get(node.id)
  const mark = status ? `${STATES[status].sign} ` : state.size > 0 ? '  ' : ''
  const head = `● ${mark}${plain(node.name)} (${plain(node.type)})${status ? ` ${STATES[status].word}` : ''}`
  const [only] = node.ways
  const isStraight = node.ways.length === 1 && only!.label === undefined && only!.kind === 'next' && only!.to === below
  const ways = isStraight ? [] : node.ways.map(way => `├─ ${wayText(way, above)}`)
  const bodies = node.bodies.flatMap(({ name, nodes }) => [
    `┌ ${plain(name)}`,
    ...linesOf(nodes, state).map(line => `│ ${line}`),
    '└',
  ])
  const goesOn = isStraight || node.ways.some(({ to }) => to === below)
  const rail = goesOn ? '│' : ' '
  const under = [...bodies, ...ways].map(line => `${rail} ${line}`)
  return [head, ...under, ...(isStraight ? ['↓'] : goesOn ? ['│'] : [])]
}

function wayText({ to, label, kind }: DrawnWay, above: readonly DrawnNode[]): string {
  const word = kind === 'catch' ? 'on failure ' : label === undefined ? '' : `${plain(label)} `
  if (to === END) return `${word}→ end`
  const name = plain(to.slice(to.lastIndexOf('/') + 1))
  return above.some(({ id }) => id === to) ? `${word}↺ ${name}` : `${word}→ ${name}`
}

/** Replaces control characters, because names can be untrusted. */
const plain = (text: string) => String(text).replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '?')

function cut(line: string, width: number): string {
  const signs = Array.from(line)
  return signs.length > width ? `${signs.slice(0, width - 1).join('')}…` : line
}
