import type { Json, Run, RunEvent, RunStep, StepStatus } from '@svc/core/contracts'
import { currentOf, type Entry, framesOf, type History, metricsOf, nodeOf, type Past, type Spent, waitingIn } from './history.ts'
import type { RunRecord } from './space.ts'

/** The public state of a run: from its record if it has ended, else from its log. */
export function runOf(id: string, record: RunRecord, history: History | undefined): Run {
  const { workflow, status, input, parameters, createdAt, updatedAt, finishedAt, result, error, ended } = record
  const live = ended ?? (history ? metricsOf(history, record.nodes, false) : NOTHING)
  const current = ended || !history ? undefined : currentOf(history)
  return {
    id,
    workflow,
    definition: record.definitions[workflow] ?? '',
    status,
    progress: live.progress,
    ...(current === undefined ? {} : { currentNode: current }),
    completedNodes: live.completedNodes,
    waiting: status === 'running' ? (history ? waitingIn(history) : record.waiting) : [],
    input,
    parameters,
    ...(result === undefined ? {} : { result }),
    ...(error === undefined ? {} : { error }),
    createdAt,
    updatedAt,
    ...(finishedAt === undefined ? {} : { finishedAt }),
    executionMs: (finishedAt ?? Date.now()) - createdAt,
    spent: usageOf(live),
    ...affinityOf(record, history),
    ...linksOf(record),
  }
}

/** An ended run has no history here. */
function affinityOf(record: RunRecord, history: History | undefined): Pick<Run, 'affinity'> {
  const affinity = history ? history.bound.node : record.affinity
  return affinity === undefined ? {} : { affinity }
}

/** Its relations to other runs, and its pause. */
function linksOf({ status, retryOf, replayOf, replayFrom, continuedBy, nextRun, previousRun, firstRun, pausedAt }: RunRecord) {
  const chain = { nextRun, previousRun, firstRun }
  const links = { retryOf, replayOf, replayFrom, continuedBy, ...chain, pausedAt: status === 'running' ? pausedAt : undefined }
  type Links = { readonly [name in keyof typeof links]?: NonNullable<(typeof links)[name]> }
  return Object.fromEntries(Object.entries(links).filter(([, value]) => value !== undefined)) as Links
}

const usageOf = ({ calls, tokens, cost }: Spent) => ({ toolCalls: calls, tokens, ...(cost === undefined ? {} : { cost }) })

const NOTHING: NonNullable<RunRecord['ended']> = { completedNodes: [], progress: 0, calls: 0, tokens: 0 }

const ENDED: ReadonlySet<Entry['t']> = new Set(['done', 'failed'])

const STATUS: Readonly<Partial<Record<Entry['t'], StepStatus>>> = {
  done: 'completed',
  failed: 'failed',
  asleep: 'waiting',
  again: 'waiting',
}

/** The steps of a run, in the order of their start. */
export const stepsOf = (history: History): RunStep[] => [...history.steps].map(([step, past]) => stepOf(history, step, past))

function stepOf({ frames, over }: History, step: string, { begun, last, attempts, spent }: Past): RunStep {
  const { calls, tokens } = spent
  const dropped = [...framesOf(step)].some(frame => frames.get(frame)?.status === 'cancelled')
  const status = ENDED.has(last.t) ? STATUS[last.t]! : dropped || over ? 'cancelled' : (STATUS[last.t] ?? 'running')
  return {
    step,
    node: nodeOf(step),
    type: begun.type,
    status,
    attempts,
    input: begun.input,
    ...(last.t === 'done' ? { output: last.out, ...(last.branch === undefined ? {} : { branch: last.branch }) } : {}),
    ...(last.t === 'failed' || last.t === 'again' ? { error: last.error } : {}),
    startedAt: begun.at,
    ...(ENDED.has(last.t) ? { finishedAt: last.at } : {}),
    ...(calls + tokens > 0 ? { spent: usageOf(spent) } : {}),
  }
}

type EventBody = Pick<RunEvent, 'type' | 'data'>

type EntryOf<Kind extends Entry['t']> = Extract<Entry, { readonly t: Kind }>

/** The public event of each kind of log entry. */
const EVENTS: { readonly [Kind in Entry['t']]?: (entry: EntryOf<Kind>) => EventBody } = {
  started: () => ({ type: 'run_started', data: {} }),
  resumed: () => ({ type: 'run_resumed', data: {} }),
  paused: () => ({ type: 'run_paused', data: {} }),
  begun: ({ type, n, input }) => ({ type: 'node_started', data: { node_type: type, attempt: n, input } }),
  asleep: ({ until, event, ask }) => ({
    type: 'node_waiting',
    data: { until: isoOf(until), event, ask: ask as unknown as Json },
  }),
  woken: ({ by }) => ({ type: 'node_woken', data: { by } }),
  forked: ({ children }) => ({ type: 'node_forked', data: { children: children.map(({ key }) => key) } }),
  again: ({ error, due }) => ({ type: 'node_retrying', data: { error: error as unknown as Json, due: isoOf(due) } }),
  done: ({ out, branch, spent }) => ({
    type: 'node_completed',
    data: { output: out, branch, spent: spent && spentJson(spent) },
  }),
  failed: ({ error, spent }) => ({
    type: 'node_failed',
    data: { error: error as unknown as Json, spent: spent && spentJson(spent) },
  }),
  dropped: () => ({ type: 'node_cancelled', data: {} }),
  undoing: ({ error }) => ({ type: 'run_compensating', data: { error: error as unknown as Json } }),
  over: ({ status, result, error, next }) => ({
    type: status === 'completed' ? 'run_completed' : 'run_failed',
    data: { result, error: error as unknown as Json, next_run: next },
  }),
}

/** The public event of a log entry; undefined for internal entries. */
export function eventOf(id: number, entry: Entry): RunEvent | undefined {
  const reported = (EVENTS[entry.t] as ((entry: Entry) => EventBody) | undefined)?.(entry)
  if (!reported) return undefined
  const step = 's' in entry ? entry.s : 'f' in entry ? entry.f.slice(0, -1) : undefined
  return { id, at: entry.at, ...reported, ...(step === undefined ? {} : { step, node: nodeOf(step) }) }
}

const spentJson = ({ calls, tokens, cost }: Spent): Json => ({
  tool_calls: calls,
  tokens,
  ...(cost === undefined ? {} : { cost }),
})
const isoOf = (at: number | undefined) => (at === undefined ? undefined : new Date(at).toISOString())
