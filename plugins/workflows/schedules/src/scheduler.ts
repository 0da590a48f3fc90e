import { type CallContext, codeOf, type Log, type Principal, Wakeup } from '@svc/core'
import type { Jobs, ScheduleSpec, ScheduleTick, Store, StoreOp, StoreRecord } from '@svc/core/contracts'
import type { Timing } from '@svc/plugin-kit/schedule-timing'
import { onlyConflict } from '@svc/storage-kit/records'
import type { ScheduleDefinition } from './definitions.ts'
import { toPublicError } from './errors.ts'
import {
  END_OF_TIME,
  jitterOf,
  KEPT_TICKS,
  PRUNED,
  putTick,
  type ScheduleRecord,
  type TickRange,
  TICKS,
  ticksBefore,
} from './space.ts'

/** A schedule with its stored state. */
export interface ActiveSchedule extends ScheduleDefinition {
  readonly record: ScheduleRecord
}

export interface SchedulerOptions {
  readonly store: Store
  readonly jobs: Jobs
  readonly catchUpLimit: number
  /** The clock, in Unix milliseconds. It can jump in both directions. */
  readonly now: () => number
  readonly log: Log
  readonly lasting: CallContext
}

/** Position of a schedule in its ticks. */
interface Progress {
  schedule: ActiveSchedule
  /** Ticks up to this time are handled. */
  cursor: number
  next: number | undefined
  /** Whether ticks are being handled now. */
  isBusy: boolean
  /** Number of handled ticks since the last pruning. */
  count: number
}

/** How often the clock is read. */
const LOOK_MS = 1_000
/** A tick that is later than this has been missed. */
const LATE_MS = 60_000
/** How long a tick waits for a job kind that no plugin adds now, because its plugin is being restarted. */
const KIND_MS = 10_000
/** How many further ticks without a job are read, to find the last job of a schedule. */
const LOOK_BACK = 20
const [PRUNE_EVERY, PAGE] = [100, 500]
const WARN_MS = 60_000

/** Handles the ticks of schedules. All workers of a cluster try each tick, and the store lets one succeed. */
export class Scheduler {
  readonly #options: SchedulerOptions
  readonly #progress = new Map<string, Progress>()
  readonly #working = new Set<Promise<void>>()
  /** When the problem of a schedule was logged last, by the monotonic clock. */
  readonly #warned = new Map<string, number>()
  readonly #wakeup = new Wakeup()
  #isStopped = false

  constructor(options: SchedulerOptions) {
    this.#options = options
  }

  /** The next tick of a schedule that this process handles. */
  nextOf(name: string): number | undefined {
    return this.#progress.get(name)?.next
  }

  /** Starts or continues with this definition and state of a schedule. */
  async set(schedule: ActiveSchedule): Promise<void> {
    const { name, record } = schedule
    const before = this.#progress.get(name)
    if (record.isPaused) return this.remove(name)
    if (before && isSame(before.schedule, schedule)) {
      before.schedule = schedule
      return
    }
    const cursor = await this.#begin(schedule)
    this.#progress.set(name, { schedule, cursor, next: schedule.timing.next(cursor), isBusy: false, count: PRUNE_EVERY })
    this.#wakeup.ring()
  }

  /** Removes all schedules but these. */
  keepOnly(names: ReadonlySet<string>): void {
    for (const name of this.#progress.keys()) if (!names.has(name)) this.remove(name)
  }

  remove(name: string): void {
    this.#progress.delete(name)
    this.#warned.delete(name)
  }

  /** Handles ticks until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const { rings } = this.#wakeup
      this.look()
      const free = [...this.#progress.values()].filter(({ isBusy }) => !isBusy)
      const next = Math.min(...free.map(({ next: tick = END_OF_TIME }) => tick))
      await this.#wakeup.after(rings, Math.max(1, Math.min(LOOK_MS, next - this.#options.now())), signal)
    }
    this.#isStopped = true
    await Promise.all(this.#working)
  }

  /** Starts to handle the ticks that are due. */
  look(): void {
    const now = this.#options.now()
    for (const progress of this.#progress.values()) {
      // the clock was set back: ticks that were handled before have a record
      if (now < progress.cursor) {
        progress.cursor = now
        progress.next = progress.schedule.timing.next(now)
      }
      if (progress.isBusy || progress.next === undefined || progress.next > now) continue
      progress.isBusy = true
      const work = this.#handleDue(progress, now).finally(() => {
        progress.isBusy = false
        this.#working.delete(work)
        this.#wakeup.ring()
      })
      this.#working.add(work)
    }
  }

  /** Resolves when all ticks that are being handled are stored. */
  async idle(): Promise<void> {
    while (this.#working.size > 0) await Promise.all(this.#working)
  }

  /** The time up to which the ticks of a schedule are handled, when a worker starts. */
  async #begin({ name, timing, spec, record }: ActiveSchedule): Promise<number> {
    const now = this.#options.now()
    const handled = Math.max(record.since, (await this.#last(name, now))?.tick ?? 0)
    if (handled >= now) return now
    if ((spec.catchUp ?? 'none') !== 'none') return handled
    // a restart must not lose a tick that is only a little late
    const [latest] = timing.previous(now, 1)
    return latest !== undefined && latest > handled && now - latest <= LATE_MS ? latest - 1 : now
  }

  async #last(name: string, upTo: number): Promise<ScheduleTick | undefined> {
    const { store, lasting } = this.#options
    const query = { ...ticksBefore(name, Math.min(upTo + 1, END_OF_TIME)), reverse: true, limit: 1 }
    const { records } = await store.range(TICKS, query, lasting)
    return records[0]?.value as unknown as ScheduleTick | undefined
  }

  async #handleDue(progress: Progress, now: number): Promise<void> {
    const { log, catchUpLimit } = this.#options
    const { name, timing, spec } = progress.schedule
    try {
      const due = dueTicks(timing, progress.cursor, now, catchUpLimit + 1)
      if (due.length > catchUpLimit) log.warn({ schedule: name }, 'too many missed ticks; svc drops the oldest')
      for (const tick of chosen(due.slice(0, catchUpLimit), spec, now)) {
        if (this.#isStopped || this.#progress.get(name) !== progress) return
        if (!(await this.#hadRecord(name, tick))) await this.#handle(progress.schedule, tick)
        progress.cursor = tick
        progress.count += 1
      }
      progress.cursor = now
      progress.next = timing.next(now)
      if (progress.count >= PRUNE_EVERY) await this.#prune(progress, now)
    } catch (err) {
      // it is tried again at the next look
      if (!this.#isStopped) this.#warn(name, err, 'failed to handle a tick of a schedule')
      progress.next = Math.max(now + LOOK_MS, progress.next ?? 0)
    }
  }

  /** Writes the record of a tick and its job in one batch. Does nothing if another worker has done it. */
  async #handle(schedule: ActiveSchedule, tick: number): Promise<void> {
    const { store, jobs, lasting, now } = this.#options
    const { name, spec, principal } = schedule
    const before = await this.#openJob(schedule, tick, lasting)
    const overlap = spec.overlap ?? 'skip'
    const isSkipped = before !== undefined && (overlap === 'skip' || (overlap === 'queue' && before.state === 'queued'))
    const record = { tick, at: now() }
    if (isSkipped) return this.#store(putTick(name, { ...record, skipped: 'overlap' }))
    try {
      const { id, ops } = await jobs.prepare(requestOf(name, spec, tick), as(principal, lasting))
      await store.batch([putTick(name, { ...record, job: id }), ...ops], {}, lasting)
    } catch (error) {
      if (codeOf(error) === 'STORE_CONFLICT') return
      if (isStoreProblem(error) || (codeOf(error) === 'JOB_KIND_UNKNOWN' && now() - tick < KIND_MS)) throw error
      this.#warn(name, error, 'a tick of a schedule could not start its job')
      return this.#store(putTick(name, { ...record, error: toPublicError(error) }))
    }
    await jobs.wake(lasting)
    if (before && overlap === 'cancel') await this.#cancel(before.id)
  }

  /** Logs the problem of a schedule, at most once a minute: a plugin can define many that fail each second. */
  #warn(name: string, err: unknown, message: string): void {
    const now = performance.now()
    if (now - (this.#warned.get(name) ?? Number.NEGATIVE_INFINITY) < WARN_MS) return
    this.#warned.set(name, now)
    this.#options.log.warn({ err, schedule: name }, message)
  }

  /** Waits for no end of the job: a job that is slow to stop must not delay the ticks. */
  async #cancel(id: string): Promise<void> {
    const { jobs, lasting, log } = this.#options
    void jobs
      .cancel(id, lasting)
      .catch(err => codeOf(err) !== 'JOB_STATE' && log.debug({ err, job: id }, 'failed to cancel a job'))
  }

  /** Stores the record of a tick without a job. */
  async #store(tick: StoreOp): Promise<void> {
    const { store, lasting } = this.#options
    await store.batch([tick], {}, lasting).catch(onlyConflict)
  }

  /** The job of an earlier tick that is queued or running. */
  async #openJob({ name }: ActiveSchedule, tick: number, ctx: CallContext) {
    const { store, jobs } = this.#options
    const { records } = await store.range(TICKS, { ...ticksBefore(name, tick), reverse: true, limit: LOOK_BACK }, ctx)
    const last = records.map(({ value }) => (value as unknown as ScheduleTick).job).find(id => id !== undefined)
    if (last === undefined) return undefined
    const job = await jobs.get(last, ctx).catch(ignoreUnknown)
    return job && (job.state === 'queued' || job.state === 'running') ? job : undefined
  }

  /** Whether a tick was handled so long ago that its record is deleted: the clock was set back. */
  async #hadRecord(name: string, tick: number): Promise<boolean> {
    const { range } = await this.#pruned(name)
    return range !== undefined && tick >= range.from && tick <= range.upTo
  }

  /** The last ticks of a schedule whose records are deleted. */
  async #pruned(name: string): Promise<{ readonly range: TickRange | undefined; readonly version: number }> {
    const { store, lasting } = this.#options
    const found = await store.get(PRUNED, name, lasting)
    return { range: found?.value as TickRange | undefined, version: found?.version ?? 0 }
  }

  /** Deletes the records of old ticks. */
  async #prune(progress: Progress, now: number): Promise<void> {
    const { store, lasting } = this.#options
    const { schedule } = progress
    progress.count = 0
    let [cursor, count, isFirst]: [string | undefined, number, boolean] = [undefined, 0, true]
    do {
      const query = {
        ...ticksBefore(schedule.name, now + 1),
        reverse: true,
        limit: PAGE,
        ...(cursor === undefined ? {} : { cursor }),
      }
      const page = await store.range(TICKS, query, lasting)
      const old = page.records.slice(Math.max(0, KEPT_TICKS - count))
      if (old.length > 0) {
        await this.#delete(schedule, old, isFirst)
        isFirst = false
      }
      count += page.records.length
      cursor = page.next
    } while (cursor !== undefined)
  }

  /** Deletes records of ticks, newest first, unless another worker is just doing it. */
  async #delete({ name, timing }: ActiveSchedule, old: readonly StoreRecord[], isNewest: boolean): Promise<void> {
    const { store, lasting } = this.#options
    const { range, version } = await this.#pruned(name)
    const deletes = old.map(({ key }): StoreOp => ({ op: 'delete', collection: TICKS, key }))
    const ticks = old.map(({ value }) => (value as unknown as ScheduleTick).tick)
    const value = joined(timing, range, lastRange(timing, ticks), isNewest)
    const mark = { op: 'put', collection: PRUNED, key: name, value: { ...value }, ifVersion: version } as const
    await store.batch([...deletes, mark], {}, lasting).catch(onlyConflict)
  }
}

/** The last ticks that follow each other without a gap, such as the one of a clock that was set forward. `ticks`: newest first. */
function lastRange(timing: Timing, ticks: readonly number[]): TickRange {
  const upTo = ticks[0] ?? 0
  let from = upTo
  for (const tick of ticks.slice(1)) {
    if (timing.next(tick) !== from) break
    from = tick
  }
  return { from, upTo }
}

/** Joins ranges without a gap. Otherwise, the range of the newest deleted ticks counts. */
function joined(timing: Timing, before: TickRange | undefined, range: TickRange, isNewest: boolean): TickRange {
  if (!before) return range
  if (timing.next(before.upTo) === range.from) return { from: before.from, upTo: range.upTo }
  if (timing.next(range.upTo) === before.from) return { from: range.from, upTo: before.upTo }
  return isNewest ? range : before
}

/** Number of due ticks up to which it is cheaper to go forward. */
const FEW = 5

/** The last `most` ticks after `cursor` up to `now`, newest first. */
function dueTicks(timing: Timing, cursor: number, now: number, most: number): number[] {
  const due: number[] = []
  let tick = timing.next(cursor)
  for (; tick !== undefined && tick <= now && due.length < FEW; tick = timing.next(tick)) due.unshift(tick)
  if (tick === undefined || tick > now) return due.slice(0, most)
  return timing.previous(now, most).filter(at => at > cursor)
}

/** Which of the due ticks (newest first) start jobs, oldest first. */
function chosen(due: readonly number[], { catchUp = 'none' }: ScheduleSpec, now: number): number[] {
  const recent = due.filter(tick => now - tick <= LATE_MS)
  const missed = due.filter(tick => now - tick > LATE_MS)
  const made = catchUp === 'all' ? missed : catchUp === 'one' ? missed.slice(0, 1) : []
  return [...recent, ...made].toReversed()
}

const isSame = (one: ActiveSchedule, other: ActiveSchedule) =>
  one.record.fingerprint === other.record.fingerprint && one.record.since === other.record.since

/** The request for the job of a tick. */
function requestOf(name: string, { job, jitterMs = 0, overlap }: ScheduleSpec, tick: number) {
  return {
    kind: job.kind,
    input: job.input ?? null,
    due: tick + jitterOf(name, tick, jitterMs),
    schedule: { name, tick },
    ...(overlap === 'queue' ? { group: `schedule:${name}` } : {}),
  }
}

/** The context of work on behalf of the owner of a schedule. */
export const as = (principal: Principal, ctx: CallContext): CallContext => ({ ...ctx, principal })

const isStoreProblem = (error: unknown) => codeOf(error)?.startsWith('STORE_') === true

function ignoreUnknown(error: unknown): undefined {
  if (codeOf(error) !== 'JOB_UNKNOWN') throw error
}
