import { type CallContext, codeOf, type Events, type Log } from '@svc/core'
import {
  type ModelDone,
  type Prices,
  type RequestDone,
  type RunEnd,
  type Store,
  type TurnDone,
  RunEnded,
  type Json,
  type Space,
} from '@svc/core/contracts'
import { keepLease } from '@svc/storage-kit'
import type { UsageConfig } from './config.ts'

/** Buckets of one worker: `<step>/<start>/<worker>`. */
export const BUCKETS = 'usage_buckets'
export const SPACE: Space = { name: 'usage', version: 1, collections: { [BUCKETS]: {} } }

export type Step = 'minute' | 'hour'
export const STEP_MS: Readonly<Record<Step, number>> = { minute: 60_000, hour: 3_600_000 }

/** What is counted. All but `latency`, which is milliseconds, and `cost` are whole numbers. */
export const FIELDS = [
  'requests',
  'errors',
  'latency',
  'calls',
  'failures',
  'input',
  'output',
  'cached',
  'reasoning',
  'cost',
] as const
export type Field = (typeof FIELDS)[number]
/** The counts in the order of `FIELDS`. */
export type Counts = number[]

/** What the counts of a row are counted by. Each row counts everything of its principal that has this label. */
const DIMENSIONS = ['total', 'route', 'status', 'model', 'conversation', 'workflow', 'tool'] as const
export type Dimension = (typeof DIMENSIONS)[number]

/** Bounds of the latencies, in milliseconds. The last bucket of a histogram is for all above. */
export const BOUNDS_MS = [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000]

/** A stored bucket: rows by dimension, principal and label; latencies by principal. */
export interface StoredBucket {
  readonly rows: readonly (readonly [dimension: Dimension, principal: string, label: string, counts: readonly number[]])[]
  readonly latencies: readonly (readonly [principal: string, counts: readonly number[]])[]
}

/** What a full bucket counts further principals and labels as. */
export const OTHER = 'other'
/** Rows of a dimension in a bucket; a bucket of an hour has five times as many. */
const MOST: Readonly<Record<Step, number>> = { minute: 200, hour: 1_000 }
const LONGEST = 200

const keyOf = (step: Step, start: number, worker: string) => `${step}/${String(start).padStart(15, '0')}/${worker}`

/** The start of a bucket, from its key. */
export const startIn = (key: string): number => Number(key.split('/')[1])

/** Amounts in the order of `FIELDS`. */
const amountsOf = (given: Partial<Record<Field, number>>): Counts => FIELDS.map(field => given[field] ?? 0)

export function addTo(sum: Counts, more: readonly number[]): void {
  for (let at = 0; at < more.length; at++) sum[at] = (sum[at] ?? 0) + more[at]!
}

/** Labels of a principal. Nested maps: joining three texts for each event costs more than counting it. */
type Rows = Map<string, Map<string, Counts>>

/** The counts of one span of time in this worker. Memory and record have a limit, whatever labels callers choose. */
class Bucket {
  readonly step: Step
  readonly start: number
  isDirty = false
  readonly #rows = new Map<Dimension, Rows>()
  readonly #sizes = new Map<Dimension, number>()
  readonly #latencies = new Map<string, Counts>()

  constructor(step: Step, start: number) {
    this.step = step
    this.start = start
  }

  add(dimension: Dimension, principal: string, label: string, amounts: readonly number[]): void {
    addTo(this.#row(dimension, principal, label), amounts)
    this.isDirty = true
  }

  latency(principal: string, ms: number): void {
    const at = BOUNDS_MS.findIndex(bound => ms <= bound)
    this.#latenciesOf(principal)[at < 0 ? BOUNDS_MS.length : at]! += 1
    this.isDirty = true
  }

  /** Adds the counts of another bucket. */
  fold(other: Bucket): void {
    for (const [dimension, rows] of other.#rows)
      for (const [principal, labels] of rows) for (const [label, counts] of labels) this.add(dimension, principal, label, counts)
    for (const [principal, counts] of other.#latencies) addTo(this.#latenciesOf(principal), counts)
    this.isDirty = true
  }

  value(): Json {
    const rows: StoredBucket['rows'] = [...this.#rows].flatMap(([dimension, principals]) =>
      [...principals].flatMap(([principal, labels]) =>
        [...labels].map(([label, counts]) => [dimension, principal, label, counts] as const)
      )
    )
    return { rows, latencies: [...this.#latencies] } satisfies StoredBucket as unknown as Json
  }

  #latenciesOf(principal: string): Counts {
    const found = this.#latencies.get(principal)
    if (found) return found
    const name = this.#latencies.size < MOST[this.step] ? short(principal) : OTHER
    const counts = this.#latencies.get(name) ?? Array.from({ length: BOUNDS_MS.length + 1 }, () => 0)
    this.#latencies.set(name, counts)
    return counts
  }

  /** A label of a full dimension is counted as `other` of its principal, and of a further principal as `other` of all. */
  #row(dimension: Dimension, principal: string, label: string): Counts {
    const found = this.#rows.get(dimension)?.get(principal)?.get(label)
    if (found) return found
    const [who, what] = [short(principal), short(label)]
    return (
      this.#find(dimension, who, what, 0) ??
      this.#find(dimension, who, OTHER, MOST[this.step]) ??
      this.#find(dimension, OTHER, OTHER, Number.POSITIVE_INFINITY)!
    )
  }

  #find(dimension: Dimension, principal: string, label: string, spare: number): Counts | undefined {
    const rows = this.#rows.get(dimension) ?? (new Map() as Rows)
    const labels = rows.get(principal) ?? new Map<string, Counts>()
    const found = labels.get(label)
    if (found) return found
    const size = this.#sizes.get(dimension) ?? 0
    if (size >= MOST[this.step] + spare) return undefined
    const counts: Counts = FIELDS.map(() => 0)
    this.#rows.set(dimension, rows.set(principal, labels.set(label, counts)))
    this.#sizes.set(dimension, size + 1)
    return counts
  }
}

const short = (text: string) => text.slice(0, LONGEST).toWellFormed()

export interface RecorderOptions {
  readonly store: Store
  readonly prices: Prices | undefined
  readonly worker: string
  readonly log: Log
  readonly lasting: CallContext
  readonly now?: () => number
}

/** Counts what happens in this worker, and writes it to the store. */
export interface Recorder {
  readonly request: (done: RequestDone, ctx: CallContext) => void
  readonly model: (done: ModelDone, ctx: CallContext) => Promise<void>
  readonly turn: (done: TurnDone, ctx: CallContext) => void
  readonly run: (end: RunEnd) => void
  /** Writes what has changed. Never fails: what could not be written is written the next time. */
  readonly flush: () => Promise<void>
}

const STEPS: readonly Step[] = ['minute', 'hour']
/** Turns and runs that have not ended, whose model calls are not booked yet. */
const MOST_PENDING = 10_000
/** The status from which a request counts as an error. */
const ERROR = 500

export function createRecorder(options: RecorderOptions): Recorder {
  const { prices, now = Date.now } = options
  const buckets = createBuckets(options)
  const add = (dimension: Dimension, principal: string, label: string, amounts: Counts) =>
    buckets.at(now()).add(dimension, principal, label, amounts)
  const [turns, runs] = [createPending(), createPending()]
  return {
    request({ method, route, status, seconds }, ctx) {
      const [principal, ms] = [nameOf(ctx), seconds * 1_000]
      const amounts = amountsOf({ requests: 1, errors: status >= ERROR ? 1 : 0, latency: ms })
      const bucket = buckets.at(now())
      bucket.add('total', principal, '', amounts)
      bucket.add('route', principal, `${method || 'none'} ${route || 'none'}`, amounts)
      bucket.add('status', principal, String(status), amounts)
      bucket.latency(principal, ms)
    },
    async model(done, ctx) {
      if (done.answered) return
      const { selected, usage, failure, turn, single } = done
      const cost = (await prices?.cost(selected, usage, ctx)) ?? 0
      const { input, output, cached = 0, reasoning = 0 } = usage
      const amounts = amountsOf({ calls: 1, failures: failure ? 1 : 0, input, output, cached, reasoning, cost })
      const principal = nameOf(ctx)
      add('total', principal, '', amounts)
      add('model', principal, `${selected.provider}/${selected.model}`, amounts)
      // nothing ends a single call: it would wait until it displaces a turn
      if (!single) turns.add(turn, principal, amounts)
      if (canBeRun(ctx.requestId)) runs.add(ctx.requestId, principal, amounts)
    },
    turn({ turn, end }, ctx) {
      for (const { tool, success, durationMs } of end.toolsUsed)
        add('tool', nameOf(ctx), tool, amountsOf({ calls: 1, failures: success ? 0 : 1, latency: durationMs }))
      for (const [principal, amounts] of turns.take(turn)) add('conversation', principal, end.conversationId || 'none', amounts)
    },
    run({ run, workflow }) {
      for (const [principal, amounts] of runs.take(run)) add('workflow', principal, workflow, amounts)
    },
    flush: buckets.flush,
  }
}

/** Whether an id can be that of a run: a UUID of version 7. Those that the server makes for requests have version 4. */
const canBeRun = (requestId: string) => requestId[14] === '7'

/** Requests that the server could not read have no principal. */
const nameOf = ({ principal }: CallContext) => principal.id || 'anonymous'

function createBuckets({ store, worker, log, lasting }: RecorderOptions) {
  /** The counts since the last write, of one minute: one bucket to count in costs half as much as two. */
  let fresh = new Bucket('minute', 0)
  const open = new Map<Step, Bucket>()
  let ended: Bucket[] = []
  let writing: Promise<void> = Promise.resolve()
  let isFailing = false
  const bucketOf = (step: Step, time: number): Bucket => {
    const start = Math.floor(time / STEP_MS[step]) * STEP_MS[step]
    const bucket = open.get(step)
    // never back to an earlier bucket, when the clock is set back: it would replace what is stored
    if (bucket && bucket.start >= start) return bucket
    if (bucket?.isDirty) ended = [...ended, bucket].slice(-MOST_ENDED)
    const next = new Bucket(step, start)
    open.set(step, next)
    return next
  }
  const fold = () => {
    if (!fresh.isDirty) return
    for (const step of STEPS) bucketOf(step, fresh.start).fold(fresh)
    fresh = new Bucket('minute', fresh.start)
  }
  const write = async () => {
    fold()
    const dirty = [...ended, ...open.values()].filter(bucket => bucket.isDirty)
    ended = []
    for (const bucket of dirty) bucket.isDirty = false
    const ops = dirty.map(bucket => ({
      op: 'put' as const,
      collection: BUCKETS,
      key: keyOf(bucket.step, bucket.start, worker),
      value: bucket.value(),
    }))
    if (ops.length === 0) return
    try {
      await store.batch(ops, {}, lasting)
      isFailing = false
    } catch (err) {
      for (const bucket of dirty) bucket.isDirty = true
      ended = [...dirty.filter(bucket => open.get(bucket.step) !== bucket), ...ended].slice(-MOST_ENDED)
      if (!isFailing && !lasting.signal.aborted) log.warn({ err }, 'failed to store the usage; svc retries')
      isFailing = true
    }
  }
  return {
    at(time: number): Bucket {
      const isNow = time >= fresh.start && time < fresh.start + STEP_MS.minute
      if (isNow) return fresh
      fold()
      fresh = new Bucket('minute', Math.floor(time / STEP_MS.minute) * STEP_MS.minute)
      return fresh
    },
    flush: () => (writing = writing.then(write)),
  }
}
/** Buckets that wait for the store: an hour of minutes. */
const MOST_ENDED = 64

/** Amounts of work that has not ended, by its id. The oldest are forgotten first: they count, but without a label. */
function createPending() {
  const all = new Map<string, Map<string, Counts>>()
  return {
    add(id: string, principal: string, amounts: Counts) {
      const own = all.get(id) ?? new Map<string, Counts>()
      if (all.size >= MOST_PENDING && !all.has(id)) all.delete(all.keys().next().value!)
      const counts = own.get(principal) ?? [...amounts]
      if (own.has(principal)) addTo(counts, amounts)
      all.set(id, own.set(principal, counts))
    },
    take(id: string): Iterable<[string, Counts]> {
      const own = all.get(id)
      all.delete(id)
      return own ?? []
    },
  }
}

/** Reports each run of this worker that has ended. */
export async function followRuns(events: Events, take: Recorder['run'], ctx: CallContext): Promise<void> {
  const filter = { categories: [RunEnded.category], types: [RunEnded.type] }
  for await (const { data } of events.subscribe(filter, ctx)) take(data as unknown as Parameters<typeof take>[0])
}

const [LEASE_MS, PAGE] = [30_000, 500]

interface PruneOptions {
  readonly config: UsageConfig
  readonly worker: string
  readonly log: Log
}

/** Deletes the buckets that are older than `usage.keep`, unless another worker does so. */
export async function deleteOld(store: Store, { config: { keep }, worker, log }: PruneOptions, ctx: CallContext): Promise<void> {
  const ages: Readonly<Record<Step, number>> = { minute: keep.hours * STEP_MS.hour, hour: keep.days * 24 * STEP_MS.hour }
  try {
    await using held = await keepLease(store, 'usage.prune', { holder: `${worker}/usage`, ttlMs: LEASE_MS, waitMs: 0 }, ctx)
    for (const step of ['minute', 'hour'] as const) {
      const to = `${step}/${String(Date.now() - ages[step]).padStart(15, '0')}`
      for (;;) {
        const { records } = await store.range(BUCKETS, { from: `${step}/`, to, limit: PAGE }, held.ctx)
        if (records.length === 0) break
        await store.batch(
          records.map(({ key }) => ({ op: 'delete' as const, collection: BUCKETS, key })),
          {},
          held.ctx
        )
      }
    }
  } catch (err) {
    if (codeOf(err) !== 'LEASE_BUSY' && !ctx.signal.aborted) log.warn({ err }, 'failed to delete old usage')
  }
}
