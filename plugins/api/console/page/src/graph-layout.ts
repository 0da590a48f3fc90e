import type { DrawnEdge, DrawnNode, Layout, LayoutRequest } from './layout-types.ts'
// oxlint-disable-next-line import/default -- Vite gives the address of the worker as the default
import workerUrl from './layout-worker.ts?worker&url'

export type { Box, DrawnEdge, DrawnNode, Layout, Route } from './layout-types.ts'

export const END = 'end'
const [WIDEST, NARROWEST, HEIGHT, LETTER, PADDING] = [240, 112, 48, 7.4, 52]

export const frameIdOf = (node: string, body: string): string => `${node}/${body}/`

export const flat = (nodes: readonly DrawnNode[]): readonly DrawnNode[] =>
  nodes.flatMap(node => [node, ...node.bodies.flatMap(body => flat(body.nodes))])

/** The end of a body is not drawn: it is the end of its frame. */
const isDrawn = (from: string, to: string): boolean => to !== END || !from.includes('/')

const frameOf = (id: string) => {
  const frame = id.slice(0, id.lastIndexOf('/') + 1)
  return frame === '' ? {} : { frame }
}

/** The edges of all nodes: to the next node, after a failure, and into a body. */
export const edgesOf = (nodes: readonly DrawnNode[]): readonly DrawnEdge[] =>
  flat(nodes).flatMap(({ id, edges, bodies }) => [
    ...edges
      .filter(({ to }) => isDrawn(id, to))
      .map(({ to, label, kind }) => ({ from: id, to, kind, label: kind === 'catch' ? 'failure' : (label ?? '') })),
    ...bodies.flatMap(({ nodes: [first] }) => (first ? [{ from: id, to: first.id, kind: 'body' as const, label: '' }] : [])),
  ])

function layoutRequestOf(nodes: readonly DrawnNode[]): LayoutRequest {
  const all = flat(nodes)
  const isEnding = all.some(({ id, edges }) => edges.some(({ to }) => to === END && isDrawn(id, to)))
  return {
    boxes: [
      ...all.map(({ id, name, type }) => ({
        id,
        width: Math.min(WIDEST, Math.max(NARROWEST, Math.max(name.length, type.length) * LETTER + PADDING)),
        height: HEIGHT,
        ...frameOf(id),
      })),
      ...(isEnding ? [{ id: END, width: 56, height: 28 }] : []),
    ],
    frames: all.flatMap(({ id, bodies }) => bodies.map(({ name }) => ({ id: frameIdOf(id, name), ...frameOf(id) }))),
    edges: edgesOf(nodes),
  }
}

interface ScriptPolicy {
  createScriptURL(url: string): unknown
}

declare global {
  interface Window {
    readonly trustedTypes?: { createPolicy(name: string, rules: ScriptPolicy): ScriptPolicy }
  }
}

// The policy of the page lets scripts be loaded only by this name, and this name gives out one address only.
const policy = window.trustedTypes?.createPolicy('svc-worker', {
  createScriptURL(url: string) {
    if (url !== workerUrl) throw new TypeError('not the worker of this page')
    return url
  },
})

let worker: Worker | undefined
let asked = 0
const waiting = new Map<number, { readonly resolve: (layout: Layout) => void; readonly reject: (error: Error) => void }>()

function started(): Worker {
  if (worker) return worker
  const made = new Worker((policy?.createScriptURL(workerUrl) ?? workerUrl) as string, { type: 'module' })
  made.addEventListener(
    'message',
    ({ data }: MessageEvent<{ readonly id: number; readonly layout?: Layout; readonly error?: string }>) => {
      const { id, layout, error } = data
      if (layout) waiting.get(id)?.resolve(layout)
      else waiting.get(id)?.reject(new Error(error))
      waiting.delete(id)
    }
  )
  made.addEventListener('error', () => {
    for (const { reject } of waiting.values()) reject(new Error('The layout of the graph could not be computed.'))
    waiting.clear()
    worker = undefined
  })
  return (worker = made)
}

/** Lays out a graph outside of the page's thread: a large one takes longer than a frame. */
export function layoutOf(nodes: readonly DrawnNode[]): Promise<Layout> {
  const id = ++asked
  const { promise, resolve, reject } = Promise.withResolvers<Layout>()
  waiting.set(id, { resolve, reject })
  started().postMessage({ id, request: layoutRequestOf(nodes) })
  return promise
}
