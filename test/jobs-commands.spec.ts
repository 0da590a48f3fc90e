// Not a unit test: starts a server.
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { runSvc } from './support/command.ts'
import { newHome, type Service, startService } from './support/service.ts'
import { configureFew } from './support/tides.ts'

const KINDS = `import { definePlugin } from '@svc/core'
import { JobKinds } from '@svc/core/contracts'
export default definePlugin({
  setup(scope) {
    scope.add(JobKinds, 'demo.echo', { description: 'Echoes', async *run({ input }) {
      yield { type: 'log', level: 'info', message: 'said \\u001b[2J' + JSON.stringify(input) }
      yield { type: 'result', value: { echo: input } }
    } })
    scope.add(JobKinds, 'demo.fails', { description: 'Fails', attempts: 1, async *run() {
      throw Object.assign(new Error('no such feed'), { code: 'FEED_UNKNOWN', details: {} })
    } })
    scope.add(JobKinds, 'demo.waits', { description: 'Waits', async *run(_, { signal }) {
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    } })
  },
})
`

interface Listed {
  readonly id: string
  readonly kind: string
  readonly state: string
  readonly created_at: string
}

describe('svc jobs and svc schedules', function () {
  this.timeout(60_000)
  let home: string
  let service: Service
  const svc = async (...args: string[]) => runSvc(args, { home, share: true })
  const fine = async (...args: string[]) => {
    const { code, out, err } = await svc(...args)
    expect(code, err).to.equal(0)
    return { out, err }
  }
  const json = async <T>(...args: string[]) => JSON.parse((await fine(...args, '--json')).out) as T
  /** Starts a job of a kind through a schedule, as nothing else adds jobs from outside. */
  const start = async (kind: string, ...more: string[]) => {
    await fine('schedules', 'add', `run-${kind}`, '--every', '1d', '--kind', kind, ...more)
    return (await json<{ job: string }>('schedules', 'run', `run-${kind}`)).job
  }
  const until = async (id: string, state: string) => {
    for (;;) {
      const { job } = await json<{ job: { state: string } }>('jobs', 'show', id)
      if (job.state === state) return
    }
  }

  before(async () => {
    home = await newHome()
    await writeFile(join(home, 'kinds.mjs'), KINDS)
    const entries = { nightly: { cron: '0 3 * * *', time_zone: 'Europe/Berlin', kind: 'demo.echo' } }
    await configureFew(home, { plugins: [join(home, 'kinds.mjs')], schedules: { entries } }, ['admin-api', 'jobs', 'schedules'])
    service = await startService({ home, args: ['--config', join(home, 'svc.config.json')] })
  })
  after(async () => {
    await service.stop()
    await rm(home, { recursive: true, force: true })
  })

  it('show a job with its input, result and log, without what steers a terminal', async () => {
    const id = await start('demo.echo', '--input', '{"a": 1}')
    await until(id, 'completed')
    const { out } = await fine('jobs', 'show', id)
    expect(out).to.match(/^State: +completed$/m)
    expect(out).to.match(/^Result: +\{"echo":\{"a":1\}\}$/m)
    expect(out).to.match(/^[\d-]+ [\d:]+Z info +said +.*\{"a":1\}$/m)
    expect(out).not.to.include('\u001b')
    const shown = await json<{ job: Listed & { result: unknown }; log: { at: string }[] }>('jobs', 'show', id)
    expect(shown.job.result).to.deep.equal({ echo: { a: 1 } })
    expect(new Date(shown.job.created_at).toISOString()).to.equal(shown.job.created_at)
    expect(new Date(shown.log[0]!.at).toISOString()).to.equal(shown.log[0]!.at)
  })

  it('list jobs, and queue a dead letter again', async () => {
    const id = await start('demo.fails')
    await until(id, 'failed')
    const { jobs } = await json<{ jobs: Listed[] }>('jobs', 'list', '--state', 'failed')
    expect(jobs.map(job => [job.id, job.kind])).to.deep.equal([[id, 'demo.fails']])
    expect((await fine('jobs', 'list', '--kind', 'demo.fails')).out).to.match(
      /demo\.fails +failed +1\/1 .*FEED_UNKNOWN: no such feed/
    )
    expect((await fine('jobs', 'retry', id)).err).to.include('queued')
    await until(id, 'failed')
  })

  it('list the job kinds', async () => {
    const { kinds } = await json<{ kinds: { name: string; [member: string]: unknown }[] }>('jobs', 'kinds')
    const kind = (wanted: string) => kinds.find(({ name }) => name === wanted)
    expect(kind('demo.echo')).to.include({
      is_internal: false,
      can_start: true,
      concurrency: null,
      attempts: 5,
      timeout_ms: 3_600_000,
    })
    expect(kind('conversations.delete')).to.include({ is_internal: true, can_start: false })
    expect(kind('store.backup')).to.deep.include({ plugin: '@svc/plugin-store-sqlite', concurrency: 1, input: { type: 'null' } })
    expect((await fine('jobs', 'kinds')).out).to.match(/^demo\.fails +\S+ +no limit +admin +Fails$/m)
    expect((await svc('jobs', 'kinds', 'extra')).code).to.equal(2)
  })

  it('cancel a running job', async () => {
    const id = await start('demo.waits')
    await until(id, 'running')
    expect((await fine('jobs', 'cancel', id)).err).to.equal(`cancelled ${id}\n`)
    const { code, err } = await svc('jobs', 'retry', '0199c1f2-0000-7000-8000-000000000000')
    expect(code).to.equal(1)
    expect(err).to.match(/^INVALID_VALUE\n +job_id not found/)
  })

  it('pause, resume and remove a schedule, and list it', async () => {
    await fine('schedules', 'add', 'poll', '--every', '15m', '--kind', 'demo.echo', '--overlap', 'queue')
    await fine('schedules', 'pause', 'poll')
    const { out } = await fine('schedules', 'list')
    expect(out).to.match(/^poll +every 900s +demo\.echo +paused/m)
    expect(out).to.match(/^nightly +0 3 \* \* \* Europe\/Berlin +demo\.echo +[\d-]+ 0[12]:00:00Z +by configuration$/m)
    expect((await fine('schedules', 'resume', 'poll')).err).to.match(/^resumed poll; the next tick is /)
    await fine('schedules', 'remove', 'poll')
    const { schedules } = await json<{ schedules: { name: string }[] }>('schedules', 'list')
    expect(schedules.map(({ name }) => name)).to.not.include('poll')
    expect((await svc('schedules', 'remove', 'nightly')).err).to.match(/^INVALID_VALUE/)
    expect((await svc('schedules', 'pause', 'nightyl')).err).to.match(/^INVALID_VALUE[^]*Did you mean "nightly"\?/)
  })

  it('show the next ticks without adding a schedule', async () => {
    const args = ['schedules', 'add', 'dry', '--cron', '0 0 1 1 *', '--kind', 'demo.echo', '--dry-run']
    const { out } = await fine(...args)
    expect(out.trim().split('\n')).to.have.lengthOf(5)
    expect(out).to.match(/^(\d{4}-01-01 00:00:00Z\n){5}$/)
    const { schedules } = await json<{ schedules: { name: string }[] }>('schedules', 'list')
    expect(schedules.map(({ name }) => name)).to.not.include('dry')
    const unknown = await svc('schedules', 'add', 'dry', '--every', '1m', '--kind', 'demo.ecko', '--dry-run')
    expect(unknown.err).to.match(/^INVALID_VALUE\n +kind not found: did you mean "demo.echo"\?/)
    expect([unknown.code, unknown.out]).to.deep.equal([1, ''])
  })

  it('report mistakes with their position', async () => {
    const cases: [string[], RegExp][] = [
      [['--cron', '0 25 * * *'], /^INVALID_VALUE\n +cron has an invalid hour "25": its values are 0-23 \(at position 3\)/],
      [['--cron', '0 3 * * *', '--time-zone', 'Europe/Berln'], /^INVALID_VALUE[^]*Did you mean "Europe\/Berlin"\?/],
      [['--every', 'often'], /^COMMAND_LINE_INVALID\n +--every must be a duration/],
      [['--every', '1m', '--input', '{'], /^COMMAND_LINE_INVALID\n +--input is not valid JSON/],
      [['--every', '500ms'], /^INVALID_VALUE\n +every_ms must be >= 1000/],
      [[], /^INVALID_VALUE\n +schedule must have either a cron expression or an interval/],
    ]
    for (const [args, expected] of cases) {
      const { code, err } = await svc('schedules', 'add', 'bad', '--kind', 'demo.echo', ...args)
      expect(code, err).to.be.greaterThan(0)
      expect(err).to.match(expected)
    }
    expect((await svc('schedules', 'add', 'bad', '--every', '1m', '--kind', 'demo.ecko')).err).to.match(
      /^INVALID_VALUE\n +kind not found: did you mean "demo.echo"\?/
    )
  })

  it('are refused by config check with the place of the mistake', async () => {
    const file = join(home, 'bad.json')
    const entries = { odd: { cron: '* * 32 * *', kind: 'x' }, both: { cron: '* * * * *', every: '1m', kind: 'x' } }
    await writeFile(file, JSON.stringify({ schedules: { entries } }))
    const { code, err, out } = await svc('config', 'check', '-c', file)
    expect(code).to.equal(1)
    expect(out + err).to.match(/cron has an invalid day of month "32": its values are 1-31 \(at position 5\)/)
    expect(out + err).to.include('schedules.entries.odd')
    expect(out + err).to.match(/schedule must have either a cron expression or an interval/)
  })
})
