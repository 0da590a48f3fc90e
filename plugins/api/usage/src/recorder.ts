import type { CallContext, Log, Span } from '@svc/core'
import type { ModelDone, Prices, RequestDone, RunEnd, Store, TurnDone } from '@svc/core/contracts'
import { Bucket, BUCKETS, type Dimension, type Field, keyOf, type Step, STEP_MS } from './bucket.ts'

type Amounts = Partial<Record<Field, number>>

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
  request(done: RequestDone, ctx: CallContext): void
  model(done: ModelDone, ctx: CallContext): Promise<void>
  turn(done: TurnDone): void
  run(end: RunEnd): void
  spans(spans: readonly Span[]): void
  /** Writes what has changed. Never fails: what could not be written is written the next time. */
  flush(): Promise<void>
}

const STEPS: readonly Step[] = ['minute', 'hour']
/** Turns and runs that have not ended, whose model calls are not booked yet. */
const MOST_PENDING = 10_000
/** The status from which a request counts as an error. */
const ERROR = 500

export function createRecorder(options: RecorderOptions): Recorder {
  const { prices, now = Date.now } = options
  const buckets = createBuckets(options)
  const add = (principal: string, amounts: Amounts, labels: readonly (readonly [Dimension, string])[]) => {
    for (const bucket of buckets.at(now()))
      for (const [dimension, label] of labels) bucket.add(dimension, principal, label, amounts)
  }
  const [turns, runs] = [createPending(), createPending()]
  return {
    request({ method, route, status, seconds }, ctx) {
      const principal = nameOf(ctx)
      const ms = seconds * 1_000
      const amounts = { requests: 1, errors: status >= ERROR ? 1 : 0, latency: ms }
      const labels = [
        ['total', ''],
        ['route', `${method || 'none'} ${route || 'none'}`],
        ['status', String(status)],
      ] as const
      add(principal, amounts, labels)
      for (const bucket of buckets.at(now())) bucket.latency(principal, ms)
    },
    async model(done, ctx) {
      if (done.answered) return
      const { selected, usage, failure, turn } = done
      // the price is known at once: the service is part of this process
      const cost = (await prices?.cost(selected, usage, ctx)) ?? 0
      const { input, output, cached = 0, reasoning = 0 } = usage
      const amounts = { calls: 1, failures: failure ? 1 : 0, input, output, cached, reasoning, cost }
      const principal = nameOf(ctx)
      add(principal, amounts, [
        ['total', ''],
        ['model', `${selected.provider}/${selected.model}`],
      ])
      turns.add(turn, principal, amounts)
      runs.add(ctx.requestId, principal, amounts)
    },
    turn({ turn, end }) {
      for (const [principal, amounts] of turns.take(turn))
        add(principal, amounts, [['conversation', end.conversationId || 'none']])
    },
    run({ run, workflow }) {
      for (const [principal, amounts] of runs.take(run)) add(principal, amounts, [['workflow', workflow]])
    },
    spans(spans) {
      for (const { attributes, principal, startMs, endMs, status } of spans) {
        const tool = attributes['gen_ai.operation.name'] === 'execute_tool' ? attributes['gen_ai.tool.name'] : undefined
        if (typeof tool !== 'string' || endMs === undefined) continue
        add(principal, { calls: 1, failures: status === 'error' ? 1 : 0, latency: endMs - startMs }, [['tool', tool]])
      }
    },
    flush: buckets.flush,
  }
}

/** Requests that the server could not read have no principal. */
const nameOf = ({ principal }: CallContext) => principal.id || 'anonymous'

function createBuckets({ store, worker, log, lasting }: RecorderOptions) {
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
  const write = async () => {
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
    at: (time: number) => STEPS.map(step => bucketOf(step, time)),
    flush: () => (writing = writing.then(write)),
  }
}
/** Buckets that wait for the store: an hour of minutes. */
const MOST_ENDED = 64

/** Amounts of work that has not ended, by its id. The oldest are forgotten first: they count, but without a label. */
function createPending() {
  const all = new Map<string, Map<string, Amounts>>()
  return {
    add(id: string, principal: string, amounts: Amounts) {
      const own = all.get(id) ?? new Map<string, Amounts>()
      if (all.size >= MOST_PENDING && !all.has(id)) all.delete(all.keys().next().value!)
      all.set(id, own.set(principal, sumOf(own.get(principal) ?? {}, amounts)))
    },
    take(id: string): Iterable<[string, Amounts]> {
      const own = all.get(id)
      all.delete(id)
      return own ?? []
    },
  }
}

function sumOf(one: Amounts, other: Amounts): Amounts {
  const sum: Amounts = { ...one }
  for (const [field, value] of Object.entries(other)) sum[field as Field] = (sum[field as Field] ?? 0) + value
  return sum
}
