import { type CallContext, type Log, messageOf, type SlotView } from '@svc/core'
import type { DefinedSchedule, Jobs, Schedules, ScheduleSpec, Store } from '@svc/core/contracts'
import { configured, contributed, ofWorkflows } from './definitions.ts'
import { Registry } from './registry.ts'
import { Scheduler } from './scheduler.ts'
import { SchedulesService } from './schedules-service.ts'
import type { SchedulesConfig } from './settings.ts'

export interface SchedulesOptions {
  readonly store: Store
  readonly jobs: Jobs
  readonly view: SlotView<ScheduleSpec>
  readonly workflows: SlotView<DefinedSchedule>
  readonly config: SchedulesConfig
  readonly log: Log
  readonly lasting: CallContext
  /** Whether this process handles ticks. */
  readonly isExecuting: boolean
  /** The clock, for tests. */
  readonly now?: () => number
}

interface SchedulesOfProcess {
  readonly schedules: Schedules
  /** Starts to handle ticks. */
  begin(): Promise<undefined>
  /** Stops. Resolves when no tick is being handled any more. */
  end(): Promise<void>
  /** The schedules of plugins or workflows have changed. */
  changed(): Promise<void>
}

/** Creates the service, and what handles ticks in this process. */
export function createSchedules(options: SchedulesOptions): SchedulesOfProcess {
  const { store, jobs, view, workflows, config, log, lasting, isExecuting, now = Date.now } = options
  const zone = config.time_zone
  const ofConfiguration = configured(config)
  const reported = new Set<string>()
  const rejected = (name: string, plugin: string, error: unknown) => {
    const line = `${name} ${messageOf(error)}`
    if (!reported.has(line)) log.warn({ err: error, schedule: name, of: plugin }, 'ignored an invalid schedule')
    reported.add(line)
  }
  const declared = () => [...ofConfiguration, ...contributed(view, zone, rejected), ...ofWorkflows(workflows, zone, rejected)]
  const registry = new Registry({ store, declared, zone, now, log, lasting })
  const scheduler = new Scheduler({ store, jobs, catchUpLimit: config.catch_up_limit, now, log, lasting })
  const ending = new AbortController()
  const signal = AbortSignal.any([ending.signal, lasting.signal])
  let working: Promise<unknown> = Promise.resolve()
  const load = async () => {
    await registry.ensure()
    await registry.load(scheduler)
  }
  let loading: Promise<void> = Promise.resolve()
  let next: Promise<void> | undefined
  // one after the other, and once for many changes: a folder of workflows adds its schedules one by one
  const refresh = () => {
    next ??= loading
      .catch(() => {})
      .then(() => {
        next = undefined
        loading = load()
        return loading
      })
    return next
  }
  return {
    schedules: new SchedulesService({
      store,
      jobs,
      registry,
      zone,
      now,
      changed: async name => {
        if (isExecuting) await registry.update(name, scheduler)
      },
    }),
    async begin() {
      await refresh()
      working = Promise.all([registry.follow(scheduler, signal), scheduler.run(signal)])
      return undefined
    },
    async end() {
      ending.abort()
      await working
    },
    changed: refresh,
  }
}
