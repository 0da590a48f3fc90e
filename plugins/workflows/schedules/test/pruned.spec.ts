import { definePlugin, type Log, systemContext } from '@svc/core'
import { type Jobs, type ScheduleSpec, Store } from '@svc/core/contracts'
import { openSpace } from '@svc/storage-kit'
import { testHost } from '@svc/testing'
import { expect } from 'chai'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'
import { Scheduler } from '../src/scheduler.ts'
import { fingerprintOf, SPACE, TICKS } from '../src/space.ts'
import { timingOf } from '@svc/plugin-kit/schedule-timing'

const ctx = systemContext(new AbortController().signal, 'test')
const SPEC: ScheduleSpec = { everyMs: 1_000, overlap: 'allow', job: { kind: 'note' } }
const BEGAN = 1_800_000_000_000
const STEP_MS = 50_000
const HOUR = 3_600_000

describe('the ticks of a schedule', () => {
  it('start no second job when the clock is set back for longer than their records are kept', async () => {
    const store = { name: '@svc/plugin-store-memory', use: pluginFolder('store-memory') }
    let log: Log | undefined
    const own = { name: 'test:log', use: definePlugin({ setup: scope => void ({ log } = scope) }) }
    await using host = await testHost([store], { strict: false, give: [own] })
    const service = host.service(Store)
    await openSpace(service, SPACE, {}, ctx)
    await openSpace(service, { name: 'test_jobs', version: 1, collections: { test_jobs: {} } }, {}, ctx)
    let prepared = 0
    const jobs = {
      prepare: async ({ schedule }: { schedule: { tick: number } }) => {
        const id = `job${String(++prepared)}`
        return { id, ops: [{ op: 'put', collection: 'test_jobs', key: id, value: schedule.tick }] }
      },
      wake: async () => {},
      get: async () => undefined,
    } as unknown as Jobs
    /** The ticks of the jobs that exist. */
    const started = async () => {
      const ticks: number[] = []
      for (let cursor: string | undefined; ; ) {
        const page = await service.range('test_jobs', { limit: 1_000, ...(cursor === undefined ? {} : { cursor }) }, ctx)
        ticks.push(...page.records.map(({ value }) => Number(value)))
        cursor = page.next
        if (cursor === undefined) return ticks.toSorted((a, b) => a - b)
      }
    }
    let now = BEGAN
    const record = { owner: 'system', scopes: [], fingerprint: fingerprintOf(SPEC), since: BEGAN, isPaused: false }
    const schedule = {
      name: 's',
      origin: 'added',
      spec: SPEC,
      record,
      timing: timingOf(SPEC, 'UTC'),
      principal: ctx.principal,
    }
    const open = async () => {
      const scheduler = new Scheduler({ store: service, jobs, catchUpLimit: 100, now: () => now, log: log!, lasting: ctx })
      await scheduler.set(schedule as never)
      return scheduler
    }
    const pass = async (scheduler: Scheduler, ms: number) => {
      for (const end = now + ms; now < end; ) {
        now += STEP_MS
        scheduler.look()
        await scheduler.idle()
      }
    }
    const scheduler = await open()
    await pass(scheduler, HOUR)
    expect(await started()).to.have.lengthOf(HOUR / 1_000)
    expect((await service.range(TICKS, { limit: 1 }, ctx)).records[0]?.key, 'the first tick is pruned').to.not.include(`${BEGAN}`)
    now -= HOUR - STEP_MS
    await pass(scheduler, HOUR / 2)
    now -= HOUR / 2 - STEP_MS
    // a worker that starts now
    await pass(await open(), 2 * HOUR)
    const present = now
    // the clock is a day ahead for an hour, then right again
    now += 24 * HOUR
    await pass(scheduler, HOUR)
    now = present
    scheduler.look()
    await pass(scheduler, HOUR)
    const found = await started()
    expect(
      found.filter((tick, at) => tick === found[at - 1]),
      'ticks that started two jobs'
    ).to.have.lengthOf(0)
    const all = Array.from({ length: (now - BEGAN) / 1_000 }, (_, at) => BEGAN + (at + 1) * 1_000)
    expect(found.filter(tick => tick <= now).join() === all.join(), 'each tick has started a job').to.equal(true)
  })
})
