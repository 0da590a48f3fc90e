import type { CallContext } from '@svc/core'
import type { Check, MetricFamily, RunQueue, RunStatus, Sample, Store } from '@svc/core/contracts'
import { counter, createDistribution, type Distribution, histogram, metricFamily } from '@svc/plugin-kit'
import type { Entry, History } from './history.ts'
import { type RunRecord, RUNS } from './space.ts'
import type { RunWorker } from './worker.ts'

/** Metrics of the runs of this worker. */
export interface RunMetrics {
  stored(entries: readonly Entry[], history: History): void
  ended(record: RunRecord): void
  /** `waiting` and `due` count the runs of all workers. They are undefined while the store is unavailable. */
  families(waiting: number | undefined, due: number | undefined): MetricFamily[]
}

export interface RunMetricsOptions {
  /** Whether a plugin or a file defines this workflow. Callers can invent other names. */
  readonly isNamed: (workflow: string) => boolean
  /** Number of runs that this worker executes. */
  readonly active: () => number
}

/** Maximum number of workflow labels. Runs of other workflows count as `other`. */
const NAMES = 200
/** Upper bounds of the histogram buckets, in seconds. */
const BOUNDS = [0.01, 0.1, 0.5, 1, 5, 30, 120, 600] as const

type Ended = 'completed' | 'failed' | 'cancelled'
interface Steps {
  readonly type: string
  readonly counts: Record<Ended, number>
  readonly seconds: Distribution
}

export function createRunMetrics({ isNamed, active }: RunMetricsOptions): RunMetrics {
  const runs = new Map<string, { readonly workflow: string; readonly status: RunStatus; count: number }>()
  const names = new Set<string>()
  const steps = new Map<string, Steps>()

  const nameOf = (workflow: string) => {
    if (!names.has(workflow) && names.size < NAMES && isNamed(workflow)) names.add(workflow)
    return names.has(workflow) ? workflow : 'other'
  }
  const stepsOf = (type: string) => {
    const there = steps.get(type)
    if (there) return there
    const made = { type, counts: { completed: 0, failed: 0, cancelled: 0 }, seconds: createDistribution(BOUNDS) }
    steps.set(type, made)
    return made
  }
  return {
    stored(entries, history) {
      for (const entry of entries) {
        if (entry.t !== 'done' && entry.t !== 'failed') continue
        const { begun } = history.steps.get(entry.s)!
        const { counts, seconds } = stepsOf(begun.type)
        counts[entry.t === 'done' ? 'completed' : 'failed'] += 1
        seconds.add((entry.at - begun.at) / 1_000)
      }
    },
    ended({ workflow: given, status }) {
      const workflow = nameOf(given)
      const there = runs.get(`${workflow}/${status}`) ?? { workflow, status, count: 0 }
      there.count += 1
      runs.set(`${workflow}/${status}`, there)
    },
    families: (waiting, due) => [
      counter(
        'svc_workflow_runs_total',
        'Completed and failed runs.',
        [...runs.values()].map(({ count: value, ...labels }) => ({ labels, value }))
      ),
      counter('svc_workflow_steps_total', 'Completed and failed steps.', [...steps.values()].flatMap(totalsOf)),
      histogram(
        'svc_workflow_step_seconds',
        'Duration of steps, including the time they waited.',
        [...steps.values()].map(({ type, seconds }) => [{ type }, seconds] as const)
      ),
      metricFamily('gauge', 'svc_workflow_runs_active', 'Runs in progress.', [{ labels: {}, value: active() }]),
      ...(waiting === undefined ? [] : [waitingFamily(waiting)]),
      ...(due === undefined ? [] : [dueFamily(due)]),
    ],
  }
}

/** Each worker reports the number for all workers. */
const waitingFamily = (value: number): MetricFamily =>
  metricFamily(
    'gauge',
    'svc_workflow_runs_waiting',
    'Runs that wait for people, events or time, among the first 1000 open runs.',
    [{ labels: {}, value }],
    'max'
  )

const dueFamily = (value: number): MetricFamily =>
  metricFamily(
    'gauge',
    'svc_workflow_runs_due',
    'Due runs of all servers that wait for a worker, at most 1000. Runs of a limited group and runs bound to a node do not count.',
    [{ labels: {}, value }],
    'max'
  )

const totalsOf = ({ type, counts }: Steps): Sample[] =>
  Object.entries(counts).flatMap(([status, value]) => (value > 0 ? [{ labels: { type, status }, value }] : []))

// --- open runs, and the health check ---

/** Reports whether this worker takes runs from the queue, and how many runs are open. */
export function createCheck(worker: Pick<RunWorker, 'problem' | 'size'>, store: Store): Check {
  const probe: Check['probe'] = async () =>
    worker.problem === undefined
      ? { status: 'healthy' }
      : { status: 'degraded', reason: `cannot take runs from the queue: ${worker.problem}` }
  return {
    probe,
    async status(ctx) {
      const { open, waiting, andMore } = await openRuns(store, ctx)
      const detail = { runs_here: worker.size, runs_open: open, runs_waiting: waiting, ...(andMore ? { and_more: true } : {}) }
      return { ...(await probe(ctx)), detail }
    },
  }
}

/** Open runs of all workers. */
interface OpenRuns {
  readonly open: number
  /** Runs among them that slept at their last write: for a person, an event or a time. */
  readonly waiting: number
  /** Whether there are more runs than were read. */
  readonly andMore: boolean
}

/** Maximum number of runs to read, because metrics are read often. */
const LOOKED = 1_000

/** How long the number of waiting runs is good without changes in this process: the supervisor collects all metrics each second. */
const FRESH_MS = 10_000

/** The number of waiting runs, read again after a change in this process, and otherwise now and then. */
export class WaitingRuns {
  readonly #store: Store
  #changes = 0
  #known: { readonly waiting: number; readonly changes: number; readonly until: number } | undefined

  constructor(store: Store) {
    this.#store = store
  }

  /** A run has changed in this process. */
  changed(): void {
    this.#changes += 1
  }

  async read(ctx: CallContext): Promise<number> {
    const [changes, now] = [this.#changes, performance.now()]
    if (this.#known?.changes === changes && now < this.#known.until) return this.#known.waiting
    const { waiting } = await openRuns(this.#store, ctx)
    this.#known = { waiting, changes, until: now + FRESH_MS }
    return waiting
  }
}

/** How long the number of due runs is good: each worker counts for itself, so that the cost does not grow with the scrapes. */
const DUE_FRESH_MS = 5_000

/** The number of due runs, read again now and then. Reads at the same time share one. */
export class DueRuns {
  readonly #queue: Pick<RunQueue, 'countDue'>
  readonly #lasting: CallContext
  #known: { readonly due: Promise<number>; readonly until: number } | undefined

  constructor(queue: Pick<RunQueue, 'countDue'>, lasting: CallContext) {
    this.#queue = queue
    this.#lasting = lasting
  }

  /** Rejects while the store is unavailable, until the next read. */
  read(): Promise<number> {
    const now = performance.now()
    if (!this.#known || now >= this.#known.until) {
      // a queue of a plugin can be of an earlier version of the contract
      const due = Promise.resolve().then(() => this.#queue.countDue(this.#lasting))
      this.#known = { due, until: now + DUE_FRESH_MS }
    }
    return this.#known.due
  }
}

async function openRuns(store: Store, ctx: CallContext): Promise<OpenRuns> {
  const { records, next } = await store.range(RUNS, { index: 'by_status', equals: ['running'], limit: LOOKED }, ctx)
  const waiting = records.filter(({ value }) => (value as unknown as RunRecord).waiting.length > 0).length
  return { open: records.length, waiting, andMore: next !== undefined }
}
