import { graphlib, layout } from '@dagrejs/dagre'
import type { Box, LayoutRequest } from './graph-layout.ts'

function boxesOf({ boxes, frames, edges }: LayoutRequest): readonly Box[] {
  const graph = new graphlib.Graph({ compound: true, multigraph: true })
  graph.setGraph({ rankdir: 'TB', nodesep: 32, ranksep: 48, marginx: 16, marginy: 16, ranker: 'longest-path' })
  for (const { id } of frames) graph.setNode(id, {})
  for (const { id, width, height } of boxes) graph.setNode(id, { width, height })
  for (const { id, frame } of [...frames, ...boxes]) if (frame !== undefined) graph.setParent(id, frame)
  for (const [at, { from, to }] of edges.entries()) if (graph.hasNode(to)) graph.setEdge(from, to, {}, String(at))
  layout(graph)
  return graph.nodes().map((id: string) => {
    const { x, y, width, height } = graph.node(id) as Omit<Box, 'id'>
    return { id, x: x - width / 2, y: y - height / 2, width, height }
  })
}

self.addEventListener('message', ({ data }: MessageEvent<{ readonly id: number; readonly request: LayoutRequest }>) => {
  try {
    self.postMessage({ id: data.id, boxes: boxesOf(data.request) })
  } catch (error) {
    self.postMessage({ id: data.id, error: error instanceof Error ? error.message : String(error) })
  }
})
