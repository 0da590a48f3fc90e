import { type CallContext, type Log, Wakeup } from '@svc/core'
import type { CheckReport, Fence, NodeBus, QueuedRun, ReturnedRun, RunClaim, RunQueue, Store } from '@svc/core/contracts'
import { openSpace, storeFenced } from '@svc/storage-kit'
import { Announcer } from '@svc/storage-kit/announcer'
import { QueueHealth } from '@svc/storage-kit/queue-health'
import { onlyConflict, tryAcquire } from '@svc/storage-kit/records'
import { type QueueEntry, QueueLeases, RUN_ENTRIES, RUN_SPACE, runLease } from '@svc/storage-kit/run-leases'
import type { Jobs } from './jobs.ts'
import { ANY_NODE, type Attempt, type Job, jobOf, jobWith, keyOf, priorityOf, type RunData, runIn } from './rows.ts'

export interface QueueOptions {
  readonly jobs: Jobs
  readonly store: Store
  /** Wakes the workers of other processes. Without it, they look once a second, else less often while nothing happens. */
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

/** A claim of this process. */
interface Held {
  readonly attempt: Attempt
  readonly fence: Fence
  readonly run: RunData
}

/** The topic of the bus that wakes workers. */
export const TOPIC = 'run_queue'
const [CLAIM_MS, LATE_MS] = [30_000, 30_000]
/** How often the queue is read without a wake-up: for runs that become due. */
const POLL_MS = 1_000
/** The same while no run is due and none comes: the bus wakes the worker, but can lose a message. */
const IDLE_MS = 2_000
/** How often lost claims are looked for in the life of a claim. */
const SWEEPS = 6
/** When a job is looked at again whose run has a lease, whose group is full, or that belongs to another node. */
const [BUSY_MS, FULL_MS, ELSEWHERE_MS] = [500, 1_000, 5_000]
const RECOVERY_MS = 10_000
const MOST_TIMES = 5
const PAGE = 200
/** The limit of `countDue`. */
const MOST_DUE = 1_000

/**
 * A run queue in PostgreSQL: a job of pg-boss for each run that is ready, waits or is executed, and a lease of the store for each
 * claim. pg-boss decides who gets a run; the lease decides whose writes count.
 */
export class PgBossQueue implements RunQueue {
  readonly #options: QueueOptions
  readonly #claimMs: number
  readonly #leases: QueueLeases
  readonly #held = new Map<string, Held>()
  readonly #wakeup = new Wakeup()
  readonly #announcer: Announcer
  readonly #priorities: readonly number[]
  readonly #health: QueueHealth
  #sweeping: NodeJS.Timeout | undefined

  constructor(options: QueueOptions) {
    const { store, holder, node, claimMs = CLAIM_MS, lateMs = LATE_MS } = options
    this.#options = options
    this.#announcer = new Announcer({ ...options, topic: TOPIC })
    this.#claimMs = claimMs
    this.#leases = new QueueLeases(store, holder, claimMs)
    this.#priorities = [ANY_NODE, priorityOf(node)]
    this.#health = new QueueHealth(lateMs)
  }

  /** Looks for lost claims from now on. */
  begin(): void {
    this.#sweeping = setTimeout(() => void this.#sweep(), this.#claimMs / SWEEPS).unref()
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
    return this.#health.report()
  }

  async put(run: QueuedRun, { claim }: { readonly claim: boolean }, ctx: CallContext): Promise<RunClaim | undefined> {
    const job = jobOf(run)
    if (run.group) this.#options.jobs.learn(run.group.limit)
    const isFree = claim && this.#isHere(run) && (!run.group || (await this.#leases.enter(run.id, run.group, ctx)))
    if (isFree) return this.#putClaimed(job, ctx)
    await this.#options.jobs.place(job)
    this.#ring()
    return undefined
  }

  async #putClaimed(job: ReturnType<typeof jobOf>, ctx: CallContext): Promise<RunClaim | undefined> {
    const { jobs } = this.#options
    const { id } = job.data
    const [added, leased] = await Promise.allSettled([jobs.addClaimed(job), this.#leases.run(id, ctx)])
    const fence = leased.status === 'fulfilled' ? leased.value : undefined
    if (added.status === 'fulfilled' && typeof added.value !== 'string' && fence) return this.#hold(added.value, fence, job.data)
    await (fence ? this.#leases.free(id, fence, ctx) : this.#leases.leave(id, ctx))
    if (added.status === 'rejected') throw added.reason
    if (added.value === 'known') await jobs.place(job)
    else if (added.value !== 'busy') await this.#putBack(added.value, job.data, 0)
    if (leased.status === 'rejected') throw leased.reason
    this.#ring()
    return undefined
  }

  async *take(ctx: CallContext): AsyncGenerator<RunClaim, void> {
    const stop = this.#health.take()
    let end: 'done' | 'failed' = 'done'
    try {
      for (let isQuiet = false; !ctx.signal.aborted; ) {
        const { rings } = this.#wakeup
        const idleMs = isQuiet ? await this.#idleMs() : 0
        const claim = idleMs > 0 ? undefined : await this.#next()
        this.#health.looked()
        if (!claim) {
          await this.#wakeup.after(rings, idleMs || POLL_MS, ctx.signal)
          isQuiet = this.#wakeup.rings === rings
          continue
        }
        isQuiet = false
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

  async *takeOne(id: string, ctx: CallContext): AsyncGenerator<RunClaim, void> {
    const { jobs } = this.#options
    while (!ctx.signal.aborted) {
      const { rings } = this.#wakeup
      const job = await jobs.ofRun(keyOf(id))
      if (job === 'gone') return
      const claim = job && (await this.#claim(job))
      if (claim) yield claim
      else await this.#wakeup.after(rings, POLL_MS, ctx.signal)
    }
  }

  async keep({ id, fence }: RunClaim, ctx: CallContext): Promise<void> {
    const held = this.#heldBy(id, fence)
    await Promise.all([this.#leases.keep(id, fence, ctx), this.#options.jobs.touch(held.attempt)])
  }

  async leave({ id, fence }: RunClaim, how: ReturnedRun | 'ended', ctx: CallContext): Promise<void> {
    const { attempt, run } = this.#heldBy(id, fence)
    let freesPlace = false
    try {
      if (how !== 'ended') {
        // a process that has lost the run must not put it to sleep
        await this.#leases.keep(id, fence, ctx)
        const bound = boundTo(run, how)
        await this.#addAgain(bound, how.due, bound.affinity !== run.affinity)
      }
    } finally {
      // the same run can be claimed again by now
      if (this.#held.get(id)?.attempt === attempt) this.#held.delete(id)
      freesPlace = await this.#leases.free(id, fence, ctx)
    }
    // at last: only now can another worker claim the run
    await this.#options.jobs.remove(attempt)
    // wake others only if there can be work
    if (how !== 'ended' || freesPlace) this.#ring()
  }

  async wake(id: string, _ctx: CallContext): Promise<void> {
    const { jobs } = this.#options
    const key = keyOf(id)
    for (let times = 0; times < MOST_TIMES; times++) {
      if (await jobs.wake(key)) break
      const job = await jobs.active(key)
      const run = runIn(job?.data)
      // a job beside the active one: it waits until the run is returned
      if (!run || (await jobs.add(jobWith(run, Date.now())))) break
    }
    this.#ring()
  }

  countDue(_ctx: CallContext): Promise<number> {
    return this.#options.jobs.countDue(MOST_DUE)
  }

  /** Makes the runs of an ended process due. Its leases are free. */
  async gone(holder: string, ctx: CallContext): Promise<void> {
    const { store, jobs, holder: own, log } = this.#options
    const leaseOf = (name: string) =>
      tryAcquire(store, name, { holder: `${own}recovery/${crypto.randomUUID()}`, ttlMs: RECOVERY_MS }, ctx)
    const turn = await leaseOf(`run_queue/recovery/${holder}`)
    if (!turn) return // another worker does it
    let count = 0
    for await (const page of jobs.untouched(0)) {
      const others = page.flatMap(job => {
        const run = runIn(job.data)
        return run && this.#held.get(run.id)?.attempt.id !== job.id ? [{ job, run }] : []
      })
      const leases = await Promise.all(others.map(({ run }) => leaseOf(runLease(run.id))))
      const lost = others.filter((_, at) => leases[at] !== undefined)
      await jobs.fail(lost.map(({ job }) => job))
      const held = leases.filter(lease => lease !== undefined)
      await Promise.all(held.map(({ lease, fence }) => store.release({ lease, fence }, ctx)))
      count += lost.length
    }
    await store.release({ lease: turn.lease, fence: turn.fence }, ctx)
    if (count > 0) log.info({ count, holder }, 'the runs of a lost worker are due again')
    this.#ring()
  }

  /** Gives up claims that their processes have not renewed, and looks whether runs wait too long. */
  async #sweep(): Promise<void> {
    const { jobs, lasting, log } = this.#options
    try {
      for await (const page of jobs.untouched(this.#claimMs)) {
        await jobs.fail(page)
        this.#ring()
      }
      this.#health.overdue(await jobs.overdueS(this.#priorities))
    } catch (err) {
      if (!lasting.signal.aborted) log.debug({ err }, 'failed to look for lost claims on runs')
    }
    if (!lasting.signal.aborted) this.begin()
  }

  /** How long this worker has nothing to take; 0 if a run is due. One statement instead of one for each priority. */
  async #idleMs(): Promise<number> {
    const { bus, jobs } = this.#options
    const ms = bus ? await jobs.nextDueMs(this.#priorities) : 0
    return Math.min(Math.ceil(ms), IDLE_MS)
  }

  /** Claims the next due run. */
  async #next(): Promise<RunClaim | undefined> {
    for (const priority of this.#priorities)
      for (let job = await this.#options.jobs.next(priority); job; job = await this.#options.jobs.next(priority)) {
        const claim = await this.#claim(job)
        if (claim) return claim
      }
    return undefined
  }

  /** Takes the leases for a claimed job; puts it back if they are taken. */
  async #claim(job: Job): Promise<RunClaim | undefined> {
    const { jobs, lasting, log } = this.#options
    const run = runIn(job.data)
    if (!run) {
      log.warn({ job: job.id }, 'a job in the queue is not a run of svc; it is deleted')
      await jobs.remove(job)
      return undefined
    }
    const { id, group } = run
    if (!this.#isHere(run)) return this.#putBack(job, run, ELSEWHERE_MS)
    if (group) jobs.learn(group.limit)
    if (group && !(await this.#leases.enter(id, group, lasting))) return this.#putBack(job, run, FULL_MS)
    const fence = await this.#leases.run(id, lasting)
    if (fence) return this.#hold(job, fence, run)
    await this.#leases.leave(id, lasting)
    return this.#putBack(job, run, BUSY_MS)
  }

  #hold(attempt: Attempt, fence: Fence, run: RunData): RunClaim {
    this.#held.set(run.id, { attempt: { id: attempt.id, retryCount: attempt.retryCount }, fence, run })
    return { id: run.id, fence }
  }

  async #putBack(attempt: Attempt, run: RunData, afterMs: number): Promise<undefined> {
    await this.#addAgain(run, Date.now() + afterMs)
    await this.#options.jobs.remove(attempt)
  }

  /** Adds a job beside the active one. One that waits already is newer, so it is due; its node can be another now. */
  async #addAgain(run: RunData, due: number | null, isBound = false): Promise<void> {
    const { jobs } = this.#options
    if (await jobs.add(jobWith(run, due))) return
    if (isBound) await jobs.place(jobWith(run, Date.now()))
    else await jobs.wake(keyOf(run.id))
  }

  #heldBy(id: string, fence: Fence): Held {
    const held = this.#held.get(id)
    if (held?.fence.fence !== fence.fence) throw storeFenced(fence.lease, fence.fence)
    return held
  }

  /** Whether workers of this node may execute the run. */
  #isHere({ affinity }: Pick<QueuedRun, 'affinity'>): boolean {
    return affinity === undefined || affinity === this.#options.node
  }

  /** Wakes this worker, and soon the others. */
  #ring(): void {
    this.#wakeup.ring()
    this.#announcer.announce()
  }
}

/** The run with the node to which it is bound from now on. */
const boundTo = (run: RunData, { affinity }: ReturnedRun): RunData => (affinity === undefined ? run : { ...run, affinity })

/** Moves what a queue in the store has left: the store was moved here from another one, or the plugin was changed. */
export async function takeOver(store: Store, jobs: Jobs, ctx: CallContext): Promise<void> {
  await openSpace(store, RUN_SPACE, {}, ctx)
  for (;;) {
    const { records } = await store.range(RUN_ENTRIES, { limit: PAGE }, ctx)
    if (records.length === 0) return
    for (const { key, value, version } of records) {
      const { state, due, group, affinity } = value as unknown as QueueEntry
      const run = { id: key, ...(group ? { group } : {}), ...(affinity === undefined ? {} : { affinity }) }
      await jobs.place(jobWith(run, state === 'held' ? Date.now() : due))
      const removal = { op: 'delete' as const, collection: RUN_ENTRIES, key, ifVersion: version }
      await store.batch([removal], {}, ctx).catch(onlyConflict)
    }
  }
}
