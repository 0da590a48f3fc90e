import { definePlugin, Host, type Scope, systemContext } from '@svc/core'
import {
  type JobKind,
  JobKinds,
  Jobs,
  PluginSchedules,
  type ScheduleSpec,
  Schedules,
  Store,
  WorkflowSchedules,
} from '@svc/core/contracts'
import { type SchedulesSubject, testHost } from '@svc/testing'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'
import { createSchedules } from '../src/service.ts'

/** The plugin that adds the kinds and schedules of the tests. */
const ITEMS = 'test:items'

/** The clock of the processes of a test. */
interface Clock {
  offset: number
}

/** The schedules of this package with a clock that can be shifted. */
const withClock = (clock: Clock) =>
  definePlugin({
    requires: { store: Store, jobs: Jobs, view: PluginSchedules, workflows: WorkflowSchedules },
    provides: Schedules,
    async setup(scope, given) {
      const { openSpace } = await import('@svc/storage-kit')
      const { SPACE } = await import('../src/space.ts')
      const lasting = systemContext(scope.signal, 'schedules')
      await openSpace(given.store, SPACE, {}, lasting)
      const config = { time_zone: 'UTC', catch_up_limit: 20, entries: {} }
      const now = () => Date.now() + clock.offset
      const own = createSchedules({
        ...given,
        config,
        log: scope.log,
        lasting,
        isExecuting: true,
        now,
      })
      scope.tap(Host.hooks.ready, () => own.begin())
      scope.tap(PluginSchedules.changed, () => own.changed())
      scope.tap(Host.hooks.closing, () => own.end())
      return own.schedules
    },
  })

interface Items {
  readonly kinds: Map<string, JobKind>
  readonly declared: Map<string, ScheduleSpec>
}

async function openProcess(serverId: string, store: Store, clock: Clock, { kinds, declared }: Items) {
  const opened = Promise.withResolvers<Scope>()
  const host = await testHost([{ name: '@svc/plugin-jobs', use: pluginFolder('jobs') }], {
    serverId,
    strict: true,
    config: { jobs: { drain_s: 0, execute: true, concurrency: 20 } },
    give: [
      { name: 'test:store', use: definePlugin({ provides: Store, setup: () => store }) },
      { name: 'test:schedules', use: withClock(clock) },
      {
        name: ITEMS,
        use: definePlugin({
          setup(scope) {
            for (const [name, kind] of kinds) scope.add(JobKinds, name, kind)
            for (const [name, spec] of declared) scope.add(PluginSchedules, name, spec)
            opened.resolve(scope)
          },
        }),
      },
    ],
  })
  const scope = await opened.promise
  return { host, scope, schedules: host.service(Schedules), jobs: host.service(Jobs) }
}

export async function openTwo(first: Store, second: Store, close: () => Promise<unknown>): Promise<SchedulesSubject> {
  const clock = { offset: 0 }
  const items: Items = { kinds: new Map(), declared: new Map() }
  const start = () => Promise.all([openProcess('one', first, clock, items), openProcess('two', second, clock, items)])
  let running = await start()
  const stop = () => Promise.all(running.map(({ host }) => host.close()))
  return {
    plugin: ITEMS,
    processes: () => running,
    addKind(name, kind) {
      if (items.kinds.has(name)) return
      items.kinds.set(name, kind)
      for (const { scope } of running) scope.add(JobKinds, name, kind)
    },
    declare(name, spec) {
      items.declared.set(name, spec)
      const undo = running.map(({ scope }) => scope.add(PluginSchedules, name, spec))
      return () => undo.forEach(one => one())
    },
    shift(ms) {
      clock.offset += ms
    },
    async restart(ms) {
      await stop()
      clock.offset += ms
      running = await start()
    },
    async close() {
      await stop()
      await close()
    },
  }
}

/** A store in a host of its own. */
export const openStore = (name: string, config = {}) =>
  testHost([{ name: `@svc/plugin-${name}`, use: pluginFolder(name) }], { config, strict: false })
