import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { systemContext } from '@svc/core'
import { reachServer } from '@svc/runtime'
import { expect } from 'chai'
import { wait } from './support/wait.ts'
import { inNewHome, type Service, startService } from './support/service.ts'
import { auditRuns, beginRun, callsOf, effectsReach, follow, go, statusOf } from './support/workflow-load.ts'
import { GO } from './support/workflow-work.ts'

const WORK = fileURLToPath(new URL('./support/workflow-work.ts', import.meta.url))
/** Runs that are begun while a server reloads. */
const MOST = 60
const times = (count: number) => Array.from({ length: count }, (_, at) => at)

const inService = (run: (service: Service) => Promise<void>) =>
  inNewHome(async home => {
    await writeFile(join(home, 'svc.config.json'), JSON.stringify({ plugins: [WORK] }))
    await using service = await startService({ home, args: ['--workers', '2'] })
    await service.seen(/"event":"worker_ready"/)
    await run(service)
  })

const workersOf = async ({ home }: Service) => {
  using server = await reachServer(home)
  return server.info.workers.filter(({ state }) => state === 'ready').map(({ pid }) => pid)
}

describe('runs over two workers', () => {
  it('continue on the other worker when one is killed: each effect happens once, and readers miss no event', () =>
    inService(async service => {
      const { url, home } = service
      const ids = await Promise.all(times(40).map(() => beginRun(url, 'work')))
      const reading = ids.map(id => follow(url, id))
      await effectsReach(home, 100)
      const [first] = await workersOf(service)
      process.kill(first!, 'SIGKILL')
      await Promise.all(ids.map(id => go(url, id)))
      const reported = await Promise.all(reading)
      expect(await auditRuns(url, home, ids)).to.deep.equal([])
      // half of the readers were with the one that was killed
      expect(reported.some(({ joins }) => joins > 1)).to.equal(true)
      for (const [at, { events }] of reported.entries()) {
        const stored = events.filter(event => event.id !== '')
        const whole = await follow(url, ids[at]!)
        expect(stored.map(event => `${event.id} ${event.event}`)).to.deep.equal(
          whole.events.map(event => `${event.id} ${event.event}`)
        )
      }
    })).timeout(60_000)

  it('finish the current step on the old worker during a reload, and continue on the new one', () =>
    inService(async service => {
      const { url, home } = service
      const old = await workersOf(service)
      const holds = await Promise.all(times(10).map(() => beginRun(url, 'held')))
      const ids = await Promise.all(times(10).map(() => beginRun(url, 'work')))
      const reading = holds.map(id => follow(url, id))
      while (callsOf(home, 'held').length < holds.length) await wait()
      const under = { way: true }
      const loading = (async () => {
        while (under.way && ids.length < MOST) ids.push(await beginRun(url, 'work'))
      })()
      using server = await reachServer(home)
      expect((await server.control.reload(systemContext(AbortSignal.timeout(50_000)))).problems).to.deep.equal([])
      under.way = false
      await loading
      await writeFile(join(home, GO), '')
      const reported = await Promise.all(reading)
      await Promise.all(ids.map(id => go(url, id)))
      expect(await auditRuns(url, home, ids)).to.deep.equal([])
      for (const id of holds) {
        const { status, result } = await statusOf(url, id)
        expect(status).to.equal('completed')
        const where = result as { held: number; after: number }
        expect([old.includes(where.held), old.includes(where.after)]).to.deep.equal([true, false])
      }
      expect(callsOf(home, 'held')).to.have.length(holds.length)
      expect(callsOf(home, 'after')).to.have.length(holds.length)
      // they were with the old workers, which sent them on
      for (const { joins } of reported) expect(joins).to.be.greaterThan(1)
      expect(service.output()).to.not.match(/"how":"SIG/)
    })).timeout(60_000)
})
