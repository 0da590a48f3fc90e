import type { CallContext, Events, Log, SlotView, StartSpan, Topic } from '@svc/core'
import {
  JobCancelled,
  JobCompleted,
  type JobEndData,
  JobFailed,
  type JobKind,
  JobRetried,
  JobStarted,
  type JobState,
  type MetricFamily,
  type MetricSource,
  type Peers,
  type Sample,
  type Store,
} from '@svc/core/contracts'
import { definedOf } from '@svc/plugin-kit'
import { tryAcquire } from '@svc/storage-kit/records'
import { JobsService } from './jobs-service.ts'
import { Kinds } from './kinds.ts'
import type { JobsConfig } from './settings.ts'
import { JobWorker } from './worker.ts'
import { deleteOps, type JobRecord, JOBS, requestIdOf } from './space.ts'

export interface JobsOptions {
  readonly store: Store
  readonly view: SlotView<JobKind>
  readonly config: JobsConfig
  /** The prefix of the lease holders of this process. */
  readonly holder: string
  readonly peers: Peers | undefined
  readonly events: Events
  /** Wakes the workers of other processes. */
  readonly announce: () => void
  /** `WorkerOptions.leaseMs`. */
  readonly leaseMs?: number
  /** `WorkerOptions.idleMs`. */
  readonly idleMs?: number
  readonly log: Log
  readonly span: StartSpan
  readonly lasting: CallContext
}

interface JobsOfProcess {
  readonly jobs: JobsService
  readonly worker: JobWorker
  readonly maintenance: JobMaintenance
  readonly metrics: JobMetrics
}

/** The topic that asks the workers to cancel a job. */
export const CANCEL = 'jobs.cancel'
/** The topic of the bus that wakes workers. */
export const TOPIC = 'jobs'
const DAY_MS = 86_400_000

/** Creates the service, and what executes jobs in this process. */
export function createJobs(options: JobsOptions): JobsOfProcess {
  const { store, view, config, holder, peers, announce, leaseMs, idleMs, log, span, lasting } = options
  const kinds = new Kinds(view, config)
  const keepMs = { completed: config.keep_completed_days * DAY_MS, failed: config.keep_failed_days * DAY_MS }
  const report = createReporter(options)
  const ended = (id: string, record: JobRecord, state: JobState) => {
    metrics.ended(record.kind, state)
    report.ended(id, record, state)
  }
  const graceMs = config.grace_s * 1000
  const times = { keepMs, graceMs, ...definedOf({ leaseMs, idleMs }) }
  const worker = new JobWorker({
    store,
    kinds,
    holder,
    ...times,
    concurrency: config.concurrency,
    log,
    span,
    lasting,
    started: report.started,
    ended,
  })
  const metrics = createMetrics(() => worker.running())
  const jobs = new JobsService({
    store,
    kinds,
    keepCompletedMs: keepMs.completed,
    maxQueued: config.max_queued,
    lasting,
    wake() {
      worker.wake()
      // others need not look for what this worker takes at once
      if (!worker.hasRoom) announce()
    },
    async cancelEverywhere(id) {
      if (worker.cancel(id)) return
      // without this message, its worker finds the request within seconds
      await peers?.broadcast(CANCEL, { id }, lasting).catch(err => log.debug({ err }, 'failed to notify the workers'))
    },
  })
  return { jobs, worker, metrics, maintenance: new JobMaintenance({ store, holder, log, lasting }) }
}

/** The topic for the state of a job after an attempt. A job that runs on after it was lost has none. */
const TOPICS: Readonly<Partial<Record<JobState, Topic<JobEndData>>>> = {
  queued: JobRetried,
  completed: JobCompleted,
  failed: JobFailed,
  cancelled: JobCancelled,
}

/** Publishes the attempts of this worker. The principal of the events is the owner of the job. */
function createReporter({ events, lasting }: Pick<JobsOptions, 'events' | 'lasting'>) {
  const ctxOf = (id: string, record: JobRecord): CallContext => ({
    ...lasting,
    principal: { id: record.owner, scopes: [] },
    requestId: requestIdOf(id, record),
  })
  const dataOf = (job: string, { kind, owner, attempts }: JobRecord) => ({ job, kind, owner, attempt: attempts })
  return {
    started: (id: string, record: JobRecord) => void events.publish(JobStarted, dataOf(id, record), ctxOf(id, record)),
    ended(id: string, record: JobRecord, state: JobState) {
      const topic = TOPICS[state]
      const duration_ms = Date.now() - (record.startedAt ?? Date.now())
      if (topic) void events.publish(topic, { ...dataOf(id, record), duration_ms }, ctxOf(id, record))
    },
  }
}

/** Counts of the attempts of this worker. */
interface JobMetrics extends MetricSource {
  ended(kind: string, state: JobState): void
}

/** `running`: number of running jobs of this worker by kind. */
function createMetrics(running: () => ReadonlyMap<string, number>): JobMetrics {
  const counts = new Map<string, { readonly labels: { readonly kind: string; readonly outcome: string }; value: number }>()
  return {
    ended(kind, state) {
      const outcome = state === 'queued' ? 'retried' : state === 'running' ? 'lost' : state
      const key = `${kind}/${outcome}`
      const entry = counts.get(key) ?? { labels: { kind, outcome }, value: 0 }
      entry.value += 1
      counts.set(key, entry)
    },
    async read(): Promise<MetricFamily[]> {
      const active: Sample[] = [...running()].map(([kind, value]) => ({ labels: { kind }, value }))
      return [
        {
          name: 'svc_job_attempts_total',
          help: 'Attempts at jobs by kind and outcome (completed, failed, cancelled, retried, lost)',
          type: 'counter',
          aggregator: 'sum',
          values: [...counts.values()].map(({ labels, value }) => ({ labels, value })),
        },
        { name: 'svc_jobs_running', help: 'Running jobs by kind', type: 'gauge', aggregator: 'sum', values: active },
      ]
    },
  }
}

export interface JobMaintenanceOptions {
  readonly store: Store
  readonly holder: string
  readonly log: Log
  readonly lasting: CallContext
}

const [EVERY_MS, SOON_MS] = [10 * 60_000, 30_000]
const [PAGE, MOST] = [200, 20_000]
const LEASE = 'jobs.maintenance'

/** Deletes expired jobs. Only one worker does it at a time. */
export class JobMaintenance {
  readonly #options: JobMaintenanceOptions
  #timer: NodeJS.Timeout | undefined

  constructor(options: JobMaintenanceOptions) {
    this.#options = options
  }

  begin(): void {
    this.#timer = setTimeout(() => void this.#round(), SOON_MS).unref()
  }

  end(): void {
    clearTimeout(this.#timer)
  }

  async #round(): Promise<void> {
    const { store, holder, lasting, log } = this.#options
    try {
      const request = { holder: `${holder}${crypto.randomUUID()}`, ttlMs: EVERY_MS / 2 }
      const lease = await tryAcquire(store, LEASE, request, lasting)
      if (lease) await this.run().finally(() => store.release({ lease: lease.lease, fence: lease.fence }, lasting))
    } catch (err) {
      if (!lasting.signal.aborted) log.debug({ err }, 'failed to delete expired jobs')
    }
    if (!lasting.signal.aborted) this.#timer = setTimeout(() => void this.#round(), EVERY_MS).unref()
  }

  /** Deletes the jobs that have expired. */
  async run(): Promise<void> {
    const { store, lasting } = this.#options
    for (let done = 0; done < MOST; ) {
      const query = { index: 'by_expiry', from: 0, to: Date.now(), limit: PAGE }
      const { records } = await store.range(JOBS, query, lasting)
      if (records.length === 0) return
      const ops = records.flatMap(({ key, value, version }) => deleteOps(key, value as unknown as JobRecord, version))
      await store.batch(ops, {}, lasting)
      done += records.length
    }
  }
}
