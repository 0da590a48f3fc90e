import type { Edge, Graph } from '@dagrejs/dagre'
import { svcError } from '@svc/core'
import type { StepStatus, WorkflowDefinition } from '@svc/core/contracts'
import { type DrawnNode, drawnNodes, type GraphState } from './drawing.ts'
import { END } from './graph.ts'
import { dagre } from './late.ts'
import { STATES } from './states.ts'

/** Maximum number of nodes, because the layout of larger graphs takes too long. */
const MAX_NODES = 150
const [HEIGHT, LETTER, PADDING, WIDEST] = [44, 7.6, 28, 40]

/** Draws a workflow as SVG. The SVG contains its styles, escapes texts, and loads nothing. Throws GRAPH_TOO_LARGE. */
export function drawSvg(definition: WorkflowDefinition, { state = new Map() }: { readonly state?: GraphState } = {}): string {
  const nodes = flat(drawnNodes(definition))
  if (nodes.length > MAX_NODES) throw tooLarge(nodes.length)
  const graph = laidOut(nodes)
  const { width = 0, height = 0 } = graph.graph()
  const frames = nodes.flatMap(({ id, bodies }) =>
    bodies.map(({ name }) => frameText({ ...graph.node(frameId(id, name)), name }))
  )
  const edges = graph.edges().map((edge: Edge) => edgeText(graph.edge(edge)))
  const boxes = nodes.map(node => boxText({ ...graph.node(node.id), ...node, ...statusOf(state.get(node.id)) }))
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

const statusOf = (status: StepStatus | undefined) => (status ? { status, ...STATES[status] } : {})

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
    // the end of a body is not drawn
    if (to === END && id.includes('/')) continue
    if (to === END && !graph.hasNode(END)) graph.setNode(END, { width: 56, height: 28 })
    const text = kind === 'catch' ? 'failure' : (label ?? '')
    graph.setEdge(id, to, { label: text, kind, width: text.length * LETTER + 8, height: 16, labelpos: 'c' }, String(at))
  }
  for (const { name, nodes } of bodies)
    if (nodes[0]) graph.setEdge(id, nodes[0].id, { label: '', kind: 'body', width: 0, height: 0 }, `body ${name}`)
}

const tooLarge = (nodes: number) =>
  svcError('GRAPH_TOO_LARGE', `a workflow with ${nodes} nodes cannot be drawn as SVG; the limit is ${MAX_NODES}`, {
    details: { nodes, limit: MAX_NODES },
    hint: 'Draw it in the terminal, or split it with subworkflows',
  })

interface Placed {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

const STYLE = `
:root { --ground: #ffffff; --ink: #1b2330; --soft: #5b6675; --line: #7a8594; --box: #f4f6f9; --frame: #eaeef3; --done: #1a7f47; --run: #1f5fbf; --wait: #8a5a00; --fail: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ground: #14181f; --ink: #e8ecf1; --soft: #a5b0be; --line: #7d8998; --box: #222934; --frame: #1a2029; --done: #5fcf90; --run: #7fb2ff; --wait: #f0b95a; --fail: #ff8a80; } }
.context { fill: var(--ground) }
text { font: 13px ui-sans-serif, system-ui, sans-serif; fill: var(--ink); text-anchor: middle; dominant-baseline: central }
.name { font-weight: 600 } .type, .label, .frame text, .legend text { font-size: 11px; fill: var(--soft) }
.box rect { fill: var(--box); stroke: var(--line); stroke-width: 1.2 }
.frame rect { fill: var(--frame); fill-opacity: .6; stroke: var(--line); stroke-dasharray: 2 4 } .frame text, .legend text { text-anchor: start }
.edge { fill: none; stroke: var(--line); stroke-width: 1.4; marker-end: url(#arrow) } .arrow { fill: var(--line) }
.catch { stroke: var(--fail); stroke-dasharray: 6 4 } .body { stroke-dasharray: 2 4 }
.under { fill: var(--ground) }
.completed rect { stroke: var(--done); stroke-width: 2.4 } .running rect { stroke: var(--run); stroke-width: 3 } .waiting rect { stroke: var(--wait); stroke-width: 2.4; stroke-dasharray: 7 3 }
.failed rect { stroke: var(--fail); stroke-width: 3 } .cancelled rect { stroke-dasharray: 2 3 } .sign { font-weight: 700 }
.completed .sign { fill: var(--done) } .running .sign { fill: var(--run) } .waiting .sign { fill: var(--wait) } .failed .sign { fill: var(--fail) }
`

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
const MAX_LABEL = 40

/** Escapes a text for SVG, and replaces characters that XML does not allow. */
function escaped(text: string): string {
  const signs = Array.from(text)
  const short = signs.length > MAX_LABEL ? `${signs.slice(0, MAX_LABEL - 1).join('')}…` : text
  return short
    .replaceAll(/[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu, '?')
    .replaceAll(/[&<>"']/g, sign => ENTITIES[sign]!)
}

const round = (value: number) => Math.round(value * 10) / 10
const rect = ({ x, y, width, height }: Placed, radius: number) =>
  `<rect x="${round(x - width / 2)}" y="${round(y - height / 2)}" width="${round(width)}" height="${round(height)}" rx="${radius}"/>`

interface Box extends Placed {
  readonly name: string
  readonly type: string
  readonly status?: StepStatus
  readonly sign?: string
  readonly word?: string
}

function boxText(box: Box): string {
  const { x, y, name, type, status, sign, word } = box
  const at = (dy: number) => `x="${round(x)}" y="${round(y + dy)}"`
  const below = type === '' ? '' : `<text class="type" ${at(10)}>${escaped(type)}</text>`
  const mark = sign === undefined ? '' : `<tspan class="sign">${sign}</tspan> `
  const title = word === undefined ? '' : `<title>${escaped(`${name}: ${word}`)}</title>`
  const named = `<text class="name" ${at(type === '' ? 0 : -8)}>${mark}${escaped(name)}</text>`
  return `<g class="box${status ? ` ${status}` : ''}">${title}${rect(box, type === '' ? 14 : 8)}${named}${below}</g>`
}

function frameText({ name, ...placed }: Placed & { readonly name: string }): string {
  const [left, top] = [placed.x - placed.width / 2, placed.y - placed.height / 2]
  return `<g class="frame">${rect(placed, 10)}<text x="${round(left + 10)}" y="${round(top + 11)}">${escaped(name)}</text></g>`
}

interface DrawnEdge {
  readonly points: readonly { readonly x: number; readonly y: number }[]
  readonly label?: string
  readonly kind?: string
  readonly x?: number
  readonly y?: number
}

function edgeText({ points, label = '', kind = 'next', x = 0, y = 0 }: DrawnEdge): string {
  const path = `<path class="edge ${kind}" d="${curve(points)}"/>`
  if (label === '') return path
  const width = Math.min(MAX_LABEL, label.length) * 6.6 + 8
  const under = `<rect class="under" x="${round(x - width / 2)}" y="${round(y - 8)}" width="${round(width)}" height="16" rx="4"/>`
  return `${path}${under}<text class="label" x="${round(x)}" y="${round(y)}">${escaped(label)}</text>`
}

/** A smooth path through the middles of the lines between the points. */
function curve(points: DrawnEdge['points']): string {
  const [first, ...rest] = points.map(({ x, y }) => [round(x), round(y)] as const)
  if (!first) return ''
  const middles = rest
    .slice(0, -1)
    .map(([x, y], at) => `Q${x},${y} ${round((x + rest[at + 1]![0]) / 2)},${round((y + rest[at + 1]![1]) / 2)}`)
  const last = rest.at(-1)
  return [`M${first[0]},${first[1]}`, ...middles, ...(last ? [`L${last[0]},${last[1]}`] : [])].join(' ')
}

/** The legend of the states; empty without states. */
function legendText(states: readonly StepStatus[], top: number): string {
  if (states.length === 0) return ''
  const parts = states.map((status, at) => {
    const x = 20 + at * 110
    return `<g class="${status}"><text x="${x}" y="${round(top + 14)}"><tspan class="sign">${STATES[status].sign}</tspan> ${STATES[status].word}</text></g>`
  })
  return `<g class="legend">${parts.join('')}</g>`
}

function pageText(name: string, size: { readonly width: number; readonly height: number }, parts: readonly string[]): string {
  const [width, height] = [Math.max(120, Math.ceil(size.width)), Math.max(60, Math.ceil(size.height))]
  const arrow =
    '<marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path class="arrow" d="M0,0 L8,4 L0,8 z"/></marker>'
  const head = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">`
  const body = parts.filter(Boolean).join('\n')
  return `${head}\n<title>${escaped(name)}</title>\n<style>${STYLE}</style>\n<defs>${arrow}</defs>\n<rect class="ground" width="100%" height="100%"/>\n${body}\n</svg>\n`
}
