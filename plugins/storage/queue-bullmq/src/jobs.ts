import { hash } from 'node:crypto'
import type { CallContext, Log } from '@svc/core'
import type { QueuedRun, Redis } from '@svc/core/contracts'
import { Batches } from '@svc/storage-kit/batches'
import type { QueueEntry } from '@svc/storage-kit/run-leases'
import { NEVER } from '@svc/storage-kit/store-queue'
import type { Job, Queue, Worker } from 'bullmq'
import { RedisClient } from './redis-client.ts'

export interface JobsOptions {
  readonly redis: Redis
  /** The name of the node of this process. */
  readonly node: string
  /** The holder of the claims of this process: the token of its jobs in BullMQ. */
  readonly holder: string
  /** Milliseconds after which BullMQ forgets who has a job. */
  readonly lockMs: number
  readonly log: Log
  readonly lasting: CallContext
}

/** What a job says about its run. */
interface RunData extends Pick<QueuedRun, 'id' | 'group' | 'affinity'> {}

/** A job that this process has. */
export type RunJob = Job<unknown>

/** A job to add. */
interface NewJob {
  readonly queue: string
  readonly name: string
  readonly data: RunData
  readonly opts: {
    readonly jobId: string
    readonly delay: number
    readonly lifo: boolean
    readonly removeOnComplete: true
    readonly removeOnFail: true
  }
}

/** The queue of runs that any node can execute. */
const RUNS_QUEUE = 'runs'
/** Names that BullMQ allows for jobs, and that an operator can read. */
const PLAIN = /^(?!\d+$)[\w.@-]{1,200}$/
const LONGEST_DELAY_MS = 30 * 86_400_000
/** Queues of other nodes that are open. */
const MOST_QUEUES = 50

/** Other names are hashed: a colon separates the parts of a key, and BullMQ numbers its own jobs. */
export const keyOf = (name: string): string => (PLAIN.test(name) ? name : `~${hash('sha256', name)}`)

const queueOf = (affinity: string | undefined): string =>
  affinity === undefined ? RUNS_QUEUE : `${RUNS_QUEUE}-${hash('sha256', affinity).slice(0, 16)}`

/**
 * The jobs of BullMQ: at most one for each run, which tells the workers when to look at it. The entry in the store says whether the run
 * is due; so a job that is missing, comes twice or comes too early does no harm.
 */
export class Jobs {
  readonly #options: JobsOptions
  readonly #open: (name: string) => Queue
  readonly #queues = new Map<string, Queue>()
  readonly #own: readonly Worker[]
  readonly #adding = new Batches<NewJob, undefined>(jobs => this.#addAll(jobs))
  readonly #keeping = new Batches<RunJob, undefined>(jobs => this.#extend(jobs))

  private constructor(options: JobsOptions, open: (name: string) => Queue, own: readonly Worker[]) {
    this.#options = options
    this.#open = open
    this.#own = own
  }

  static async open(options: JobsOptions): Promise<Jobs> {
    const { redis, node, lockMs, log, lasting } = options
    // only a server with this queue loads it
    const [{ Queue: QueueOf, Worker: WorkerOf }, own] = [await import('bullmq'), await redis.prefix(lasting)]
    const connection = new RedisClient(redis, own, lasting)
    connection.setMaxListeners(0)
    const common = { connection, prefix: `${own}queue`, skipVersionCheck: true, skipMetasUpdate: true }
    const report = (err: unknown) => log.debug({ err }, 'BullMQ reports an error')
    const open = (name: string): Queue => new QueueOf(name, common).on('error', report)
    const workerOf = (name: string): Worker =>
      new WorkerOf(name, null, { ...common, autorun: false, lockDuration: lockMs }).on('error', report)
    return new Jobs(options, open, [workerOf(RUNS_QUEUE), workerOf(queueOf(node))])
  }

  /** The next due job that workers of this node may have. */
  async next(): Promise<RunJob | undefined> {
    for (const worker of this.#own) {
      const job = (await worker.getNextJob(this.#options.holder, { block: false })) as RunJob | undefined
      if (job) return job
    }
    return undefined
  }

  /** Tells workers when to look at a run. A job that its lost worker has is free. */
  async place(id: string, entry: QueueEntry): Promise<void> {
    if (entry.due >= NEVER) return
    const [key, isDue] = [keyOf(id), entry.due <= Date.now()]
    const backend = this.#queue(queueOf(entry.affinity)).getBackend()
    if (entry.holder !== undefined)
      await backend.moveJobFromActiveToWait(key, entry.holder).catch((error: unknown) => {
        onlyJob(error)
        // its lock is over, or lost
        return backend.remove(key, false).catch(onlyJob)
      })
    // one that waits for a later time is due now
    const moved = isDue ? backend.promote(key).catch(onlyJob) : undefined
    await Promise.all([moved, this.#adding.add(this.#jobOf(id, entry, false))])
  }

  /** The same for a run whose job can be lost, whole or in part. It comes next. Returns false if a worker has its job. */
  async replace(id: string, entry: QueueEntry): Promise<boolean> {
    const removed = await this.#queue(queueOf(entry.affinity)).remove(keyOf(id)).catch(onlyJob)
    if (removed === 1) await this.#adding.add(this.#jobOf(id, { ...entry, due: 0 }, true))
    return removed === 1
  }

  /** Returns a job that is looked at again later. */
  async delay(job: RunJob, ms: number): Promise<void> {
    await job.moveToDelayed(Date.now() + Math.min(ms, LONGEST_DELAY_MS), this.#options.holder).catch(onlyJob)
  }

  /** Ends a job. */
  async finish(job: RunJob): Promise<void> {
    try {
      await job.moveToCompleted(null, this.#options.holder, false)
    } catch (error) {
      onlyJob(error)
      // its lock is over, or lost
      await this.#queue(job.queueName).remove(job.id!).catch(onlyJob)
    }
  }

  async keep(job: RunJob): Promise<void> {
    await this.#keeping.add(job)
  }

  async close(): Promise<void> {
    await Promise.all([...this.#own, ...this.#queues.values()].map(one => one.close()))
  }

  #queue(name: string): Queue {
    const known = this.#queues.get(name)
    if (known) return known
    const [oldest] = this.#queues.keys()
    if (oldest !== undefined && this.#queues.size >= MOST_QUEUES) {
      void this.#queues.get(oldest)!.close()
      this.#queues.delete(oldest)
    }
    const queue = this.#open(name)
    this.#queues.set(name, queue)
    return queue
  }

  #jobOf(id: string, { due, group, affinity }: QueueEntry, lifo: boolean): NewJob {
    const data = { id, ...(group ? { group } : {}), ...(affinity === undefined ? {} : { affinity }) }
    const delay = Math.min(Math.max(0, due - Date.now()), LONGEST_DELAY_MS)
    const opts = { jobId: keyOf(id), delay, lifo, removeOnComplete: true, removeOnFail: true } as const
    return { queue: queueOf(affinity), name: 'run', data, opts }
  }

  async #addAll(jobs: readonly NewJob[]): Promise<undefined[]> {
    const byQueue = Map.groupBy(jobs, ({ queue }) => queue)
    await Promise.all([...byQueue].map(([name, some]) => this.#queue(name).addBulk(some)))
    return jobs.map(() => undefined)
  }

  async #extend(jobs: readonly RunJob[]): Promise<undefined[]> {
    const { holder, lockMs } = this.#options
    for (const worker of this.#own) {
      const ids = jobs.filter(job => job.queueName === worker.name).map(job => job.id!)
      if (ids.length > 0)
        await worker.extendJobLocks(
          ids,
          ids.map(() => holder),
          lockMs
        )
    }
    return jobs.map(() => undefined)
  }
}

/** Errors of BullMQ about the state of a job, which another worker can have changed. Throws others. */
function onlyJob(error: unknown): undefined {
  const { code } = Object(error) as { code?: unknown }
  if (typeof code !== 'number') throw error
  return undefined
}

/** The run of a job; undefined if svc has not written it. */
export function runIn(data: unknown): string | undefined {
  const { id } = Object(data) as { id?: unknown }
  return typeof id === 'string' && id !== '' ? id : undefined
}
