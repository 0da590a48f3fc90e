import type { ChildOutcome, ErrorTold } from '@svc/core/contracts'
import type { Entry, EntryOf, Spent } from './entries.ts'

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
  spent: { calls: number; tokens: number }
  /** Its place among all entries. */
  order: number
}
export type StepEntry = Extract<Entry, { readonly s: string }>

/** What the log of a run comes to. */
export interface History {
  readonly steps: Map<string, Past>
  /** How children ended, by the path of their frame. */
  readonly frames: Map<string, ChildOutcome>
  /** Events that nobody has taken yet. */
  readonly events: EntryOf<'event'>[]
  undoing: ErrorTold | undefined
  over: EntryOf<'over'> | undefined
  length: number
}

export const newHistory = (): History => ({ steps: new Map(), frames: new Map(), events: [], undoing: undefined, over: undefined, length: 0 })

/** Adds an entry of the log to what is known. */
export function note(history: History, entry: Entry): void {
  history.length += 1
  if ('s' in entry) return noteStep(history, entry)
  if (entry.t === 'ended') history.frames.set(entry.f, { status: 'completed', output: entry.out })
  else if (entry.t === 'broken') history.frames.set(entry.f, { status: 'failed', error: entry.error })
  else if (entry.t === 'dropped') history.frames.set(entry.f, { status: 'cancelled' })
  else if (entry.t === 'event') history.events.push(entry)
  else if (entry.t === 'undoing') history.undoing = entry.error
  else if (entry.t === 'over') history.over = entry
}

function noteStep(history: History, entry: StepEntry): void {
  const past = history.steps.get(entry.s)
  if (entry.t === 'begun') history.steps.set(entry.s, begunPast(entry, past, history.length))
  else if (past) noteNext(history, past, entry)
}

const begunPast = (begun: EntryOf<'begun'>, before: Past | undefined, order: number): Past => ({
  attempts: begun.n,
  failures: before?.failures ?? 0,
  begun: before?.begun ?? begun,
  last: begun,
  pause: undefined,
  woken: undefined,
  spent: before?.spent ?? { calls: 0, tokens: 0 },
  order,
})

function noteNext(history: History, past: Past, entry: StepEntry): void {
  past.last = entry
  past.order = history.length
  if (entry.t === 'again') past.failures += 1
  if ('spent' in entry) addSpent(past.spent, entry.spent)
  if (entry.t === 'asleep' || entry.t === 'forked') [past.pause, past.woken] = [entry, undefined]
  if (entry.t !== 'woken') return
  past.woken = entry
  if (entry.by === 'event' && past.pause?.t === 'asleep') takeEvent(history, past.pause.event)
}

function addSpent(sum: { calls: number; tokens: number }, spent: Spent | undefined): void {
  sum.calls += spent?.calls ?? 0
  sum.tokens += spent?.tokens ?? 0
}

/** An event that waited for somebody is gone once somebody has it. */
function takeEvent({ events }: History, name: string | undefined): void {
  const at = events.findIndex(one => one.name === name)
  if (at >= 0) events.splice(at, 1)
}

/** What has been spent in all. */
export function spentIn({ steps }: History): Spent {
  let [calls, tokens] = [0, 0]
  for (const { spent } of steps.values()) [calls, tokens] = [calls + spent.calls, tokens + spent.tokens]
  return { calls, tokens }
}
