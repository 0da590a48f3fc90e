import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { type Managed, startManaged, tenTimes, until } from '../support/admin-caller.ts'
import { runSvc } from '../support/command.ts'
import { workersOf } from '../support/two-workers.ts'

const NAME = 'workflow.beat'
const SCHEDULES = '/api/v1/schedules'
const beat = (schedule: string) => `name: beat
inputs: { type: object, properties: { n: { type: integer } }, required: [n] }
nodes: { a: { type: transform, value: "\${{ input.n }}" } }
schedule: ${schedule}
`

interface Detail {
  readonly origin: string
  readonly owner: string
  readonly cron: string | null
  readonly ticks: readonly { readonly tick: string; readonly job: string | null }[]
}

describe('schedules of workflow definitions on a server', function () {
  this.timeout(180_000)
  let home: string
  let server: Managed & AsyncDisposable
  const file = () => join(home, 'workflows', 'beat.yaml')
  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'svc-workflow-schedules-'))
    await mkdir(join(home, 'workflows'))
    await writeFile(file(), beat('{ every: 1s, overlap: allow, catch_up: all, input: { n: 1 }, owner: ann }'))
    server = await startManaged(home, '{}\n')
  })
  after(async () => {
    await server?.[Symbol.asyncDispose]()
    await rm(home, { recursive: true, force: true })
  })
  const detail = () => server.admin.expect<Detail>(200, 'GET', `${SCHEDULES}/${NAME}?ticks=100`)
  // a killed worker resets its connections
  const count = async () => (await detail().catch(() => ({ ticks: [] }))).ticks.length

  it('lose and double no tick over two workers, a reload and a killed worker', async () => {
    await until('it ticks', async () => (await server.admin.send('GET', `${SCHEDULES}/${NAME}`)).status === 200)
    await until('it has ticked', async () => (await count()) >= 2)
    const reloaded = await runSvc(['reload'], { home })
    expect(reloaded.code, reloaded.err).to.equal(0)
    const after = await count()
    await until('the new workers handle ticks', async () => (await count()) >= after + 2)
    process.kill((await workersOf(home))[0]!, 'SIGKILL')
    await until('the other worker handles ticks', async () => (await count()) >= after + 5)

    const { ticks, origin, owner } = await detail()
    expect([origin, owner]).to.deep.equal(['workflow', 'ann'])
    const times = ticks.map(({ tick }) => Date.parse(tick)).toReversed()
    expect(times).to.deep.equal(times.map((_, at) => times[0]! + at * 1_000))
    const ids = new Set<string>()
    for (const { job } of ticks) {
      type Job = { readonly state: string; readonly result: { readonly run_id: string } | null }
      const read = () => server.admin.expect<Job>(200, 'GET', `/api/v1/jobs/${job}`)
      await until('its job has ended', async () => (await read()).state === 'completed')
      ids.add((await read()).result!.run_id)
    }
    expect(ids.size).to.equal(ticks.length)
  })

  it('are listed with their origin by each worker and on the command line, and cannot be removed there', async () => {
    await writeFile(file(), beat('{ cron: "0 3 1 1 *", time_zone: Europe/Berlin, input: { n: 1 } }'))
    await until('it has changed', async () => (await detail()).cron !== null)
    await until('each worker has it', async () => {
      const answers = await Promise.all(Array.from({ length: 8 }, () => server.admin.send('GET', `${SCHEDULES}/${NAME}`)))
      return answers.every(({ body }) => (body as Detail).cron !== null)
    })
    const shown = (await tenTimes(server.admin, `${SCHEDULES}/${NAME}`)) as Detail
    expect(shown).to.include({ origin: 'workflow', owner: 'workflow:beat', cron: '0 3 1 1 *' })
    const listed = await runSvc(['schedules', 'list', '--json'], { home })
    expect(listed.code, listed.err).to.equal(0)
    const { schedules } = JSON.parse(listed.out) as { schedules: { name: string; origin: string }[] }
    expect(schedules.find(({ name }) => name === NAME)).to.include({ origin: 'workflow' })
    expect((await runSvc(['schedules', 'list'], { home })).out).to.match(/workflow\.beat .*by workflow/)
    const removed = await runSvc(['schedules', 'remove', NAME, '--json'], { home })
    expect(removed.code).to.equal(1)
    expect(removed.err).to.include('is defined by a workflow definition, so it cannot be removed here')
    await server.admin.refused(400, 'INVALID_VALUE', 'DELETE', `${SCHEDULES}/${NAME}`)
    await server.admin.refused(400, 'INVALID_VALUE', 'POST', SCHEDULES, {
      name: 'workflow.mine',
      every_ms: 60_000,
      job: { kind: 'workflows.run', input: { workflow: 'beat' } },
    })
    // a pause holds although the file stays as it is
    expect(await server.admin.expect<object>(200, 'POST', `${SCHEDULES}/${NAME}/pause`)).to.include({ is_paused: true })
    await rm(file())
    await until('each worker has forgotten it', async () => {
      const answers = await Promise.all(Array.from({ length: 8 }, () => server.admin.send('GET', `${SCHEDULES}/${NAME}`)))
      return answers.every(({ status }) => status === 404)
    })
  })

  it('start workflows over the API, too', async () => {
    await writeFile(file(), beat('{ cron: "0 3 1 1 *", input: { n: 1 } }'))
    const job = { kind: 'workflows.run', input: { workflow: 'beat', input: { n: 5 } } }
    await server.admin.expect(201, 'POST', SCHEDULES, { name: 'calls', cron: '0 3 1 1 *', job })
    const { id } = await server.admin.expect<{ id: string }>(201, 'POST', `${SCHEDULES}/calls/run`)
    type Job = { readonly state: string; readonly result: { readonly run_id: string } }
    const read = () => server.admin.expect<Job>(200, 'GET', `/api/v1/jobs/${id}`)
    await until('the job has ended', async () => (await read()).state === 'completed')
    const run = await server.admin.expect<object>(200, 'GET', `/api/v1/workflows/${(await read()).result.run_id}/status`)
    expect(run).to.deep.include({ workflow: 'beat', status: 'completed', input: { n: 5 } })
    const bad = { name: 'bad', cron: '0 3 1 1 *', job: { kind: 'workflows.run', input: { workflow: 5 } } }
    await server.admin.refused(400, 'INVALID_VALUE', 'POST', SCHEDULES, bad)
  })
})
