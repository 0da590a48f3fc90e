import { setTimeout as sleep } from 'node:timers/promises'
import { definePlugin, formatError, StartFailed, systemContext } from '@svc/core'
import { JobKinds, Jobs, type JobStep, type JobTask, PluginSchedules, Schedules } from '@svc/core/contracts'
import { testHost } from '@svc/testing'
import { expect } from 'chai'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'

const ctx = systemContext(new AbortController().signal, 'test')
const plugins = ['store-memory', 'jobs', 'schedules'].map(name => ({ name: `@svc/plugin-${name}`, use: pluginFolder(name) }))

async function* nothing(): AsyncGenerator<JobStep> {
  yield { type: 'result', value: null }
}

/** A strict host: all values between plugins are cloned, frozen and checked. */
function open(entries: object, tasks: JobTask[] = []) {
  const kinds = definePlugin({
    setup(scope) {
      scope.add(JobKinds, 'note', {
        description: 'Notes its task',
        async *run(task) {
          tasks.push(task)
          yield { type: 'result', value: null }
        },
      })
      scope.add(PluginSchedules, 'shared', { everyMs: 86_400_000, job: { kind: 'note' } })
    },
  })
  const config = { jobs: { execute: true }, schedules: { execute: true, time_zone: 'Europe/Berlin', entries } }
  return testHost(plugins, { config, give: [{ name: 'test:kinds', use: kinds }] })
}

describe('the plugin of schedules', () => {
  it('starts jobs of the configuration, in place of those of plugins with the same name', async () => {
    const tasks: JobTask[] = []
    const entries = {
      seconds: { every: '1s', kind: 'note', input: [1], overlap: 'allow' },
      shared: { cron: '0 3 * * *', kind: 'note', description: 'At night' },
    }
    await using host = await open(entries, tasks)
    while (tasks.length < 2) await sleep(20)
    expect(tasks[0]).to.deep.include({ kind: 'note', input: [1], attempt: 1 })
    expect(tasks[1]!.schedule).to.deep.equal({ name: 'seconds', tick: tasks[0]!.schedule!.tick + 1_000 })
    const [first, second] = await host.service(Schedules).list(ctx)
    expect(first).to.include({ name: 'seconds', origin: 'configuration', owner: 'system', everyMs: 1_000 })
    expect(second).to.include({ name: 'shared', origin: 'configuration', cron: '0 3 * * *', description: 'At night' })
    const next = new Date(second!.next!).toLocaleString('sv', { timeZone: 'Europe/Berlin' })
    expect(next).to.match(/ 03:00:00$/)
  })

  it('handles no ticks in a process that is no server, and runs a schedule on request', async () => {
    const config = { jobs: { execute: true }, schedules: { entries: { seconds: { every: '1s', kind: 'note' } } } }
    const kinds = definePlugin({
      setup: scope => void scope.add(JobKinds, 'note', { description: 'Notes', run: nothing }),
    })
    await using host = await testHost(plugins, { config, give: [{ name: 'test:kinds', use: kinds }] })
    await sleep(1_200)
    expect(await host.service(Schedules).ticks('seconds', 1, ctx)).to.deep.equal([])
    const { id } = await host.service(Schedules).run('seconds', ctx)
    expect(await host.service(Jobs).settled(id, 5_000, ctx)).to.include({ state: 'completed' })
  })

  it('fails the start with all mistakes of the configuration and their places', async () => {
    const failed = await open({
      one: { cron: '61 * * * *', kind: 'note' },
      two: { every: '1s', time_zone: 'UTC', kind: 'note' },
    }).catch((error: unknown) => error)
    expect(failed).to.be.instanceOf(StartFailed)
    const text = formatError(failed)
    expect(text).to.include('schedules.entries.one').and.to.include('(at position 1)')
    expect(text).to.include('schedules.entries.two').and.to.include('time_zone has no meaning for an interval')
  })
})
