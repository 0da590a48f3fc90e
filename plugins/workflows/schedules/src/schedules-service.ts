import { type CallContext, codeOf } from '@svc/core'
import type { Job, Jobs, Schedule, Schedules, ScheduleSpec, ScheduleTick, Store } from '@svc/core/contracts'
import { checkName, checkSpec } from './definitions.ts'
import { scheduleInvalid } from '@svc/plugin-kit/schedule-timing'
import { scheduleExists, scheduleFixed, scheduleUnknown, tooMany } from './errors.ts'
import type { Registry } from './registry.ts'
import { type ActiveSchedule, as } from './scheduler.ts'
import { END_OF_TIME, PRUNED, putRecord, SCHEDULES, type ScheduleRecord, TICKS, ticksBefore } from './space.ts'

export interface SchedulesServiceOptions {
  readonly store: Store
  readonly jobs: Jobs
  readonly registry: Registry
  readonly zone: string
  readonly now: () => number
  /** Called after a change, so that this process does not wait for the news of the store. */
  readonly changed: (name: string) => Promise<void>
}

const [MOST_TICKS, MOST_OWN, PAGE] = [100, 100, 500]
/** `workflow.` and the longest name of a workflow. */
const LONGEST_NAME = 73

const DEFINED_BY = { configuration: 'the configuration', plugin: 'a plugin', workflow: 'a workflow definition' } as const

const seesAll = ({ principal }: CallContext) => principal.scopes.includes('*') || principal.scopes.includes('admin')

/** Adds, shows and changes schedules. The scheduler handles their ticks. */
export class SchedulesService implements Schedules {
  readonly #options: SchedulesServiceOptions

  constructor(options: SchedulesServiceOptions) {
    this.#options = options
  }

  async list(ctx: CallContext): Promise<readonly Schedule[]> {
    const all = await this.#options.registry.all(ctx)
    const seen = all.filter(({ record }) => record.owner === ctx.principal.id || seesAll(ctx))
    return Promise.all(seen.map(schedule => this.#shown(schedule, ctx)))
  }

  async get(name: string, ctx: CallContext): Promise<Schedule> {
    const { schedule } = await this.#seen(name, ctx)
    return this.#shown(schedule, ctx)
  }

  async add(name: string, given: ScheduleSpec, ctx: CallContext): Promise<Schedule> {
    const { store, registry, zone, now, changed } = this.#options
    checkName(name)
    const { spec } = checkSpec(given, zone)
    await this.#checkJob(spec, ctx)
    if (registry.declared().has(name)) throw scheduleExists(name)
    const { id: owner, scopes } = ctx.principal
    if (!seesAll(ctx)) {
      const { records } = await store.range(SCHEDULES, { index: 'by_owner', equals: [owner], limit: MOST_OWN }, ctx)
      if (records.length >= MOST_OWN) throw tooMany(MOST_OWN)
    }
    const fingerprint = registry.fingerprint(spec)
    const record: ScheduleRecord = { spec, owner, scopes: [...scopes], fingerprint, since: now(), isPaused: false }
    try {
      await store.batch([putRecord(name, record, 0)], {}, ctx)
    } catch (error) {
      throw codeOf(error) === 'STORE_CONFLICT' ? scheduleExists(name) : error
    }
    await changed(name)
    return this.get(name, ctx)
  }

  pause(name: string, ctx: CallContext): Promise<Schedule> {
    return this.#change(name, ctx, record => (record.isPaused ? record : { ...record, isPaused: true }))
  }

  resume(name: string, ctx: CallContext): Promise<Schedule> {
    const { now } = this.#options
    return this.#change(name, ctx, record => (record.isPaused ? { ...record, isPaused: false, since: now() } : record))
  }

  async remove(name: string, ctx: CallContext): Promise<void> {
    const { store, changed } = this.#options
    const { schedule } = await this.#seen(name, ctx)
    if (schedule.origin !== 'added') throw scheduleFixed(name, DEFINED_BY[schedule.origin])
    await store.batch([{ op: 'delete', collection: SCHEDULES, key: name }], {}, ctx)
    await changed(name)
    for (;;) {
      const { records } = await store.range(TICKS, { ...ticksBefore(name, END_OF_TIME), limit: PAGE }, ctx)
      if (records.length === 0) break
      const ops = records.map(({ key }) => ({ op: 'delete' as const, collection: TICKS, key }))
      await store.batch(ops, {}, ctx)
    }
    await store.batch([{ op: 'delete', collection: PRUNED, key: name }], {}, ctx)
  }

  async run(name: string, ctx: CallContext): Promise<Job> {
    const { jobs, now } = this.#options
    const { schedule } = await this.#seen(name, ctx)
    const { kind, input = null } = schedule.spec.job
    return jobs.add({ kind, input, schedule: { name, tick: now() } }, as(schedule.principal, ctx))
  }

  async ticks(name: string, limit: number, ctx: CallContext): Promise<readonly ScheduleTick[]> {
    if (!Number.isInteger(limit) || limit < 1 || limit > MOST_TICKS)
      throw scheduleInvalid('limit', `must be an integer from 1 to ${MOST_TICKS}`)
    await this.#seen(name, ctx)
    const { store } = this.#options
    const { records } = await store.range(TICKS, { ...ticksBefore(name, END_OF_TIME), reverse: true, limit }, ctx)
    return records.map(({ value }) => value as unknown as ScheduleTick)
  }

  async preview(
    spec: ScheduleSpec,
    { from, count, checksJob = false }: { readonly from: number; readonly count: number; readonly checksJob?: boolean },
    ctx: CallContext
  ): Promise<readonly number[]> {
    if (!Number.isInteger(count) || count < 1 || count > MOST_TICKS)
      throw scheduleInvalid('count', `must be an integer from 1 to ${MOST_TICKS}`)
    if (!Number.isSafeInteger(from) || Math.abs(from) > 8e15) throw scheduleInvalid('from', 'must be a time in Unix milliseconds')
    const { timing } = checkSpec(spec, this.#options.zone)
    if (checksJob) await this.#checkJob(spec, ctx)
    const ticks: number[] = []
    for (let tick = timing.next(from); tick !== undefined && ticks.length < count; tick = timing.next(tick)) ticks.push(tick)
    return ticks
  }

  /** Checks kind, input and permission, and stores nothing. */
  async #checkJob({ job: { kind, input = null } }: ScheduleSpec, ctx: CallContext): Promise<void> {
    await this.#options.jobs.prepare({ kind, input }, ctx)
  }

  /** Throws SCHEDULE_UNKNOWN, also for schedules of other owners. */
  async #seen(name: string, ctx: CallContext): Promise<{ readonly schedule: ActiveSchedule; readonly version: number }> {
    const { registry } = this.#options
    const found =
      typeof name === 'string' && name !== '' && name.length <= LONGEST_NAME ? await registry.get(name, ctx) : undefined
    if (found && (found.schedule.record.owner === ctx.principal.id || seesAll(ctx))) return found
    const known = seesAll(ctx) ? (await registry.all(ctx)).map(schedule => schedule.name) : []
    throw scheduleUnknown(String(name), known)
  }

  async #change(name: string, ctx: CallContext, change: (record: ScheduleRecord) => ScheduleRecord): Promise<Schedule> {
    const { store, changed } = this.#options
    for (;;) {
      const { schedule, version } = await this.#seen(name, ctx)
      const next = change(schedule.record)
      if (next === schedule.record) return this.#shown(schedule, ctx)
      try {
        await store.batch([putRecord(name, next, version)], {}, ctx)
        await changed(name)
        return await this.#shown({ ...schedule, record: next }, ctx)
      } catch (error) {
        if (codeOf(error) !== 'STORE_CONFLICT') throw error
      }
    }
  }

  async #shown({ name, origin, spec, timing, record }: ActiveSchedule, ctx: CallContext): Promise<Schedule> {
    const { store, now } = this.#options
    const { records } = await store.range(TICKS, { ...ticksBefore(name, now() + 1), reverse: true, limit: 1 }, ctx)
    const last = records[0]?.value as unknown as ScheduleTick | undefined
    const next = record.isPaused ? undefined : timing.next(now())
    const { owner, isPaused } = record
    return { ...spec, name, origin, owner, isPaused, ...(next === undefined ? {} : { next }), ...(last ? { last } : {}) }
  }
}
