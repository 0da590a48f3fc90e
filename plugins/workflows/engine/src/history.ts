import type { Body, ChildOutcome, Json, PublicError, Question, RunStatus } from '@svc/core/contracts'
import type { RunRecord } from './space.ts'

/** What a node has spent. */
export interface Spent {
  readonly calls: number
  readonly tokens: number
}

/** A child as the log has it. */
export interface ForkedChild {
  readonly key: string
  readonly body: string | Body | { readonly workflow: string; readonly input: Json; readonly parameters?: Json }
  readonly vars?: { readonly [name: string]: Json }
}

/** How children are waited for. */
export interface Fork {
  readonly children: readonly ForkedChild[]
  readonly join: 'all' | 'any' | 'first'
  readonly failFast?: boolean
  readonly width?: number
}

/**
 * What a run's log holds. `s` is a step, `f` the path of a frame (a graph that runs: `''`, `each/3/`), `at` Unix milliseconds. The log is the run: who takes
 * it over walks the graph again and takes from it what is done.
 */
export type Entry =
  | { readonly t: 'started'; readonly at: number }
  | { readonly t: 'resumed'; readonly at: number }
  | {
      readonly t: 'begun'
      readonly s: string
      readonly at: number
      readonly n: number
      readonly type: string
      readonly input: Json
    }
  /** The node is called once more, after its children or a wait. */
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
  /** `event`: the one that was kept until then. */
  | {
      readonly t: 'woken'
      readonly s: string
      readonly at: number
      readonly by: 'time' | 'event' | 'answer'
      readonly data?: Json
      readonly event?: string
    }
  | ({ readonly t: 'forked'; readonly s: string; readonly at: number; readonly state?: Json } & Fork)
  /** A try has failed and is made again at `due`. */
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
  /** `caught`: its graph says what follows. */
  | {
      readonly t: 'failed'
      readonly s: string
      readonly at: number
      readonly error: PublicError
      readonly spent?: Spent
      readonly caught?: true
    }
  /** A child has ended. */
  | { readonly t: 'ended'; readonly f: string; readonly at: number; readonly out: Json }
  | { readonly t: 'broken'; readonly f: string; readonly at: number; readonly error: PublicError }
  | { readonly t: 'dropped'; readonly f: string; readonly at: number }
  /** An event that nobody waited for when it came. */
  | { readonly t: 'event'; readonly at: number; readonly id: string; readonly name: string; readonly data: Json }
  /** The run has failed, and what was done is undone. */
  | { readonly t: 'undoing'; readonly at: number; readonly error: PublicError }
  | { readonly t: 'over'; readonly at: number; readonly status: RunStatus; readonly result?: Json; readonly error?: PublicError }

export type EntryOf<T extends Entry['t']> = Extract<Entry, { readonly t: T }>

/** What the log says of one step. */
export interface Past {
  /** Tries that were begun, and those of them that have failed. */
  attempts: number
  failures: number
  begun: EntryOf<'begun'>
  /** Where it stands. */
  last: StepEntry
  /** The entry that tells its last fork or wait of this try; what the node gave with it goes back to it. */
  pause: EntryOf<'forked'> | EntryOf<'asleep'> | undefined
  woken: EntryOf<'woken'> | undefined
  /** All forks of all tries. */
  forks: readonly EntryOf<'forked'>[]
  spent: { calls: number; tokens: number }
  /** Milliseconds that the run had worked when this try began. */
  since: number
  /** Its place among all entries. */
  order: number
  /** It was not done, and a step round it is tried again: it begins anew. */
  isStale: boolean
}
type StepEntry = Extract<Entry, { readonly s: string }>

/** What the log of a run comes to. */
export interface History {
  readonly steps: Map<string, Past>
  /** How children ended, by the path of their frame. */
  readonly frames: Map<string, ChildOutcome>
  /** Events that nobody has taken yet. */
  readonly events: EntryOf<'event'>[]
  undoing: PublicError | undefined
  over: EntryOf<'over'> | undefined
  length: number
  /** Milliseconds it has worked, up to when it was taken up last; and the times of that and of the last entry. */
  worked: { ms: number; from: number; to: number }
}

const newHistory = (): History => ({
  steps: new Map(),
  frames: new Map(),
  events: [],
  undoing: undefined,
  over: undefined,
  length: 0,
  worked: { ms: 0, from: 0, to: 0 },
})

/** What a log comes to. */
export function historyOf(entries: Iterable<Entry>): History {
  const history = newHistory()
  for (const entry of entries) note(history, entry)
  return history
}

/** Adds an entry of the log to what is known. */
export function note(history: History, entry: Entry): void {
  history.length += 1
  noteTime(history, entry)
  if ('s' in entry) return noteStep(history, entry)
  if (entry.t === 'ended') history.frames.set(entry.f, { status: 'completed', output: entry.out })
  else if (entry.t === 'broken') history.frames.set(entry.f, { status: 'failed', error: entry.error })
  else if (entry.t === 'dropped') history.frames.set(entry.f, { status: 'cancelled' })
  else if (entry.t === 'event') history.events.push(entry)
  else if (entry.t === 'undoing') history.undoing = entry.error
  else if (entry.t === 'over') history.over = entry
}

function noteTime(history: History, { t, at }: Entry): void {
  if (t === 'started' || t === 'resumed') history.worked = { ms: workedMs(history), from: at, to: at }
  // what is said to a run that sleeps is taken before it works again
  else if (t !== 'woken' && t !== 'event') history.worked.to = at
}

/** Milliseconds that a run has worked, as far as its log knows: what it did after its last entry is not in it. With `now`, of one that works just now. */
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

/** A step is tried again: of what its children did, only what is done stays done. */
function beginAnew({ steps, frames }: History, within: string): void {
  for (const [path, { status }] of frames) if (path.startsWith(within) && status !== 'completed') frames.delete(path)
  for (const [step, past] of steps) if (step.startsWith(within) && !isOver(past)) past.isStale = true
}

/** Whether a step needs no more work: it is done, or what follows its failure has been gone to. */
export const isOver = ({ last }: Past): boolean => last.t === 'done' || (last.t === 'failed' && last.caught === true)

function noteNext(history: History, past: Past, entry: StepEntry): void {
  past.last = entry
  past.order = history.length
  if (entry.t === 'again') past.failures += 1
  if ('spent' in entry) addSpent(past.spent, entry.spent)
  if (entry.t === 'forked') past.forks = [...past.forks, entry]
  if (entry.t === 'asleep' || entry.t === 'forked') [past.pause, past.woken] = [entry, undefined]
  if (entry.t !== 'woken') return
  past.woken = entry
  if (entry.event !== undefined) takeEvent(history, entry.event)
}

function addSpent(sum: { calls: number; tokens: number }, spent: Spent | undefined): void {
  sum.calls += spent?.calls ?? 0
  sum.tokens += spent?.tokens ?? 0
}

/** An event that was kept is gone once somebody has it. */
function takeEvent({ events }: History, id: string): void {
  const at = events.findIndex(one => one.id === id)
  if (at >= 0) events.splice(at, 1)
}

/** What has been spent in all. */
function spentIn({ steps }: History): Spent {
  let [calls, tokens] = [0, 0]
  for (const { spent } of steps.values()) [calls, tokens] = [calls + spent.calls, tokens + spent.tokens]
  return { calls, tokens }
}

/** The frames that a step lies in: `each/3/` of `each/3/fetch`. */
export function* framesOf(step: string): Generator<string> {
  const parts = step.split('/')
  for (let at = 2; at < parts.length; at += 2) yield `${parts.slice(0, at).join('/')}/`
}

/** Whether a step may still go on: none of the frames round it has ended. */
function isOpen({ steps, frames, over }: History, step: string): boolean {
  if (over || steps.get(step)?.isStale !== false) return false
  for (const frame of framesOf(step)) if (frames.has(frame)) return false
  return true
}

/** What waits, as the log has it. */
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

/** When the steps that wait go on by themselves (Unix milliseconds). */
export function duesIn(history: History): number[] {
  const retries = [...history.steps].flatMap(([step, { last }]) =>
    last.t === 'again' && isOpen(history, step) ? [last.due] : []
  )
  return [...retries, ...waitingIn(history).flatMap(({ until }) => (until === undefined ? [] : [until]))]
}

/** The name of a step's node. */
export const nodeOf = (step: string) => step.slice(step.lastIndexOf('/') + 1).replace(/#\d+$/, '')

/** The nodes of the outermost graph that are done, in the order they were first done. */
function completedNodes({ steps }: History): string[] {
  const done = [...steps].filter(([step, { last }]) => last.t === 'done' && !step.includes('/'))
  return [...new Set(done.toSorted(([, a], [, b]) => a.order - b.order).map(([step]) => nodeOf(step)))]
}

/** The node of the outermost graph in which something works, of several the one that did something last. */
export function currentOf(history: History): string | undefined {
  const working = [...history.steps].filter(
    ([step, past]) => WORKING.has(past.last.t) && isOpen(history, step) && !step.startsWith(UNDO)
  )
  const [step] = working.reduce<readonly [string, Past] | []>(
    (found, one) => (found[1] && found[1].order > one[1].order ? found : one),
    []
  )
  return step === undefined ? undefined : nodeOf(step.split('/', 1)[0]!)
}

const WORKING: ReadonlySet<string> = new Set(['begun', 'called', 'woken'])

/** What the names of steps begin with that undo others. */
export const UNDO = 'undo/'

export function metricsOf(history: History, nodes: number, isWhole: boolean): NonNullable<RunRecord['ended']> {
  const { calls, tokens } = spentIn(history)
  const done = completedNodes(history)
  return { completedNodes: done, progress: isWhole ? 1 : progressOf(done.length, nodes), calls, tokens }
}

const MOST = 0.99

/** The share of the nodes of the outermost graph that have been done: it never falls, and is 1 only at the end. */
const progressOf = (done: number, nodes: number): number => Math.min(MOST, nodes === 0 ? 0 : done / nodes)
