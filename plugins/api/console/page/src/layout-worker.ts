import { graphlib, layout } from '@dagrejs/dagre'
import type { Box, Layout, LayoutRequest, Route } from './layout-types.ts'

const LETTER = 6.6

function laidOut({ boxes, frames, edges }: LayoutRequest): Layout {
  const graph = new graphlib.Graph({ compound: true, multigraph: true })
  graph.setGraph({ rankdir: 'TB', nodesep: 32, ranksep: 40, marginx: 16, marginy: 16, ranker: 'longest-path' })
  for (const { id } of frames) graph.setNode(id, {})
  for (const { id, width, height } of boxes) graph.setNode(id, { width, height })
  for (const { id, frame } of [...frames, ...boxes]) if (frame !== undefined) graph.setParent(id, frame)
  for (const [at, { from, to, label }] of edges.entries())
    if (graph.hasNode(to)) graph.setEdge(from, to, { ...sizeOf(label), labelpos: 'c' }, String(at))
  layout(graph)
  return {
    boxes: graph.nodes().map((id: string) => {
      const { x, y, width, height } = graph.node(id) as Omit<Box, 'id'>
      return { id, x: x - width / 2, y: y - height / 2, width, height }
    }),
    routes: edges.map(({ from, to }, at) => {
      if (!graph.hasNode(to)) return undefined
      const { points, x, y } = graph.edge({ v: from, w: to, name: String(at) }) as Pick<Route, 'points'> & Partial<Point>
      return { points, ...onCurve(points, x === undefined || y === undefined ? undefined : { x, y }) }
    }),
  }
}

interface Point {
  readonly x: number
  readonly y: number
}

const middle = (a: Point, b: Point): Point => ({ x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 })

/**
 * The place of a label on its edge, as the page draws it: a curve between the middles of the lines, bent towards each point. The layout
 * gives no place to some labels.
 */
function onCurve(points: Route['points'], near: Point | undefined): Point {
  const [first = { x: 0, y: 0 }, last = first] = [points[0], points.at(-1)]
  if (points.length < 3) return middle(first, last)
  const inner = points.slice(1, -1)
  const far = ({ x, y }: Point) => (near === undefined ? 0 : Math.hypot(x - near.x, y - near.y))
  const nearest = inner.reduce((best, point, at) => (far(point) < far(inner[best]!) ? at : best), 0)
  const at = 1 + (near === undefined ? Math.floor((inner.length - 1) / 2) : nearest)
  const begin = at === 1 ? first : middle(points[at - 1]!, points[at]!)
  const end = middle(points[at]!, points[at + 1]!)
  return middle(middle(begin, points[at]!), middle(points[at]!, end))
}

const sizeOf = (label: string) => (label === '' ? { width: 0, height: 0 } : { width: label.length * LETTER + 12, height: 20 })

self.addEventListener('message', ({ data }: MessageEvent<{ readonly id: number; readonly request: LayoutRequest }>) => {
  try {
    self.postMessage({ id: data.id, layout: laidOut(data.request) })
  } catch (error) {
    self.postMessage({ id: data.id, error: error instanceof Error ? error.message : String(error) })
  }
})
