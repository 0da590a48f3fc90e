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
      const { points, x, y } = graph.edge({ v: from, w: to, name: String(at) }) as Route
      return { points, ...(x === undefined || y === undefined ? {} : { x, y }) }
    }),
  }
}

const sizeOf = (label: string) => (label === '' ? { width: 0, height: 0 } : { width: label.length * LETTER + 12, height: 20 })

self.addEventListener('message', ({ data }: MessageEvent<{ readonly id: number; readonly request: LayoutRequest }>) => {
  try {
    self.postMessage({ id: data.id, layout: laidOut(data.request) })
  } catch (error) {
    self.postMessage({ id: data.id, error: error instanceof Error ? error.message : String(error) })
  }
})
