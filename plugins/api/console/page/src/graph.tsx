import '@xyflow/react/dist/base.css'
import {
  Background,
  BaseEdge,
  Controls,
  type Edge,
  type EdgeProps,
  Handle,
  MarkerType,
  type Node,
  type NodeProps,
  Position,
  ReactFlow,
} from '@xyflow/react'
import { STATES } from '@svc/workflow-lang/states'
import { memo, useEffect, useMemo, useState } from 'react'
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
      <Handle type="target" position={Position.Top} isConnectable={false} />
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
      <Handle type="source" position={Position.Bottom} isConnectable={false} />
    </div>
  )
})

const Frame = ({ data: { name } }: NodeProps<GraphNode>) => (
  <div className="node-frame">
    <span>{name}</span>
  </div>
)

const End = () => (
  <div className="node-end">
    <Handle type="target" position={Position.Top} isConnectable={false} />
    end
  </div>
)

type RoutedEdge = Edge<{ readonly route: Route | undefined }, 'routed'>

/** A smooth path through the middles of the lines between the points. */
function pathOf([first, ...rest]: Route['points']): string {
  if (!first) return ''
  const bends = rest.slice(0, -1).map(({ x, y }, at) => `Q${x},${y} ${(x + rest[at + 1]!.x) / 2},${(y + rest[at + 1]!.y) / 2}`)
  const last = rest.at(-1)
  return [`M${first.x},${first.y}`, ...bends, ...(last ? [`L${last.x},${last.y}`] : [])].join(' ')
}

/** An edge on the way that the layout has found around the nodes. */
const Routed = ({ id, data, label, markerEnd }: EdgeProps<RoutedEdge>) =>
  data?.route && (
    <BaseEdge
      id={id}
      path={pathOf(data.route.points)}
      label={label}
      labelX={data.route.x}
      labelY={data.route.y}
      labelBgPadding={[4, 2]}
      labelBgBorderRadius={4}
      {...(markerEnd === undefined ? {} : { markerEnd })}
    />
  )

const TYPES = { step: NodeBox, frame: Frame, end: End }
const EDGE_TYPES = { routed: Routed }
const ARROW = { type: MarkerType.ArrowClosed, width: 16, height: 16, color: 'var(--border-strong)' }

const routedEdges = (nodes: readonly DrawnNode[], routes: Layout['routes']): RoutedEdge[] =>
  edgesOf(nodes).map(({ from, to, kind, label }, at) => ({
    id: `${from} ${at}`,
    source: from,
    target: to,
    type: 'routed',
    className: `edge-${kind}`,
    data: { route: routes[at] },
    focusable: false,
    ...(label === '' ? {} : { label: visible(label) }),
    ...(kind === 'body' ? {} : { markerEnd: ARROW }),
  }))

type Kept = Pick<GraphProps, 'states' | 'problems' | 'selected'>

function nodesOf(
  nodes: readonly DrawnNode[],
  boxes: ReadonlyMap<string, Box>,
  { states, problems, selected }: Kept
): GraphNode[] {
  const placed = (id: string) => {
    const { x, y, width, height } = boxes.get(id)!
    // all is known: the library measures nothing, and edges stay when states change
    const size = { width, height }
    const handles = [
      { type: 'target' as const, position: Position.Top, x: width / 2, y: 0 },
      { type: 'source' as const, position: Position.Bottom, x: width / 2, y: height },
    ]
    return { id, position: { x, y }, ...size, measured: size, handles, draggable: false, connectable: false }
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

interface Laid extends Pick<Layout, 'routes'> {
  readonly boxes: ReadonlyMap<string, Box>
  readonly nodes: readonly DrawnNode[]
}

/** Unequal only if nodes or edges differ: a state changes no place. */
const shapeOf = (nodes: readonly DrawnNode[]) =>
  JSON.stringify(flat(nodes).map(({ id, name, type, edges }) => [id, name, type, edges.map(({ to }) => to)]))

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
  const edges = useMemo(() => (laid ? routedEdges(laid.nodes, laid.routes) : []), [laid])
  if (error) return <Failure error={error} />
  if (!shown) return <Loading rows={4} />
  return (
    <section className="graph" aria-label={label}>
      <ReactFlow
        nodes={shown}
        edges={edges}
        nodeTypes={TYPES}
        edgeTypes={EDGE_TYPES}
        fitView
        fitViewOptions={{ maxZoom: innerWidth < 3200 ? 1 : 1.5, padding: 0.1 }}
        minZoom={0.1}
        maxZoom={1.6}
        nodesDraggable={false}
        nodesConnectable={false}
        onlyRenderVisibleElements
        deleteKeyCode={null}
        proOptions={{ hideAttribution: true }}
        onNodeClick={(_, node) => node.type === 'step' && onSelect?.(node.id)}
        onNodesChange={changes => {
          // by keyboard: Enter selects the focused node
          for (const change of changes)
            if (change.type === 'select' && change.selected && change.id !== selected) onSelect?.(change.id)
        }}
      >
        <Background gap={20} size={1} />
        <Controls showInteractive={false} />
      </ReactFlow>
    </section>
  )
}
