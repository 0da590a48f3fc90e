import '@xyflow/react/dist/base.css'
import { Background, Controls, type Node, type NodeProps, ReactFlow, type ReactFlowInstance, ViewportPortal } from '@xyflow/react'
import { STATES } from '@svc/workflow-lang/states'
import { memo, useEffect, useId, useMemo, useRef, useState } from 'react'
import { type Box, type DrawnNode, edgesOf, END, flat, frameIdOf, type Layout, layoutOf, type Route } from './graph-layout.ts'
import type { Step } from './run-steps.ts'
import { Failure, Loading } from './states.tsx'
import { visible } from './visible-text.ts'

interface GraphProps {
  readonly label: string
  readonly nodes: readonly DrawnNode[]
  /** States of the nodes of a run, by the ids of the nodes. */
  readonly states?: ReadonlyMap<string, Step['status']>
  /** What is wrong with nodes, by their ids. */
  readonly problems?: ReadonlyMap<string, string>
  readonly selected?: string | undefined
  readonly onSelect?: (id: string) => void
}

type NodeData = {
  readonly name: string
  readonly type: string
  readonly state?: Step['status'] | undefined
  readonly problem?: string | undefined
}
type GraphNode = Node<NodeData, 'step' | 'frame' | 'end'>

const NodeBox = memo(function NodeBox({ data: { name, type, state, problem }, selected }: NodeProps<GraphNode>) {
  return (
    <div
      className="node"
      data-state={state}
      data-problem={problem !== undefined || undefined}
      data-selected={selected || undefined}
      title={problem}
    >
      <span className="node-sign" aria-hidden="true">
        {problem === undefined ? state && STATES[state].sign : '!'}
      </span>
      <span className="node-text">
        <span className="node-name clip">{name}</span>
        <span className="node-type clip">{type}</span>
      </span>
      <span className="visually-hidden">
        {state && STATES[state].word}
        {problem}
      </span>
    </div>
  )
})

const Frame = ({ data: { name } }: NodeProps<GraphNode>) => (
  <div className="node-frame">
    <span>{name}</span>
  </div>
)

const End = () => <div className="node-end">end</div>

/** A smooth path through the middles of the lines between the points. */
function pathOf([first, ...rest]: Route['points']): string {
  if (!first) return ''
  const bends = rest.slice(0, -1).map(({ x, y }, at) => `Q${x},${y} ${(x + rest[at + 1]!.x) / 2},${(y + rest[at + 1]!.y) / 2}`)
  const last = rest.at(-1)
  return [`M${first.x},${first.y}`, ...bends, ...(last ? [`L${last.x},${last.y}`] : [])].join(' ')
}

interface EdgesProps {
  readonly nodes: readonly DrawnNode[]
  readonly routes: Layout['routes']
}

/** The edges on the ways that the layout has found around the nodes: one drawing that moves as a whole. */
const Edges = memo(function Edges({ nodes, routes }: EdgesProps) {
  const arrow = useId()
  return (
    <svg className="edges" aria-hidden="true">
      <defs>
        <marker id={arrow} viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto">
          <path d="M0,0L10,5L0,10Z" className="edge-arrow" />
        </marker>
      </defs>
      {edgesOf(nodes).map(({ from, kind, label }, at) => {
        const route = routes[at]
        return (
          route && (
            <g key={`${from} ${at}`} className={`edge edge-${kind}`}>
              <path d={pathOf(route.points)} {...(kind === 'body' ? {} : { markerEnd: `url(#${arrow})` })} />
              {label !== '' && (
                <text x={route.x} y={route.y}>
                  {visible(label)}
                </text>
              )}
            </g>
          )
        )
      })}
    </svg>
  )
})

const TYPES = { step: NodeBox, frame: Frame, end: End }

type Kept = Pick<GraphProps, 'states' | 'problems' | 'selected'>

function nodesOf(
  nodes: readonly DrawnNode[],
  boxes: ReadonlyMap<string, Box>,
  { states, problems, selected }: Kept
): GraphNode[] {
  const placed = (id: string) => {
    const { x, y, width, height } = boxes.get(id)!
    // all is known: the library measures nothing
    const size = { width, height }
    return { id, position: { x, y }, ...size, measured: size, draggable: false, connectable: false }
  }
  const all = flat(nodes).filter(({ id }) => boxes.has(id))
  const frames = all.flatMap(({ id, bodies }) => bodies.map(body => [frameIdOf(id, body.name), body.name] as const))
  return [
    ...frames
      .filter(([id]) => boxes.has(id))
      .map(
        ([id, name]): GraphNode => ({
          ...placed(id),
          type: 'frame',
          data: { name, type: '' },
          selectable: false,
          focusable: false,
          zIndex: -1,
        })
      ),
    ...all.map(
      ({ id, name, type }): GraphNode => ({
        ...placed(id),
        type: 'step',
        data: { name, type, state: states?.get(id), problem: problems?.get(id) },
        selected: id === selected,
        ariaLabel: `${name}, ${type}${states?.has(id) ? `, ${STATES[states.get(id)!].word}` : ''}`,
      })
    ),
    ...(boxes.has(END)
      ? [{ ...placed(END), type: 'end' as const, data: { name: END, type: '' }, selectable: false, focusable: false }]
      : []),
  ]
}

/** More nodes than these are drawn only where they are visible: to find those takes longer, on each movement, than to move all. */
const MOST_DRAWN = 1_000

interface Laid extends Pick<Layout, 'routes'> {
  readonly boxes: ReadonlyMap<string, Box>
  readonly nodes: readonly DrawnNode[]
}

/** Unequal only if nodes, edges or labels differ: a state changes no place. */
const shapeOf = (nodes: readonly DrawnNode[]) =>
  JSON.stringify(flat(nodes).map(({ id, name, type, edges }) => [id, name, type, edges.map(({ to, label }) => [to, label])]))

const FIT = { maxZoom: innerWidth < 3200 ? 1 : 1.5, padding: 0.1 }

/** Shows the whole graph again after each new layout, until the reader moves it. */
function useFitting(laid: Laid | undefined) {
  const flow = useRef<ReactFlowInstance<GraphNode>>(undefined)
  const isMoved = useRef(false)
  useEffect(() => {
    if (laid && !isMoved.current) void flow.current?.fitView(FIT)
  }, [laid])
  const setMoved = (isNow: boolean) => void (isMoved.current = isNow)
  return { onInit: (made: ReactFlowInstance<GraphNode>) => void (flow.current = made), setMoved }
}

/** A workflow as a graph. Its places are computed beside the page. */
export default function Graph({ label, nodes, states, problems, selected, onSelect }: GraphProps) {
  const shape = shapeOf(nodes)
  const [laid, setLaid] = useState<Laid>()
  const [error, setError] = useState<unknown>()
  useEffect(() => {
    let isOld = false
    layoutOf(nodes).then(
      ({ boxes, routes }) => isOld || setLaid({ boxes: new Map(boxes.map(box => [box.id, box])), routes, nodes }),
      failed => isOld || setError(failed)
    )
    return () => {
      isOld = true
    }
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- `shape` says when the places change
  }, [shape])
  const shown = useMemo(
    () => laid && nodesOf(laid.nodes, laid.boxes, { states, problems, selected }),
    [laid, states, problems, selected]
  )
  const { onInit, setMoved } = useFitting(laid)
  if (error) return <Failure error={error} />
  if (!laid || !shown) return <Loading rows={4} />
  return (
    <section className="graph" aria-label={label}>
      <ReactFlow
        nodes={shown}
        nodeTypes={TYPES}
        fitView
        fitViewOptions={FIT}
        onInit={onInit}
        // without an event, the page itself moves it
        onMoveStart={event => event && setMoved(true)}
        minZoom={0.1}
        maxZoom={1.6}
        nodesDraggable={false}
        nodesConnectable={false}
        onlyRenderVisibleElements={shown.length > MOST_DRAWN}
        deleteKeyCode={null}
        proOptions={{ hideAttribution: true }}
        onNodeClick={(_, node) => node.type === 'step' && onSelect?.(node.id)}
        onNodesChange={changes => {
          // by keyboard: Enter selects the focused node
          for (const change of changes)
            if (change.type === 'select' && change.selected && change.id !== selected) onSelect?.(change.id)
        }}
      >
        <ViewportPortal>
          <Edges nodes={laid.nodes} routes={laid.routes} />
        </ViewportPortal>
        <Background gap={20} size={1} />
        <Controls
          showInteractive={false}
          fitViewOptions={FIT}
          onZoomIn={() => setMoved(true)}
          onZoomOut={() => setMoved(true)}
          onFitView={() => setMoved(false)}
        />
      </ReactFlow>
    </section>
  )
}
