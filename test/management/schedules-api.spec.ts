import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { changesOf, type Managed, startManaged, tenTimes, until } from '../support/admin-caller.ts'

const SCHEDULES = '/api/v1/schedules'
const KINDS = fileURLToPath(new URL('../support/manual-jobs.ts', import.meta.url))
const CONFIG = `plugins: [${JSON.stringify(KINDS)}]
schedules:
  entries:
    fixed: { cron: "0 3 1 1 *", kind: manual.echo, input: { say: new year } }
`
const JOB = { kind: 'manual.echo', input: { say: 'tick' } }

interface Shown {
  readonly name: string
  readonly cron: string | null
  readonly every_ms: number | null
  readonly origin: string
  readonly owner: string
  readonly is_paused: boolean
  readonly next: string | null
  readonly last: { readonly job: string | null; readonly tick: string } | null
  readonly job: { readonly kind: string; readonly input: unknown }
}
type Detail = Shown & { readonly ticks: readonly { readonly tick: string; readonly at: string; readonly job: string | null }[] }

describe('the management API of schedules', () => {
  let home: string
  let server: Managed & AsyncDisposable
  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'svc-schedules-api-'))
    server = await startManaged(home, CONFIG)
  })
  after(async () => {
    await server?.[Symbol.asyncDispose]()
    await rm(home, { recursive: true, force: true })
  })
  const read = (name: string) => server.admin.expect<Detail>(200, 'GET', `${SCHEDULES}/${name}`)

  it('adds a schedule, reads its ticks, pauses, resumes, runs and removes it', async () => {
    const { admin } = server
    const added = await admin.expect<Shown>(201, 'POST', SCHEDULES, {
      name: 'each-second',
      every_ms: 1_000,
      job: JOB,
      overlap: 'allow',
    })
    expect(added).to.deep.include({ every_ms: 1_000, cron: null, origin: 'added', owner: 'api-key', is_paused: false, job: JOB })
    await until('it has ticked', async () => (await read('each-second')).ticks.length >= 2)
    const { ticks, last } = await read('each-second')
    expect(ticks.map(({ tick }) => tick)).to.deep.equal(
      ticks
        .map(({ tick }) => tick)
        .toSorted()
        .toReversed()
    )
    expect(last!.tick).to.equal(ticks[0]!.tick)
    const job = await admin.expect<{ kind: string; schedule: unknown }>(200, 'GET', `/api/v1/jobs/${ticks.at(-1)!.job}`)
    expect(job).to.deep.include({ kind: 'manual.echo', schedule: { name: 'each-second', tick: ticks.at(-1)!.tick } })
    expect((await admin.expect<Detail>(200, 'GET', `${SCHEDULES}/each-second?ticks=1`)).ticks).to.have.length(1)

    expect(await admin.expect<Shown>(200, 'POST', `${SCHEDULES}/each-second/pause`)).to.include({ is_paused: true, next: null })
    const paused = (await tenTimes(admin, `${SCHEDULES}/each-second`)) as Detail
    expect(paused.is_paused).to.equal(true)
    expect(await admin.expect<object>(201, 'POST', `${SCHEDULES}/each-second/run`)).to.include({ kind: 'manual.echo' })
    expect((await admin.expect<Shown>(200, 'POST', `${SCHEDULES}/each-second/resume`)).next).to.match(/Z$/)
    await admin.expect(200, 'DELETE', `${SCHEDULES}/each-second`)
    await admin.refused(404, 'INVALID_VALUE', 'GET', `${SCHEDULES}/each-second`)

    const changes = await changesOf(server, 'schedules/each-second', 5)
    expect(changes.map(({ change }) => change)).to.have.members([
      'schedule_added',
      'schedule_paused',
      'schedule_run',
      'schedule_resumed',
      'schedule_removed',
    ])
    expect(changes.find(({ change }) => change === 'schedule_paused')).to.deep.include({
      principal: 'api-key',
      before: { is_paused: false },
      after: { is_paused: true },
    })
    expect(JSON.stringify(changes)).to.not.include('"say"')
  })

  it('previews the next ticks of a draft, which it does not store', async () => {
    const { ticks } = await server.reader.expect<{ ticks: readonly string[] }>(200, 'POST', `${SCHEDULES}/preview`, {
      cron: '30 4 * * *',
      time_zone: 'Europe/Berlin',
      count: 3,
    })
    expect(ticks).to.have.length(3)
    for (const tick of ticks) expect(tick).to.match(/T0[23]:30:00\.000Z$/)
    const answer = await server.reader.refused(400, 'INVALID_VALUE', 'POST', `${SCHEDULES}/preview`, { cron: '30 4 * * nonday' })
    expect((answer.body as { details: object }).details)
      .to.include({ field: 'cron' })
      .and.to.have.property('position')
    const { schedules } = (await tenTimes(server.admin, SCHEDULES)) as { schedules: readonly Shown[] }
    expect(schedules.map(({ name }) => name)).to.deep.equal(['fixed'])
  })

  it('shows schedules of others to administrators only', async () => {
    await server.admin.expect(200, 'GET', `${SCHEDULES}/fixed`)
    expect(await server.reader.expect(200, 'GET', SCHEDULES)).to.deep.equal({ schedules: [] })
    await server.reader.refused(404, 'INVALID_VALUE', 'GET', `${SCHEDULES}/fixed`)
  })

  it('requires the scopes', async () => {
    const { reader, unfit } = server
    await unfit.refused(403, 'FORBIDDEN', 'GET', SCHEDULES)
    await unfit.refused(403, 'FORBIDDEN', 'POST', `${SCHEDULES}/preview`, { every_ms: 1_000 })
    await reader.refused(403, 'FORBIDDEN', 'POST', SCHEDULES, { name: 'a', every_ms: 1_000, job: JOB })
    for (const what of ['pause', 'resume', 'run']) await reader.refused(403, 'FORBIDDEN', 'POST', `${SCHEDULES}/fixed/${what}`)
    await reader.refused(403, 'FORBIDDEN', 'DELETE', `${SCHEDULES}/fixed`)
  })

  const every = { every_ms: 60_000 }
  const bad: Readonly<Record<string, readonly [status: number, code: string, method: string, path: string, body?: unknown]>> = {
    'an unknown name': [404, 'INVALID_VALUE', 'GET', `${SCHEDULES}/nothing`],
    'a name of the prototype': [404, 'INVALID_VALUE', 'GET', `${SCHEDULES}/__proto__`],
    'a pause of nothing': [404, 'INVALID_VALUE', 'POST', `${SCHEDULES}/nothing/pause`],
    'a removal of nothing': [404, 'INVALID_VALUE', 'DELETE', `${SCHEDULES}/nothing`],
    'a removal of one in the configuration': [400, 'INVALID_VALUE', 'DELETE', `${SCHEDULES}/fixed`],
    'a name that is taken': [400, 'INVALID_VALUE', 'POST', SCHEDULES, { name: 'fixed', ...every, job: JOB }],
    'a name that is none': [400, 'INVALID_VALUE', 'POST', SCHEDULES, { name: '../etc', ...every, job: JOB }],
    'a name of the prototype to add': [400, 'INVALID_VALUE', 'POST', SCHEDULES, { name: '__proto__', ...every, job: JOB }],
    'no job': [400, 'MISSING_FIELD', 'POST', SCHEDULES, { name: 'a', ...every }],
    'a job without a kind': [400, 'INVALID_VALUE', 'POST', SCHEDULES, { name: 'a', ...every, job: {} }],
    'a kind that no plugin adds': [404, 'INVALID_VALUE', 'POST', SCHEDULES, { name: 'a', ...every, job: { kind: 'nothing' } }],
    'an input that does not fit': [
      400,
      'INVALID_VALUE',
      'POST',
      SCHEDULES,
      { name: 'a', ...every, job: { kind: 'manual.echo', input: 1 } },
    ],
    'no timing': [400, 'INVALID_VALUE', 'POST', SCHEDULES, { name: 'a', job: JOB }],
    'two timings': [400, 'INVALID_VALUE', 'POST', SCHEDULES, { name: 'a', ...every, cron: '@daily', job: JOB }],
    'a cron expression of 10^5 characters': [
      400,
      'INVALID_VALUE',
      'POST',
      SCHEDULES,
      { name: 'a', cron: '1,'.repeat(50_000), job: JOB },
    ],
    'a cron expression without a tick': [400, 'INVALID_VALUE', 'POST', `${SCHEDULES}/preview`, { cron: '0 0 31 2 *' }],
    'an interval that is too short': [400, 'INVALID_VALUE', 'POST', SCHEDULES, { name: 'a', every_ms: 1, job: JOB }],
    'an interval that is no number': [400, 'INVALID_VALUE', 'POST', `${SCHEDULES}/preview`, { every_ms: '1000' }],
    'a time zone that is none': [
      400,
      'INVALID_VALUE',
      'POST',
      `${SCHEDULES}/preview`,
      { cron: '@daily', time_zone: 'Mars/Olympus' },
    ],
    'a count of 101': [400, 'INVALID_VALUE', 'POST', `${SCHEDULES}/preview`, { ...every, count: 101 }],
    'a field that is none': [400, 'INVALID_VALUE', 'POST', SCHEDULES, { name: 'a', ...every, job: JOB, owner: 'anna' }],
    'a number of ticks beyond the maximum': [400, 'INVALID_VALUE', 'GET', `${SCHEDULES}/fixed?ticks=101`],
    'a parameter that is none': [400, 'INVALID_VALUE', 'GET', `${SCHEDULES}?owner=anna`],
  }
  for (const [what, [status, code, method, path, body]] of Object.entries(bad))
    it(`refuses ${what}`, () => server.admin.refused(status, code, method, path, body))
})
