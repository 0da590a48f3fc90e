import type { Body, ChildOutcome, Json, PublicError, Question, RunStatus } from '@svc/core/contracts'
import type { RunRecord } from './space.ts'

/** Tool calls and tokens that a node used, and their cost if a model had a price. */
export interface Spent {
  readonly calls: number
  readonly tokens: number
  readonly cost?: number
}
/** A sum of them. */
export type SpentSum = { -readonly [Kind in keyof Spent]: Spent[Kind] }

/** A child in the log. */
export interface ForkedChild {
  readonly key: string
  readonly body: string | Body | { readonly workflow: string; readonly input: Json; readonly parameters?: Json }
  readonly vars?: { readonly [name: string]: Json }
}

/** How a node waits for its children. */
export interface Fork {
  readonly children: readonly ForkedChild[]
  readonly join: 'all' | 'any' | 'first'
  readonly failFast?: boolean
  readonly width?: number
}

/**
 * An entry in the log of a run. `s` is a step, `f` the path of a frame (a running graph: `''`, `each/3/`), `at` a Unix time in
 * milliseconds. The log is the run: a worker that takes over walks the graph again and skips the steps that are done.
 */
export type Entry =
  | { readonly t: 'started'; readonly at: number }
  | { readonly t: 'resumed'; readonly at: number }
  | { readonly t: 'paused'; readonly at: number }
  | {
      readonly t: 'begun'
      readonly s: string
      readonly at: number
      readonly n: number
      readonly type: string
      readonly input: Json
    }
  /** The node is called again after its children or a wait. */
  | { readonly t: 'called'; readonly s: string; readonly at: number }
  | {
      readonly t: 'asleep'
      readonly s: string
      readonly at: number
      readonly until?: number
      readonly event?: string
      readonly ask?: Question
      readonly state?: Json
    }
  /** `event` is the id of a stored event that ends the wait at once. */
  | {
      readonly t: 'woken'
      readonly s: string
      readonly at: number
      readonly by: 'time' | 'event' | 'answer'
      readonly data?: Json
      readonly event?: string
    }
  | ({ readonly t: 'forked'; readonly s: string; readonly at: number; readonly state?: Json } & Fork)
  /** An attempt failed. The next attempt starts at `due`. */
  | {
      readonly t: 'again'
      readonly s: string
      readonly at: number
      readonly due: number
      readonly error: PublicError
      readonly spent?: Spent
    }
  | {
      readonly t: 'done'
      readonly s: string
      readonly at: number
      readonly out: Json
      readonly branch?: string
      readonly spent?: Spent
    }
  /** `caught` means that the graph continues with the `catch` node. */
  | {
      readonly t: 'failed'
      readonly s: string
      readonly at: number
      readonly error: PublicError
      readonly spent?: Spent
      readonly caught?: true
    }
  /** The outcome of a child. */
  | { readonly t: 'ended'; readonly f: string; readonly at: number; readonly out: Json }
  | { readonly t: 'broken'; readonly f: string; readonly at: number; readonly error: PublicError }
  | { readonly t: 'dropped'; readonly f: string; readonly at: number }
  /** The step uses files of a node, so the run goes on only there. `by` is the step: other steps do not have it as their last entry. */
  | { readonly t: 'bound'; readonly at: number; readonly by: string; readonly node: string }
  /** An event that no step waited for. */
  | { readonly t: 'event'; readonly at: number; readonly id: string; readonly name: string; readonly data: Json }
  /** The run failed and compensation starts. */
  | { readonly t: 'undoing'; readonly at: number; readonly error: PublicError }
  | {
      readonly t: 'over'
      readonly at: number
      readonly status: RunStatus
      readonly result?: Json
      readonly error?: PublicError
      readonly next?: string
    }

export type EntryOf<T extends Entry['t']> = Extract<Entry, { readonly t: T }>

/** The history of a step. */
export interface Past {
  /** Number of started attempts, and of failed ones. */
  attempts: number
  failures: number
  begun: EntryOf<'begun'>
  /** The latest entry. */
  last: StepEntry
  /** The last fork or wait of this attempt. The node gets its state back. */
  pause: EntryOf<'forked'> | EntryOf<'asleep'> | undefined
  woken: EntryOf<'woken'> | undefined
  /** The forks of all attempts. */
  forks: readonly EntryOf<'forked'>[]
  spent: SpentSum
  /** Milliseconds that the run had worked when this attempt started. */
  since: number
  /** Its position among all entries. */
  order: number
  /** Whether an outer step is retried and this step starts again. */
  isStale: boolean
}
type StepEntry = Extract<Entry, { readonly s: string }>

/** The state that a log describes. */
export interface History {
  readonly steps: Map<string, Past>
  /** Outcomes of children, by the path of their frame. */
  readonly frames: Map<string, ChildOutcome>
  /** What the steps of children used, by the path of their frame. */
  readonly used: Map<string, SpentSum>
  /** Events that no step has consumed. */
  readonly events: EntryOf<'event'>[]
  undoing: PublicError | undefined
  over: EntryOf<'over'> | undefined
  /** The node whose files it uses, and the steps that do, in their order. */
  readonly bound: { node: string | undefined; readonly steps: Set<string> }
  length: number
  /** Milliseconds it worked before the last start or resume, and the times of that entry and of the latest one. */
  worked: { ms: number; from: number; to: number }
}

const newHistory = (): History => ({
  steps: new Map(),
  frames: new Map(),
  used: new Map(),
  events: [],
  undoing: undefined,
  over: undefined,
  bound: { node: undefined, steps: new Set() },
  length: 0,
  worked: { ms: 0, from: 0, to: 0 },
})

/** Builds the history of a log. */
export function historyOf(entries: Iterable<Entry>): History {
  const history = newHistory()
  for (const entry of entries) note(history, entry)
  return history
}

/** Adds a log entry to a history. */
export function note(history: History, entry: Entry): void {
  history.length += 1
  noteTime(history, entry)
  if ('s' in entry) return noteStep(history, entry)
  if (entry.t === 'ended') history.frames.set(entry.f, { status: 'completed', output: entry.out })
  else if (entry.t === 'broken') history.frames.set(entry.f, { status: 'failed', error: entry.error })
  else if (entry.t === 'dropped') history.frames.set(entry.f, { status: 'cancelled' })
  else if (entry.t === 'event') history.events.push(entry)
  else if (entry.t === 'undoing') history.undoing = entry.error
  else if (entry.t === 'bound') noteBound(history, entry)
  else if (entry.t === 'over') history.over = entry
}

function noteBound({ bound }: History, { node, by }: EntryOf<'bound'>): void {
  bound.node = node
  bound.steps.add(by)
}

function noteTime(history: History, { t, at }: Entry): void {
  if (t === 'started' || t === 'resumed') history.worked = { ms: workedMs(history), from: at, to: at }
  // a sleeping run takes its notices before it works again
  else if (t !== 'woken' && t !== 'event') history.worked.to = at
}

/** Milliseconds that a run worked according to its log, which excludes work after the last entry. Pass `now` for a run in progress. */
export const workedMs = ({ worked: { ms, from, to } }: History, now = to): number => ms + Math.max(0, now - from)

function noteStep(history: History, entry: StepEntry): void {
  const past = history.steps.get(entry.s)
  if (entry.t !== 'begun') return past && noteNext(history, past, entry)
  if (past && past.forks.length > 0) beginAnew(history, `${entry.s}/`)
  history.steps.set(entry.s, begunPast(entry, past, history))
}

const begunPast = (begun: EntryOf<'begun'>, before: Past | undefined, history: History): Past => ({
  attempts: begun.n,
  failures: before && !before.isStale ? before.failures : 0,
  begun: before?.begun ?? begun,
  last: begun,
  pause: undefined,
  woken: undefined,
  forks: before?.forks ?? [],
  spent: before?.spent ?? { calls: 0, tokens: 0 },
  since: workedMs(history),
  order: history.length,
  isStale: false,
})

/** Resets a retried step. Only completed work of its children stays. */
function beginAnew({ steps, frames }: History, within: string): void {
  for (const [path, { status }] of frames) if (path.startsWith(within) && status !== 'completed') frames.delete(path)
  for (const [step, past] of steps) if (step.startsWith(within) && !isOver(past)) past.isStale = true
}

/** Whether a step is finished: it is done, or its failure was caught. */
export const isOver = ({ last }: Past): boolean => last.t === 'done' || (last.t === 'failed' && last.caught === true)

function noteNext(history: History, past: Past, entry: StepEntry): void {
  past.last = entry
  past.order = history.length
  if (entry.t === 'again') past.failures += 1
  if ('spent' in entry && entry.spent) noteSpent(history, past, entry.s, entry.spent)
  if (entry.t === 'forked') past.forks = [...past.forks, entry]
  if (entry.t === 'asleep' || entry.t === 'forked') [past.pause, past.woken] = [entry, undefined]
  if (entry.t !== 'woken') return
  past.woken = entry
  if (entry.event !== undefined) takeEvent(history, entry.event)
}

function noteSpent({ used }: History, past: Past, step: string, spent: Spent): void {
  addSpent(past.spent, spent)
  for (const frame of framesOf(step)) {
    const sum = used.get(frame) ?? { calls: 0, tokens: 0 }
    addSpent(sum, spent)
    used.set(frame, sum)
  }
}

export function addSpent(sum: SpentSum, { calls, tokens, cost }: Spent): void {
  sum.calls += calls
  sum.tokens += tokens
  if (cost !== undefined) sum.cost = (sum.cost ?? 0) + cost
}

/** Removes a stored event after a step consumed it. */
function takeEvent({ events }: History, id: string): void {
  const at = events.findIndex(event => event.id === id)
  if (at >= 0) events.splice(at, 1)
}

/** The total of all steps. */
function spentIn({ steps }: History): Spent {
  const sum: SpentSum = { calls: 0, tokens: 0 }
  for (const { spent } of steps.values()) addSpent(sum, spent)
  return sum
}

/** The frames that contain a step: `each/3/` for `each/3/fetch`. */
export function* framesOf(step: string): Generator<string> {
  const parts = step.split('/')
  for (let at = 2; at < parts.length; at += 2) yield `${parts.slice(0, at).join('/')}/`
}

/** Whether a step can continue: none of its frames has ended. */
function isOpen({ steps, frames, over }: History, step: string): boolean {
  if (over || steps.get(step)?.isStale !== false) return false
  for (const frame of framesOf(step)) if (frames.has(frame)) return false
  return true
}

/** The waiting steps of a log. */
export function waitingIn(history: History): RunRecord['waiting'] {
  return [...history.steps].flatMap(([step, past]) => {
    const pause = pauseOf(past)
    if (!pause || !isOpen(history, step)) return []
    const { at, until, event, ask } = pause
    const what = {
      ...(until === undefined ? {} : { until }),
      ...(event === undefined ? {} : { event }),
      ...(ask === undefined ? {} : { ask }),
    }
    return [{ step, node: nodeOf(step), since: at, ...what }]
  })
}

const pauseOf = ({ last, pause }: Past) => (last.t === 'asleep' && pause?.t === 'asleep' ? pause : undefined)

/** Times at which waiting steps continue on their own (Unix milliseconds). */
export function duesIn(history: History): number[] {
  const retries = [...history.steps].flatMap(([step, { last }]) =>
    last.t === 'again' && isOpen(history, step) ? [last.due] : []
  )
  return [...retries, ...waitingIn(history).flatMap(({ until }) => (until === undefined ? [] : [until]))]
}

/** The node name of a step. */
export const nodeOf = (step: string) => step.slice(step.lastIndexOf('/') + 1).replace(/#\d+$/, '')

/** Completed nodes of the outermost graph, in the order of completion. */
function completedNodes({ steps }: History): string[] {
  const done = [...steps].filter(([step, { last }]) => last.t === 'done' && !step.includes('/'))
  return [...new Set(done.toSorted(([, a], [, b]) => a.order - b.order).map(([step]) => nodeOf(step)))]
}

/** The active node of the outermost graph. With several, the latest. */
export function currentOf(history: History): string | undefined {
  const working = [...history.steps].filter(
    ([step, past]) => WORKING.has(past.last.t) && isOpen(history, step) && !step.startsWith(UNDO)
  )
  const [step] = working.reduce<readonly [string, Past] | []>(
    (found, item) => (found[1] && found[1].order > item[1].order ? found : item),
    []
  )
  return step === undefined ? undefined : nodeOf(step.split('/', 1)[0]!)
}

const WORKING: ReadonlySet<string> = new Set(['begun', 'called', 'woken'])

/** The prefix of compensation steps. */
export const UNDO = 'undo/'

export function metricsOf(history: History, nodes: number, isWhole: boolean): NonNullable<RunRecord['ended']> {
  const done = completedNodes(history)
  return { completedNodes: done, progress: isWhole ? 1 : progressOf(done.length, nodes), ...spentIn(history) }
}

const MOST = 0.99

/** The completed share of the nodes in the outermost graph. It never falls, and is 1 only at the end. */
const progressOf = (done: number, nodes: number): number => Math.min(MOST, nodes === 0 ? 0 : done / nodes)

/** The first of these steps in the outermost graph: a replay can begin there. */
export const firstStepOf = (steps: ReadonlySet<string>): string => [...steps][0]?.split('/', 1)[0] ?? ''
