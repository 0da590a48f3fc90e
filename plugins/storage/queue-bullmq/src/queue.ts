import { type CallContext, type Log, Wakeup } from '@svc/core'
import type { CheckReport, NodeBus, QueuedRun, ReturnedRun, RunClaim, RunQueue, Store, StoreRecord } from '@svc/core/contracts'
import { Announcer } from '@svc/storage-kit/announcer'
import { QueueHealth } from '@svc/storage-kit/queue-health'
import { tryAcquire } from '@svc/storage-kit/records'
import { entryIn, NEVER, StoreQueue } from '@svc/storage-kit/store-queue'
import { type Jobs, type RunJob, runIn } from './jobs.ts'

export interface QueueOptions {
  readonly jobs: Jobs
  readonly store: Store
  /** Wakes the workers of other processes. Without it, they look once a second. */
  readonly bus: NodeBus | undefined
  /** The prefix of the lease holders of this process. */
  readonly holder: string
  /** The name of the node of this process. */
  readonly node: string
  /** Milliseconds after which a claim expires without renewal. Default 30,000. */
  readonly claimMs?: number
  /** When the health check complains. Default 30,000. */
  readonly lateMs?: number
  readonly log: Log
  /** A context that lasts as long as the process, so that no claim is left unfinished. */
  readonly lasting: CallContext
}

/** The topic of the bus that wakes workers. */
export const TOPIC = 'run_queue'
const [CLAIM_MS, LATE_MS] = [30_000, 30_000]
/** A claim is renewed every 10 seconds, and its job with it. */
export const LOCK_MS = 30_000
/** How often the queue is read without a wake-up: for runs that become due. */
const POLL_MS = 1_000
/** When a job is looked at again whose run another process has or changes, or whose group is full. */
const LATER_MS = 1_000
/** How long runs are taken from the store before Redis is asked again. */
const LOST_MS = 1_000
/** How often lost jobs are looked for in the life of a claim, and from when on a due run has lost its job. */
const [SWEEPS, OVERDUE_MS] = [10, 1_000]
/** How long a new process looks at all claims: those of an earlier one can be over. */
const SETTLE_MS = 5_000
const PAGE = 100

/**
 * A run queue with BullMQ. The store has an entry for each run and a lease for each claim, and decides alone: BullMQ only tells the
 * workers which run comes next. So runs go on without Redis, and what Redis loses comes back from the store.
 */
export class BullQueue implements RunQueue {
  readonly #options: QueueOptions
  readonly #entries: StoreQueue
  readonly #health: QueueHealth
  readonly #wakeup = new Wakeup()
  readonly #announcer: Announcer
  readonly #sweepMs: number
  /** Jobs of runs that this process executes. */
  readonly #held = new Map<string, { readonly claim: RunClaim; readonly job: RunJob }>()
  #sweeping: NodeJS.Timeout | undefined
  readonly #began = performance.now()
  /** Until when Redis is not asked, because it has failed. */
  #lostUntil = 0
  #isLost = false
  /** BullMQ has given all its due jobs. */
  #isEmpty = false

  constructor(options: QueueOptions) {
    const { store, holder, node, claimMs = CLAIM_MS, lateMs = LATE_MS, lasting } = options
    this.#options = options
    this.#announcer = new Announcer({ ...options, topic: TOPIC })
    this.#sweepMs = claimMs / SWEEPS
    this.#health = new QueueHealth(lateMs)
    this.#entries = new StoreQueue({
      store,
      holder,
      node,
      claimMs,
      lasting,
      announce: async (id, entry) => {
        await this.#toRedis(jobs => jobs.place(id, entry))
        this.#ring()
      },
    })
  }

  /** Looks for lost jobs from now on. */
  begin(): void {
    this.#sweeping = setTimeout(() => void this.#sweep(), this.#sweepMs).unref()
  }

  end(): void {
    clearTimeout(this.#sweeping)
    this.#announcer.end()
  }

  /** Another worker has runs for all. */
  rung(): void {
    this.#wakeup.ring()
  }

  health(): CheckReport {
    const report = this.#health.report()
    if (report.status !== 'healthy' || !this.#isLost) return report
    return { status: 'degraded', reason: 'Redis fails: the workers find their runs in the store' }
  }

  put(run: QueuedRun, options: { readonly claim: boolean }, ctx: CallContext): Promise<RunClaim | undefined> {
    return this.#entries.put(run, options, ctx)
  }

  async *take(ctx: CallContext): AsyncGenerator<RunClaim, void> {
    const stop = this.#health.take()
    let end: 'done' | 'failed' = 'done'
    try {
      while (!ctx.signal.aborted) {
        const { rings } = this.#wakeup
        const claim = (await this.#fromRedis()) ?? (this.#isLost ? await this.#fromStore() : undefined)
        this.#health.looked()
        if (!claim) {
          await this.#wakeup.after(rings, POLL_MS, ctx.signal)
          continue
        }
        this.#health.busy()
        yield claim
        this.#health.idle()
      }
    } catch (error) {
      end = 'failed'
      throw error
    } finally {
      stop(end)
    }
  }

  takeOne(id: string, ctx: CallContext): AsyncIterable<RunClaim> {
    return this.#entries.takeOne(id, ctx)
  }

  async keep(claim: RunClaim, ctx: CallContext): Promise<void> {
    const job = this.#jobOf(claim)
    const kept = job && this.#toRedis(jobs => jobs.keep(job))
    await Promise.all([kept, this.#entries.keep(claim, ctx)])
  }

  async leave(claim: RunClaim, how: ReturnedRun | 'ended', ctx: CallContext): Promise<void> {
    const job = this.#jobOf(claim)
    if (job) {
      this.#held.delete(claim.id)
      // before the entry waits: until then, the job of a wake-up is not added
      await this.#toRedis(jobs => jobs.finish(job))
    }
    await this.#entries.leave(claim, how, ctx)
  }

  wake(id: string, ctx: CallContext): Promise<void> {
    return this.#entries.wake(id, ctx)
  }

  countDue(ctx: CallContext): Promise<number> {
    return this.#entries.countDue(ctx)
  }

  /** Makes the runs of an ended process due. Its leases are free. */
  gone(holder: string, ctx: CallContext): Promise<void> {
    return this.#entries.gone(holder, ctx)
  }

  #jobOf({ id, fence }: RunClaim): RunJob | undefined {
    const held = this.#held.get(id)
    return held?.claim.fence.fence === fence.fence ? held.job : undefined
  }

  async #fromRedis(): Promise<RunClaim | undefined> {
    this.#isEmpty = false
    for (;;) {
      const job = await this.#next()
      if (!job) return undefined
      const claim = await this.#claim(job)
      if (claim) return claim
    }
  }

  async #next(): Promise<RunJob | undefined> {
    if (performance.now() < this.#lostUntil) return undefined
    let job: RunJob | undefined
    if (await this.#toRedis(async jobs => (job = await jobs.next()))) this.#isEmpty = !job
    else this.#lostUntil = performance.now() + LOST_MS
    return job
  }

  /** Claims the run of a job, if its entry is due. */
  async #claim(job: RunJob): Promise<RunClaim | undefined> {
    const { lasting, log } = this.#options
    const id = runIn(job.data)
    if (id === undefined) log.warn({ job: job.id }, 'a job in the queue is not a run of svc; it is deleted')
    const found = id === undefined ? undefined : await this.#entries.entry(id, lasting)
    const { state, due } = found ? entryIn(found) : { state: 'held' as const, due: NEVER }
    const waitMs = due - Date.now()
    // a held run whose lease is free has lost its process
    const claim = found && (state === 'held' || waitMs <= 0) ? await this.#entries.claim(found, new Set()) : undefined
    if (claim) this.#held.set(claim.id, { claim, job })
    // its process adds it again
    else if (due >= NEVER || (state === 'held' && waitMs > 0)) await this.#toRedis(jobs => jobs.finish(job))
    else await this.#toRedis(jobs => jobs.delay(job, waitMs > 0 ? waitMs : LATER_MS))
    return claim
  }

  async #fromStore(): Promise<RunClaim | undefined> {
    const { lasting } = this.#options
    const full = new Set<string>()
    const now = Date.now() + 1
    for await (const found of this.#entries.due({ waiting: now, held: now }, lasting)) {
      const claim = await this.#entries.claim(found, full)
      if (claim) return claim
    }
    return undefined
  }

  /** Works with BullMQ. Returns false if Redis fails: the sweep repairs what is missing. */
  async #toRedis(work: (jobs: Jobs) => Promise<unknown>): Promise<boolean> {
    const { jobs, log, lasting } = this.#options
    try {
      await work(jobs)
      if (this.#isLost) log.info({}, 'runs come from Redis again')
      this.#isLost = false
      return true
    } catch (err) {
      if (!this.#isLost && !lasting.signal.aborted) log.warn({ err }, 'Redis fails: the workers find their runs in the store')
      this.#isLost = true
      return false
    }
  }

  /** Looks for runs that are due although no worker gets them, and adds their jobs again. */
  async #sweep(): Promise<void> {
    const { lasting, log } = this.#options
    try {
      if (!(await this.#entries.isEmpty(lasting))) await this.#repair()
      else this.#health.overdue(0)
    } catch (err) {
      if (!lasting.signal.aborted) log.debug({ err }, 'failed to look for lost jobs of runs')
    }
    if (!lasting.signal.aborted) this.begin()
  }

  async #repair(): Promise<void> {
    const { lasting, log, node } = this.#options
    const now = Date.now()
    const held = performance.now() - this.#began < SETTLE_MS ? NEVER : now - OVERDUE_MS
    let [count, page]: [number, StoreRecord[]] = [0, []]
    let overdueMs = 0
    for await (const found of this.#entries.due({ waiting: now - OVERDUE_MS, held }, lasting)) {
      const { state, due, group, affinity } = entryIn(found)
      if (state !== 'held' && !group && (affinity ?? node) === node) overdueMs = Math.max(overdueMs, now - due)
      if (page.push(found) < PAGE) continue
      if (!(await this.#mayRepair(count))) break
      count += await this.#placeAll(page)
      page = []
      // those that BullMQ has come later
      if (!this.#isEmpty) break
    }
    this.#health.overdue(overdueMs / 1_000)
    if (page.length > 0 && (await this.#mayRepair(count))) count += await this.#placeAll(page)
    if (count > 0) log.debug({ count }, 'added jobs of runs to Redis again')
  }

  /** One worker at a time does it: the lease ends by itself, before the next look. */
  async #mayRepair(count: number): Promise<boolean> {
    if (count > 0) return true
    const { store, holder, lasting } = this.#options
    const request = { holder: `${holder}repair/${crypto.randomUUID()}`, ttlMs: Math.ceil(this.#sweepMs) }
    return (await tryAcquire(store, 'run_queue/repair', request, lasting)) !== undefined
  }

  async #placeAll(page: readonly StoreRecord[]): Promise<number> {
    const placed = await Promise.all(page.map(found => this.#placeAgain(found)))
    this.#ring()
    return placed.filter(Boolean).length
  }

  /** Adds the job of an overdue run. One whose worker lives is looked at later. */
  async #placeAgain(found: StoreRecord): Promise<boolean> {
    let isPlaced = false
    const isDone = await this.#toRedis(async jobs => (isPlaced = await jobs.replace(found.key, entryIn(found))))
    if (isDone && !isPlaced) await this.#entries.lookLater(found, this.#options.lasting)
    return isPlaced
  }

  /** Wakes this worker, and soon the others. */
  #ring(): void {
    this.#wakeup.ring()
    this.#announcer.announce()
  }
}
