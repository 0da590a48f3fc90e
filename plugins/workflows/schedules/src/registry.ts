import { type CallContext, codeOf, type Log, pause } from '@svc/core'
import type { ScheduleSpec, Store, StoreRecord } from '@svc/core/contracts'
import { checkSpec, type ScheduleDefinition } from './definitions.ts'
import type { ActiveSchedule, Scheduler } from './scheduler.ts'
import { fingerprintOf, putRecord, SCHEDULES, type ScheduleRecord } from './space.ts'

export interface RegistryOptions {
  readonly store: Store
  /** The schedules of the configuration and of plugins, in this order. */
  readonly declared: () => readonly ScheduleDefinition[]
  /** The time zone of schedules without one. */
  readonly zone: string
  readonly now: () => number
  readonly log: Log
  readonly lasting: CallContext
}

/** Whether a schedule that a caller added takes precedence over a definition. */
const isGuarded = (record: ScheduleRecord, { origin }: ScheduleDefinition) => record.spec !== undefined && origin === 'plugin'

const PAGE = 200
const AGAIN_MS = 1_000

/** The schedules of all origins, with their stored state. */
export class Registry {
  readonly #options: RegistryOptions

  constructor(options: RegistryOptions) {
    this.#options = options
  }

  /** The schedules that the configuration and the plugins define, by name. The configuration takes precedence. */
  declared(): Map<string, ScheduleDefinition> {
    const found = new Map<string, ScheduleDefinition>()
    for (const definition of this.#options.declared()) if (!found.has(definition.name)) found.set(definition.name, definition)
    return found
  }

  /** All schedules, by name. */
  async all(ctx: CallContext): Promise<ActiveSchedule[]> {
    const { store } = this.#options
    const declared = this.declared()
    const found: ActiveSchedule[] = []
    const stored = new Set<string>()
    let cursor: string | undefined
    do {
      const page = await store.range(SCHEDULES, { limit: PAGE, ...(cursor === undefined ? {} : { cursor }) }, ctx)
      for (const record of page.records) {
        const schedule = this.#scheduleOf(record, declared.get(record.key))
        if (schedule) found.push(schedule)
        if (schedule) stored.add(record.key)
      }
      cursor = page.next
    } while (cursor !== undefined)
    for (const definition of declared.values())
      if (!stored.has(definition.name)) found.push({ ...definition, record: this.#fresh(definition) })
    return found.toSorted((a, b) => (a.name < b.name ? -1 : 1))
  }

  async get(
    name: string,
    ctx: CallContext
  ): Promise<{ readonly schedule: ActiveSchedule; readonly version: number } | undefined> {
    const found = await this.#options.store.get(SCHEDULES, name, ctx)
    const definition = this.declared().get(name)
    if (found) {
      const schedule = this.#scheduleOf(found, definition)
      return schedule && { schedule, version: found.version }
    }
    return definition && { schedule: { ...definition, record: this.#fresh(definition) }, version: 0 }
  }

  /** An entry of the configuration replaces an added schedule with the same name. A plugin must not be able to do that. */
  #scheduleOf({ key, value }: StoreRecord, declared: ScheduleDefinition | undefined): ActiveSchedule | undefined {
    const record = value as unknown as ScheduleRecord
    if (declared && !isGuarded(record, declared)) {
      const { id: owner, scopes } = declared.principal
      return { ...declared, record: { ...record, owner, scopes } }
    }
    if (!record.spec) return undefined
    try {
      const { spec, timing } = checkSpec(record.spec, this.#options.zone)
      const principal = { id: record.owner, scopes: record.scopes }
      return { name: key, origin: 'added', spec, timing, principal, record }
    } catch (err) {
      this.#options.log.warn({ err, schedule: key }, 'ignored an invalid schedule of the store')
      return undefined
    }
  }

  /** The state of a schedule that has none yet. */
  #fresh({ spec, principal }: ScheduleDefinition): ScheduleRecord {
    const { id: owner, scopes } = principal
    return { owner, scopes, fingerprint: this.fingerprint(spec), since: this.#options.now(), isPaused: false }
  }

  /** The default time zone is part of a definition. */
  fingerprint(spec: ScheduleSpec): string {
    return fingerprintOf({ ...(spec.cron === undefined ? {} : { timeZone: this.#options.zone }), ...spec })
  }

  /** Stores the state of declared schedules that are new or have changed. Ticks of the past are not caught up for these. */
  async ensure(): Promise<void> {
    const { store, lasting, log } = this.#options
    for (const definition of this.declared().values()) {
      const found = await store.get(SCHEDULES, definition.name, lasting)
      const before = found?.value as unknown as ScheduleRecord | undefined
      const fresh = this.#fresh(definition)
      if (before && isGuarded(before, definition)) {
        log.warn({ schedule: definition.name }, 'ignored the schedule of a plugin: a caller already uses this name')
        continue
      }
      if (before && before.fingerprint === fresh.fingerprint && before.owner === fresh.owner && !before.spec) continue
      const next = { ...fresh, isPaused: before?.isPaused ?? false }
      await store.batch([putRecord(definition.name, next, found?.version ?? 0)], {}, lasting).catch((error: unknown) => {
        if (codeOf(error) !== 'STORE_CONFLICT') throw error
      })
    }
  }

  /** Keeps a scheduler up to date until the signal aborts. */
  async follow(scheduler: Scheduler, signal: AbortSignal): Promise<void> {
    const { store, lasting, log } = this.#options
    const ctx = { ...lasting, signal }
    while (!signal.aborted) {
      try {
        // listen first, so that no change is missed
        const changes = store.watch(SCHEDULES, ctx)[Symbol.asyncIterator]()
        let next = changes.next()
        next.catch(() => {})
        await this.load(scheduler)
        for (let change = await next; !change.done; change = await next) {
          next = changes.next()
          next.catch(() => {})
          await this.update(change.value.key, scheduler)
        }
      } catch (err) {
        if (!signal.aborted) log.warn({ err }, 'failed to read changes of schedules from the store')
      }
      await pause(AGAIN_MS, signal).catch(() => {})
    }
  }

  async load(scheduler: Scheduler): Promise<void> {
    const { lasting } = this.#options
    const all = await this.all(lasting)
    scheduler.keepOnly(new Set(all.map(({ name }) => name)))
    for (const schedule of all) await this.#apply(schedule, scheduler)
  }

  async update(name: string, scheduler: Scheduler): Promise<void> {
    const found = await this.get(name, this.#options.lasting)
    if (found) await this.#apply(found.schedule, scheduler)
    else scheduler.remove(name)
  }

  /** A worker with another definition does not handle its ticks: it is being replaced. */
  async #apply(schedule: ActiveSchedule, scheduler: Scheduler): Promise<void> {
    const isCurrent = schedule.record.fingerprint === this.fingerprint(schedule.spec)
    if (isCurrent) await scheduler.set(schedule)
    else scheduler.remove(schedule.name)
  }
}
