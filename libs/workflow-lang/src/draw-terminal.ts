import type { WorkflowDefinition } from '@svc/core/contracts'
import { type DrawnNode, drawnNodes, type DrawnWay, type GraphState, MOST_DRAWN, STATES } from './drawing.ts'
import { END } from './graph.ts'

export interface TerminalOptions {
  readonly state?: GraphState
  /** Columns that there are; default 80. */
  readonly width?: number
}

/** Draws a workflow as text: a line a node in the order of its ways, its branches and what it does inside below it. Lines are cut to the width. */
export function drawTerminal(definition: WorkflowDefinition, { state = new Map(), width = 80 }: TerminalOptions = {}): string {
  const nodes = drawnNodes(definition)
  const all = [plain(definition.name), ...linesOf(nodes, state)]
  const shown = countOf(nodes) >= MOST_DRAWN ? [...all, `… only ${MOST_DRAWN} nodes are drawn`] : all
  return shown.map(line => cut(line, Math.max(20, width))).join('\n')
}

const countOf = (nodes: readonly DrawnNode[]): number =>
  nodes.reduce((sum, { bodies }) => sum + 1 + bodies.reduce((inner, body) => inner + countOf(body.nodes), 0), 0)

const linesOf = (nodes: readonly DrawnNode[], state: GraphState): string[] =>
  nodes.flatMap((node, at) => nodeLines(node, nodes.slice(0, at + 1), nodes[at + 1]?.id, state))

/** The way to what stands right below is a line, others are told. */
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

/** Names come from strangers, and a terminal does what it is told. */
const plain = (text: string) => String(text).replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '?')

function cut(line: string, width: number): string {
  const signs = Array.from(line)
  return signs.length > width ? `${signs.slice(0, width - 1).join('')}…` : line
}
