import { type CallContext, codeOf, type Events, type Log } from '@svc/core'
import {
  type ModelDone,
  type Prices,
  type RequestDone,
  type RunEnd,
  type Store,
  type TurnDone,
  RunEnded,
} from '@svc/core/contracts'
import { keepLease } from '@svc/storage-kit'
import type { UsageConfig } from './config.ts'
import { addTo, amountsOf, Bucket, BUCKETS, type Counts, type Dimension, keyOf, type Step, STEP_MS } from './bucket.ts'

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
      const { selected, usage, failure, turn } = done
      const cost = (await prices?.cost(selected, usage, ctx)) ?? 0
      const { input, output, cached = 0, reasoning = 0 } = usage
      const amounts = amountsOf({ calls: 1, failures: failure ? 1 : 0, input, output, cached, reasoning, cost })
      const principal = nameOf(ctx)
      add('total', principal, '', amounts)
      add('model', principal, `${selected.provider}/${selected.model}`, amounts)
      turns.add(turn, principal, amounts)
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
      if (!isFailing && !lasting.signal.aborted) log.warn({ err }, 'failed to store the usage; svc tries again')
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
