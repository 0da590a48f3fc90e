import type { Edge, Graph } from '@dagrejs/dagre'
import { svcError } from '@svc/core'
import type { StepStatus, WorkflowDefinition } from '@svc/core/contracts'
import { type DrawnNode, drawnNodes, type GraphState, STATES } from './drawing.ts'
import { END } from './graph.ts'
import { dagre } from './late.ts'
import { boxText, edgeText, frameText, legendText, pageText } from './svg-parts.ts'

/** The layout of more takes too long. */
const MOST = 150
const [HEIGHT, LETTER, PADDING, WIDEST] = [44, 7.6, 28, 40]

/** A drawing has its own file of styles, texts are escaped, and it loads nothing. Throws GRAPH_TOO_LARGE. */
export function drawSvg(definition: WorkflowDefinition, { state = new Map() }: { readonly state?: GraphState } = {}): string {
  const nodes = flat(drawnNodes(definition))
  if (nodes.length > MOST) throw tooLarge(nodes.length)
  const graph = laidOut(nodes)
  const { width = 0, height = 0 } = graph.graph()
  const frames = nodes.flatMap(({ id, bodies }) =>
    bodies.map(({ name }) => frameText({ ...graph.node(frameId(id, name)), name }))
  )
  const edges = graph.edges().map((edge: Edge) => edgeText(graph.edge(edge)))
  const boxes = nodes.map(node => boxText({ ...graph.node(node.id), ...node, ...standing(state.get(node.id)) }))
  const ends = graph.hasNode(END) ? [boxText({ ...graph.node(END), name: END, type: '' })] : []
  const legend = legendText([...new Set(state.values())], height)
  return pageText(definition.name, { width: legend ? Math.max(width, 580) : width, height: height + (legend ? 36 : 0) }, [
    ...frames,
    ...edges,
    ...boxes,
    ...ends,
    legend,
  ])
}

const standing = (status: StepStatus | undefined) => (status ? { status, ...STATES[status] } : {})

const flat = (nodes: readonly DrawnNode[]): DrawnNode[] =>
  nodes.flatMap(node => [node, ...node.bodies.flatMap(body => flat(body.nodes))])

const frameId = (id: string, body: string) => `${id}/${body}/`

function laidOut(nodes: readonly DrawnNode[]): Graph {
  const { graphlib, layout } = dagre()
  const graph = new graphlib.Graph({ compound: true, multigraph: true })
  graph.setGraph({ rankdir: 'TB', nodesep: 36, ranksep: 44, marginx: 20, marginy: 20, ranker: 'longest-path' })
  for (const node of nodes) place(graph, node)
  for (const node of nodes) connect(graph, node)
  layout(graph)
  return graph
}

function place(graph: Graph, { id, name, type, bodies }: DrawnNode): void {
  graph.setNode(id, { width: Math.min(WIDEST, Math.max(name.length, type.length, 6)) * LETTER + PADDING, height: HEIGHT })
  const frame = id.slice(0, id.lastIndexOf('/') + 1)
  if (frame) graph.setParent(id, frame)
  for (const { name: body } of bodies) {
    graph.setNode(frameId(id, body), {})
    if (frame) graph.setParent(frameId(id, body), frame)
  }
}

function connect(graph: Graph, { id, ways, bodies }: DrawnNode): void {
  for (const [at, { to, label, kind }] of ways.entries()) {
    // the end of a body is its own
    if (to === END && id.includes('/')) continue
    if (to === END && !graph.hasNode(END)) graph.setNode(END, { width: 56, height: 28 })
    const text = kind === 'catch' ? 'failure' : (label ?? '')
    graph.setEdge(id, to, { label: text, kind, width: text.length * LETTER + 8, height: 16, labelpos: 'c' }, String(at))
  }
  for (const { name, nodes } of bodies)
    if (nodes[0]) graph.setEdge(id, nodes[0].id, { label: '', kind: 'body', width: 0, height: 0 }, `body ${name}`)
}

const tooLarge = (nodes: number) =>
  svcError('GRAPH_TOO_LARGE', `a drawing of ${nodes} nodes cannot be made: at most ${MOST}`, {
    details: { nodes, limit: MOST },
    hint: 'draw it in the terminal, or split it with subworkflows',
  })
