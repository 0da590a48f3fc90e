import { codeOf, messageOf, Wakeup } from '@svc/core'
import type { Fence, JobState, StoreRecord } from '@svc/core/contracts'
import { type LeaseHold, tryHold } from '@svc/storage-kit'
import { onlyConflict, tryAcquire } from '@svc/storage-kit/records'
import { afterFailure, Attempt, type AttemptOptions } from './attempt.ts'
import { interrupted, toPublicError } from './errors.ts'
import { JOBS, type JobRecord, leaseOf, putJob, requestIdOf, takeLease } from './space.ts'

export interface WorkerOptions
  extends Pick<AttemptOptions, 'store' | 'kinds' | 'keepMs' | 'graceMs' | 'log' | 'span' | 'lasting'> {
  /** The prefix of the lease holders of this process. */
  readonly holder: string
  /** Maximum number of concurrent jobs. */
  readonly concurrency: number
  /** A lease of a job expires after this time without renewal. Default: 30,000. */
  readonly leaseMs?: number
  /** How long a worker waits that gets no wake-ups and finds no jobs. Default: 1,000. More only if other workers wake it. */
  readonly idleMs?: number
  /** Called before each attempt. */
  readonly started: (id: string, record: JobRecord) => void
  /** Called after each attempt with the state of the job: `queued` if it is tried again. */
  readonly ended: (id: string, record: JobRecord, state: JobState) => void
}

const [LEASE_MS, TAKE_LEASE_MS] = [30_000, 5_000]
const REFRESH_MS = 2_000
/** How often a lease is renewed in the time of its life. */
const KEEP_TIMES = 3
/** When a running job is checked again, because its worker can be dead. */
const CHECK_MS = 35_000
/** When a queued job is checked again whose earlier attempt still runs. */
const BLOCKED_MS = 2_000
/** How often due jobs of other processes are looked for, and how soon when another worker was taking jobs. */
const [POLL_MS, BUSY_MS] = [1_000, 25]
/** How long a new process checks all running jobs, and how often they are checked afterwards. */
const [SETTLE_MS, RECOVER_MS] = [5_000, 5_000]
const [PAGE, MOST_PAGES] = [100, 20]
/** Maximum number of jobs that only wait. */
const MOST_WAITING = 1_000
const NEVER = Number.MAX_SAFE_INTEGER

/** Takes due jobs and executes them. */
export class JobWorker {
  readonly #options: WorkerOptions
  readonly #leaseMs: number
  readonly #active = new Map<string, Attempt>()
  readonly #stopping = new AbortController()
  readonly #wakeup = new Wakeup()
  readonly #timers: NodeJS.Timeout[] = []
  #taking: Promise<void> = Promise.resolve()
  /** Why it cannot take jobs at the moment. */
  problem: string | undefined

  constructor(options: WorkerOptions) {
    this.#options = options
    this.#leaseMs = options.leaseMs ?? LEASE_MS
  }

  /** Number of running jobs by kind. */
  running(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    for (const { kind } of this.#active.values()) counts.set(kind, (counts.get(kind) ?? 0) + 1)
    return counts
  }

  /** Whether it takes further jobs now. */
  get hasRoom(): boolean {
    const isTaking = this.#timers.length > 0 && !this.#stopping.signal.aborted
    return isTaking && this.#active.size - this.#waiting < this.#options.concurrency
  }

  begin(): void {
    this.#timers.push(setInterval(() => void this.#keep(), this.#leaseMs / KEEP_TIMES).unref())
    this.#timers.push(setInterval(() => void this.#refresh(), REFRESH_MS).unref())
    this.#taking = this.#takeAll(AbortSignal.any([this.#stopping.signal, this.#options.lasting.signal]))
  }

  wake(): void {
    this.#wakeup.ring()
  }

  /** Aborts a job that was cancelled. Returns false if it does not run here. */
  cancel(id: string): boolean {
    const attempt = this.#active.get(id)
    attempt?.abort('cancelled')
    return attempt !== undefined
  }

  /** Takes no further job, waits for the running ones, and puts back those that do not end in time. */
  async drain(limitMs: number): Promise<void> {
    this.#stopping.abort()
    for (const attempt of this.#active.values()) if (attempt.isWaiting) attempt.abort('draining')
    const limit = setTimeout(() => this.#active.forEach(attempt => attempt.abort('draining')), limitMs)
    try {
      await this.#taking
      await Promise.all([...this.#active.values()].map(attempt => attempt.stored))
    } finally {
      clearTimeout(limit)
      for (const timer of this.#timers) clearInterval(timer)
    }
    await Promise.all([...this.#active.values()].map(attempt => this.#release(attempt.fence)))
  }

  /** Queues the jobs of an ended process again. Its leases are free. */
  async workerExited(holder: string): Promise<void> {
    for (const kind of this.#options.kinds.names())
      for await (const found of this.#inState(kind, 'running', NEVER))
        if (recordIn(found).holder?.startsWith(holder)) await this.#recover(found)
    this.wake()
  }

  async #takeAll(signal: AbortSignal): Promise<void> {
    const { kinds, log, idleMs = POLL_MS } = this.#options
    // workers of a previous server can be dead; their leases expire about now
    const settled = performance.now() + SETTLE_MS
    for (let [pass, lookAt, isRung] = [0, 0, true]; !signal.aborted; pass++) {
      const { rings } = this.#wakeup
      let again = isRung ? POLL_MS : idleMs
      const now = performance.now()
      const isLook = now >= lookAt
      if (isLook) lookAt = now + (now < settled ? POLL_MS : RECOVER_MS)
      try {
        if (isLook) await this.#recoverOverdue(now < settled ? NEVER : Date.now() + 1)
        // an idle worker asks once, not once for each kind
        const queued = isRung || (await this.#hasAny('queued')) ? rotated(kinds.names(), pass) : []
        for (const kind of queued) if (!signal.aborted) again = Math.min(again, await this.#take(kind))
        this.problem = undefined
      } catch (err) {
        if (signal.aborted) return
        this.problem = messageOf(err)
        log.warn({ err }, 'failed to take jobs')
      }
      await this.#wakeup.after(rings, again, signal)
      isRung = this.#wakeup.rings !== rings
    }
  }

  /** Takes due jobs of a kind. One worker at a time does it, so that the limit of the kind holds. Returns when to look again. */
  async #take(kind: string): Promise<number> {
    const { store, holder, lasting } = this.#options
    if (this.#room(kind) <= 0) return POLL_MS
    const wait = await this.#nextDue(kind)
    if (wait > 0) return wait
    const request = { holder: `${holder}${crypto.randomUUID()}`, ttlMs: TAKE_LEASE_MS }
    const lease = await tryAcquire(store, takeLease(kind), request, lasting)
    if (!lease) return BUSY_MS * (1 + Math.random())
    const fence = { lease: lease.lease, fence: lease.fence }
    try {
      const chosen = await this.#choose(kind)
      await Promise.all(chosen.map(found => this.#claim(found, fence)))
    } finally {
      await this.#release(fence)
    }
    return POLL_MS
  }

  /** How many jobs of a kind this worker can take. */
  #room(kind: string): number {
    const { concurrency, kinds } = this.#options
    const waiting = this.#waiting
    return kinds.get(kind)?.waits === true ? MOST_WAITING - waiting : concurrency - (this.#active.size - waiting)
  }

  /** Number of jobs here that only wait. */
  get #waiting(): number {
    return [...this.#active.values()].filter(attempt => attempt.isWaiting).length
  }

  /** Milliseconds until the first job of a kind is due. */
  async #nextDue(kind: string): Promise<number> {
    const { store, lasting } = this.#options
    const query = { index: 'by_kind', equals: [kind, 'queued'], limit: 1 }
    const [first] = (await store.range(JOBS, query, lasting)).records
    return first ? recordIn(first).next - Date.now() : POLL_MS
  }

  /** The next jobs of a kind that its limit and their groups allow. */
  async #choose(kind: string): Promise<StoreRecord[]> {
    const { concurrency } = this.#options.kinds.limits(kind)
    const [groups, chosen]: [Set<string>, StoreRecord[]] = [new Set(), []]
    let running: number | undefined
    for await (const found of this.#inState(kind, 'queued', Date.now() + 1, MOST_PAGES)) {
      const { group } = recordIn(found)
      if (running === undefined && (group !== undefined || concurrency !== Number.POSITIVE_INFINITY))
        running = await this.#countRunning(kind, groups)
      if (chosen.length >= Math.min(this.#room(kind), concurrency - (running ?? 0))) break
      if (group !== undefined && groups.has(group)) continue
      if (group !== undefined) groups.add(group)
      chosen.push(found)
    }
    return chosen
  }

  async #countRunning(kind: string, groups: Set<string>): Promise<number> {
    let count = 0
    for await (const found of this.#inState(kind, 'running', NEVER)) {
      count += 1
      const { group } = recordIn(found)
      if (group !== undefined) groups.add(group)
    }
    return count
  }

  async *#inState(kind: string, state: 'queued' | 'running', to: number, pages = Infinity): AsyncGenerator<StoreRecord, void> {
    const { store, lasting } = this.#options
    let cursor: string | undefined
    for (let page = 0; page < pages; page++) {
      const query = { index: 'by_kind', equals: [kind, state], to, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) }
      const { records, next } = await store.range(JOBS, query, lasting)
      yield* records
      if (next === undefined) return
      cursor = next
    }
  }

  async #claim(found: StoreRecord, taking: Fence): Promise<void> {
    const { store, holder, lasting } = this.#options
    const id = found.key
    const own = `${holder}${crypto.randomUUID()}`
    const hold = await tryHold(store, leaseOf(id), { holder: own, ttlMs: this.#leaseMs }, lasting)
    // code that ignored its abort signal still runs
    if (!hold) return this.#postpone(found)
    const now = Date.now()
    const { progress: _, ...before } = recordIn(found)
    const record: JobRecord = {
      ...before,
      state: 'running',
      holder: own,
      startedAt: now,
      next: now + CHECK_MS,
      attempts: before.attempts + 1,
    }
    try {
      const { results } = await store.batch([putJob(id, record, found.version)], { fence: taking }, lasting)
      this.#start(id, hold, record, results[0]!)
    } catch (error) {
      await this.#release(hold.fence)
      if (codeOf(error) !== 'STORE_FENCED') onlyConflict(error)
    }
  }

  #start(id: string, hold: LeaseHold, record: JobRecord, version: number): void {
    const { store, kinds, keepMs, graceMs, log, span, lasting, started, ended } = this.#options
    const attempt = new Attempt({ store, kinds, id, hold, record, version, keepMs, graceMs, log, span, lasting })
    this.#active.set(id, attempt)
    if (this.#stopping.signal.aborted) attempt.abort('draining')
    started(id, record)
    void attempt.stored.then(() => ended(id, record, attempt.state))
    void Promise.all([attempt.stored, attempt.ended]).then(async () => {
      this.#active.delete(id)
      await this.#release(hold.fence)
      this.wake()
    })
  }

  async #release(fence: Fence): Promise<void> {
    const { store, lasting, log } = this.#options
    // otherwise it expires
    await store.release(fence, lasting).catch((err: unknown) => log.debug({ err }, 'failed to release a lease of a job'))
  }

  /** Checks a job again later. */
  async #postpone(found: StoreRecord): Promise<void> {
    const record = recordIn(found)
    const next = Date.now() + (record.state === 'running' ? CHECK_MS : BLOCKED_MS)
    const { store, lasting } = this.#options
    await store.batch([putJob(found.key, { ...record, next }, found.version)], {}, lasting).catch(onlyConflict)
  }

  async #recoverOverdue(to: number): Promise<void> {
    if (!(await this.#hasAny('running'))) return
    for (const kind of this.#options.kinds.names())
      for await (const found of this.#inState(kind, 'running', to)) if (!this.#active.has(found.key)) await this.#recover(found)
  }

  async #hasAny(state: 'queued' | 'running'): Promise<boolean> {
    const { store, lasting } = this.#options
    const { records } = await store.range(JOBS, { index: 'by_queue', equals: [state], limit: 1 }, lasting)
    return records.length > 0
  }

  /** Ends the attempt of a dead worker. A job whose worker lives is checked again later. */
  async #recover(found: StoreRecord): Promise<void> {
    const { store, holder, lasting, kinds, keepMs, log } = this.#options
    const request = { holder: `${holder}${crypto.randomUUID()}`, ttlMs: TAKE_LEASE_MS }
    const lease = await tryAcquire(store, leaseOf(found.key), request, lasting)
    const record = recordIn(found)
    if (!lease) return record.next <= Date.now() ? this.#postpone(found) : undefined
    const fence = { lease: lease.lease, fence: lease.fence }
    try {
      const next = afterFailure(record, toPublicError(interrupted()), kinds, keepMs)
      await store.batch([putJob(found.key, next, found.version)], { fence }, lasting)
      const facts = { job: found.key, kind: record.kind, attempt: record.attempts, request_id: requestIdOf(found.key, record) }
      log.warn(facts, 'the worker of a job exited before the job ended')
    } catch (error) {
      onlyConflict(error)
    } finally {
      await this.#release(fence)
    }
  }

  /** Renews the leases. A worker that cannot renew in time, because its store fails or hangs, has lost its jobs. */
  async #keep(): Promise<void> {
    const { lasting } = this.#options
    await Promise.all(
      [...this.#active.values()].map(async attempt => {
        try {
          await attempt.hold.renew(lasting)
        } catch (error) {
          // at the next renewal, the lease can be over
          const isLast = attempt.hold.leftMs <= this.#leaseMs / KEEP_TIMES
          if (codeOf(error) === 'STORE_FENCED' || isLast) attempt.abort('lost')
        }
      })
    )
  }

  async #refresh(): Promise<void> {
    await Promise.all([...this.#active.values()].map(attempt => attempt.refresh().catch(() => {})))
  }
}

/** Another kind comes first each time, so that a kind with many jobs does not take all free places. */
const rotated = (names: readonly string[], by: number) => {
  const first = names.length === 0 ? 0 : by % names.length
  return [...names.slice(first), ...names.slice(0, first)]
}

const recordIn = ({ value }: StoreRecord) => value as unknown as JobRecord
