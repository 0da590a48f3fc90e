import type { CallContext, Log, SlotView } from '@svc/core'
import type { JobKind, JobState, Peers, Store } from '@svc/core/contracts'
import { JobsService } from './jobs-service.ts'
import { Kinds } from './kinds.ts'
import { Maintenance } from './maintenance.ts'
import { createMetrics, type JobMetrics } from './metrics.ts'
import type { JobsConfig } from './settings.ts'
import { Worker } from './worker.ts'

export interface JobsOptions {
  readonly store: Store
  readonly view: SlotView<JobKind>
  readonly config: JobsConfig
  /** The prefix of the lease holders of this process. */
  readonly holder: string
  readonly peers: Peers | undefined
  /** `WorkerOptions.leaseMs`. */
  readonly leaseMs?: number
  readonly log: Log
  readonly lasting: CallContext
}

interface JobsOfProcess {
  readonly jobs: JobsService
  readonly worker: Worker
  readonly maintenance: Maintenance
  readonly metrics: JobMetrics
}

/** The topic that asks the workers to cancel a job. */
export const CANCEL = 'jobs.cancel'
const DAY_MS = 86_400_000

/** Creates the service, and what executes jobs in this process. */
export function createJobs(options: JobsOptions): JobsOfProcess {
  const { store, view, config, holder, peers, leaseMs, log, lasting } = options
  const kinds = new Kinds(view, config)
  const keepMs = { completed: config.keep_completed_days * DAY_MS, failed: config.keep_failed_days * DAY_MS }
  const ended = (kind: string, state: JobState) => metrics.ended(kind, state)
  const graceMs = config.grace_s * 1000
  const times = { keepMs, graceMs, ...(leaseMs === undefined ? {} : { leaseMs }) }
  const worker = new Worker({ store, kinds, holder, ...times, concurrency: config.concurrency, log, lasting, ended })
  const metrics = createMetrics(() => worker.running())
  const jobs = new JobsService({
    store,
    kinds,
    keepCompletedMs: keepMs.completed,
    maxQueued: config.max_queued,
    lasting,
    wake: () => worker.wake(),
    async cancelEverywhere(id) {
      if (worker.cancel(id)) return
      // without this message, its worker finds the request within seconds
      await peers?.broadcast(CANCEL, { id }, lasting).catch(err => log.debug({ err }, 'failed to notify the workers'))
    },
  })
  return { jobs, worker, metrics, maintenance: new Maintenance({ store, holder, log, lasting }) }
}
