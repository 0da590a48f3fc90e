// Not a unit test: starts servers.
import { rm } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { addJobs, auditJobs, auditTicks, killWorkersWhile, recordsOf, startJobs, untilDone } from './support/job-load.ts'
import { newHome } from './support/service.ts'

const JOBS = 1_000

describe('jobs and schedules on four workers', function () {
  this.timeout(150_000)
  let home: string
  beforeEach(async () => void (home = await newHome()))
  afterEach(() => rm(home, { recursive: true, force: true }))

  it('lose no job and run none twice at the same time, although workers and the whole server are killed', async () => {
    {
      await using service = await startJobs(home)
      await sleep(6_000)
      const adding = addJobs(service, JOBS)
      const killed = await killWorkersWhile(home, 700, Promise.all([adding, sleep(2_500)]))
      expect(killed).to.be.greaterThan(1)
      await service.kill()
    }
    await using _service = await startJobs(home)
    await untilDone(home, 'record', 90_000)
    expect(await auditJobs(home, JOBS)).to.deep.equal([])
    const again = (recordsOf(home).get('begin') ?? []).filter(line => !line.endsWith(' 1'))
    expect(again.length, 'jobs that ran again').to.be.greaterThan(0)
  })

  it('start one job for each tick of a second, although workers are killed', async () => {
    await using _service = await startJobs(home)
    const killed = await killWorkersWhile(home, 1_500, sleep(20_000))
    expect(killed).to.be.greaterThan(2)
    await untilDone(home, 'tick', 40_000)
    const { ticks, problems } = await auditTicks(home)
    expect(problems).to.deep.equal([])
    expect(ticks).to.be.greaterThan(17)
  })
})
