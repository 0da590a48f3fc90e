import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { runSvc } from '../support/command.ts'
import { hostileCommand } from '../support/hostile.ts'
import { type ManagedService, startManaged } from '../support/management.ts'
import { newHome } from '../support/service.ts'

const KINDS = `import { definePlugin } from '@svc/core'
import { JobKinds } from '@svc/core/contracts'
export default definePlugin({
  setup(scope) {
    scope.add(JobKinds, 'demo.echo', { description: 'Echoes', async *run({ input }) {
      yield { type: 'log', level: 'info', message: 'said ' + JSON.stringify(input) }
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

interface JobShown {
  readonly id: string
  readonly kind: string
  readonly state: string
  readonly owner: string
  readonly created_at: string
}

/** Runs commands as one caller. */
interface Caller {
  run(...args: string[]): ReturnType<typeof runSvc>
  /** The output of a command that succeeds with `--json`. */
  json<T>(...args: string[]): Promise<T>
  /** The error of a command that ends with 1. */
  refused(...args: string[]): Promise<string>
}

function callerIn(home: string, env: Readonly<Record<string, string>> = {}, more: readonly string[] = []): Caller {
  const run = (...args: string[]) => runSvc([...args, ...more], { home, env, share: true })
  return {
    run,
    async json<T>(...args: string[]) {
      const { code, out, err } = await run(...args, '--json')
      expect(code, `${args.join(' ')}: ${err}`).to.equal(0)
      return JSON.parse(out) as T
    },
    async refused(...args) {
      const { code, out, err } = await run(...args)
      expect([code, out], `${args.join(' ')}: ${err}`).to.deep.equal([1, ''])
      return err
    },
  }
}

const EACH_COMMAND = [
  ['jobs', 'list'],
  ['jobs', 'show', 'x'],
  ['jobs', 'kinds'],
  ['jobs', 'cancel', 'x'],
  ['jobs', 'retry', 'x'],
  ['schedules', 'list'],
  ['schedules', 'add', 'x', '--every', '1d', '--kind', 'demo.echo'],
  ['schedules', 'pause', 'x'],
  ['schedules', 'resume', 'x'],
  ['schedules', 'remove', 'x'],
  ['schedules', 'run', 'x'],
  ['mcp', 'list'],
  ['mcp', 'tools', 'fickle'],
  ['mcp', 'test', 'fickle'],
  ['mcp', 'approve', 'fickle'],
  ['mcp', 'enable', 'fickle'],
  ['mcp', 'disable', 'fickle'],
] as const

/** Repeats a command until its answer is right. */
async function until<T>(ask: () => Promise<T>, isRight: (answer: T) => boolean): Promise<T> {
  for (const end = performance.now() + 60_000; ; ) {
    const answer = await ask()
    if (isRight(answer)) return answer
    if (performance.now() > end) throw new Error(`it never came about: ${JSON.stringify(answer)}`)
  }
}

/** What every command of a part does, for a caller that may do all of it. */
async function useSchedulesAndJobs(caller: Caller, name: string, owner: string) {
  const { json } = caller
  expect(
    (await json<{ ticks: string[] }>('schedules', 'add', name, '--every', '1d', '--kind', 'demo.echo', '--dry-run')).ticks
  ).to.have.length(5)
  const added = await json('schedules', 'add', name, '--every', '1d', '--kind', 'demo.echo', '--input', '{"a": 1}')
  expect(added).to.deep.include({ name, every_ms: 86_400_000, jitter_ms: 0, overlap: 'skip', origin: 'added', owner, last: null })
  expect(await json('schedules', 'pause', name)).to.include({ is_paused: true, next: null })
  const { schedules } = await json<{ schedules: { name: string; is_paused: boolean }[] }>('schedules', 'list')
  expect(schedules.find(one => one.name === name)?.is_paused).to.equal(true)
  expect(await json('schedules', 'resume', name)).to.include({ is_paused: false })
  const { job: id } = await json<{ job: string }>('schedules', 'run', name)
  const { job, log } = await until(
    () => json<{ job: JobShown & { result?: unknown }; log: { message: string }[] }>('jobs', 'show', id),
    shown => shown.job.state === 'completed'
  )
  expect(job).to.deep.include({ kind: 'demo.echo', owner, input: { a: 1 }, result: { echo: { a: 1 } } })
  expect(log.map(({ message }) => message)).to.deep.equal(['said {"a":1}'])
  expect(await json('schedules', 'remove', name)).to.deep.equal({ name, removed: true })

  for (const kind of ['demo.waits', 'demo.fails'])
    await json('schedules', 'add', `${name}-${kind}`, '--every', '1d', '--kind', kind)
  const waiting = (await json<{ job: string }>('schedules', 'run', `${name}-demo.waits`)).job
  expect(await json('jobs', 'cancel', waiting)).to.include({ id: waiting, state: 'cancelled' })
  const failing = (await json<{ job: string }>('schedules', 'run', `${name}-demo.fails`)).job
  await until(
    () => json<{ jobs: JobShown[] }>('jobs', 'list', '--state', 'failed'),
    page => page.jobs.some(one => one.id === failing)
  )
  expect((await caller.run('jobs', 'retry', failing)).err).to.equal(`queued ${failing} again\n`)
  const { kinds } = await json<{ kinds: { name: string }[] }>('jobs', 'kinds')
  expect(kinds.map(kind => kind.name)).to.include.members(['demo.echo', 'demo.fails', 'demo.waits'])
  const first = await json<{ jobs: JobShown[]; next_cursor: string }>('jobs', 'list', '--limit', '1')
  const second = await json<{ jobs: JobShown[] }>('jobs', 'list', '--limit', '1', '--cursor', first.next_cursor)
  expect(second.jobs[0]!.id).to.not.equal(first.jobs[0]!.id)
}

async function useMcp({ json, run }: Caller) {
  const list = () => json<{ servers: { name: string; state: string; changed: string[]; runs: string }[] }>('mcp', 'list')
  const tested = await run('mcp', 'test', 'fickle', '--tool', 'echo', '--args', '{"text": "hi"}')
  expect(tested.out, tested.err).to.match(/✓ list .*\n✓ call .*hi/)
  expect([tested.code, (await run('mcp', 'test', 'fickle', '--tool', 'missing')).code]).to.deep.equal([0, 1])
  const { tools } = await until(
    () => json<{ server: string; tools: { name: string; status: string; difference?: string[] }[] }>('mcp', 'tools', 'fickle'),
    shown => shown.tools.some(tool => tool.status === 'changed')
  )
  expect(tools.find(tool => tool.name === 'echo')?.difference?.[0]).to.match(/^description: /)
  expect((await json<{ disabled: string }>('mcp', 'disable', 'fickle')).disabled).to.equal('fickle')
  await until(list, ({ servers }) => servers[0]!.state === 'disabled')
  expect((await json<{ enabled: string }>('mcp', 'enable', 'fickle')).enabled).to.equal('fickle')
  await until(list, ({ servers }) => servers[0]!.state !== 'disabled')
}

describe('commands that manage a server', function () {
  this.timeout(240_000)
  let home: string
  let elsewhere: string
  let managed: ManagedService
  let admin: string
  let reader: string
  const token = async (name: string, scopes: string) =>
    (await runSvc(['tokens', 'create', '--name', name, '--scope', scopes], { home })).out.trim()
  const far = (key: string) => callerIn(elsewhere, key === '' ? {} : { SVC_API_KEY: key }, ['--url', managed.service.url])

  before(async () => {
    home = await newHome()
    elsewhere = await newHome()
    await writeFile(join(home, 'kinds.mjs'), KINDS)
    const client = { name: 'fickle', ...hostileCommand({ fickle: true }) }
    managed = await startManaged(home, { workers: 2, config: { plugins: [join(home, 'kinds.mjs')], mcp: { clients: [client] } } })
    admin = await token('admin', 'admin,read')
    reader = await token('reader', 'read')
  })
  after(async () => {
    await managed[Symbol.asyncDispose]()
    for (const one of [home, elsewhere]) await rm(one, { recursive: true, force: true })
  })

  describe('on the machine of the server, without a key', () => {
    it('manage schedules and jobs', () => useSchedulesAndJobs(callerIn(home), 'near', 'system'))

    it('manage MCP servers', () => useMcp(callerIn(home)))

    it('answer the same with each of two workers', async () => {
      const answers = new Set<string>()
      for (let at = 0; at < 10; at++) answers.add((await callerIn(home).run('jobs', 'kinds', '--json')).out)
      expect(answers.size).to.equal(1)
    })

    it('use HTTP with the credential of --header', async () => {
      const near = callerIn(home)
      expect(await near.refused('jobs', 'list', '--header', 'Authorization: Bearer svc_wrong')).to.match(/^AUTHENTICATION_FAILED/)
      const { jobs } = await near.json<{ jobs: JobShown[] }>('jobs', 'list', '--header', `Authorization: Bearer ${reader}`)
      expect(jobs).to.deep.equal([])
    })

    it('ignore a key, as the operator needs none', async () => {
      expect((await callerIn(home, { SVC_API_KEY: 'svc_wrong' }).run('schedules', 'list')).code).to.equal(0)
    })

    it('are audit events of the principal of the machine', async () => {
      const events = await (await managed.as('auditor', 'admin,read')).stream('GET', '/api/v1/events?types=schedule_*')
      const next = async (principal: string) => {
        for (;;) {
          const event = await events.next()
          if (!event) throw new Error('the stream ended')
          const { type, principal: by } = (event.data ?? {}) as { type?: string; principal?: string }
          if (type?.endsWith('schedule_added') && by === principal) return
        }
      }
      await callerIn(home).json('schedules', 'add', 'audited', '--every', '1d', '--kind', 'demo.echo')
      await next('system')
      await events.leave()
    })

    it('leave the port closed to clients without a key', async () => {
      const { run } = callerIn(home)
      expect((await run('jobs', 'list')).code).to.equal(0)
      for (const headers of [{}, { 'x-forwarded-for': '127.0.0.1' }, { host: 'localhost', connection: 'close' }])
        expect((await fetch(`${managed.service.url}/api/v1/jobs`, { headers })).status).to.equal(401)
    })
  })

  describe('for a server elsewhere, with a token', () => {
    it('manage schedules and jobs', () => useSchedulesAndJobs(far(admin), 'far', 'token:admin'))

    it('manage MCP servers', () => useMcp(far(admin)))

    it('approve a changed tool in the version that they show', async () => {
      const { json } = far(admin)
      const changed = await until(
        () => json<{ tools: { name: string; status: string }[] }>('mcp', 'tools', 'fickle'),
        ({ tools }) => tools.some(tool => tool.status === 'changed')
      )
      expect(changed.tools.filter(tool => tool.status === 'changed').map(tool => tool.name)).to.deep.equal(['echo'])
      const { approved } = await json<{ approved: { name: string }[] }>('mcp', 'approve', 'fickle')
      expect(approved.map(tool => tool.name)).to.deep.equal(['echo'])
    })

    it('show a reader its own jobs, and name the missing scope for a change', async () => {
      const { json, refused } = far(reader)
      expect((await json<{ jobs: JobShown[] }>('jobs', 'list')).jobs).to.deep.equal([])
      for (const args of [
        ['schedules', 'add', 'mine', '--every', '1d', '--kind', 'demo.echo'],
        ['jobs', 'cancel', '0199c1f2-0000-7000-8000-000000000000'],
        ['mcp', 'disable', 'fickle'],
      ])
        expect(await refused(...args)).to.match(/^FORBIDDEN\n +the credential lacks the scope admin[^]*scope "admin"/)
    })

    it('are refused without a key', async () => {
      for (const args of EACH_COMMAND)
        expect(await far('').refused(...args), args.join(' ')).to.match(/^AUTHENTICATION_FAILED[^]*SVC_API_KEY/)
    })

    it('are refused with a wrong key', async () => {
      for (const args of [
        ['jobs', 'list'],
        ['schedules', 'run', 'x'],
        ['mcp', 'test', 'fickle'],
      ])
        expect(await far('svc_wrong').refused(...args), args.join(' ')).to.match(/^AUTHENTICATION_FAILED[^]*SVC_API_KEY/)
    })

    it('report unknown names, a missing server and a wrong address', async () => {
      expect(await far(admin).refused('jobs', 'show', '../me')).to.match(/^INVALID_VALUE\n +job_id not found/)
      expect(await far(admin).refused('mcp', 'test', 'other')).to.match(/^INVALID_VALUE\n +server not found/)
      const nowhere = callerIn(elsewhere)
      expect(await nowhere.refused('jobs', 'list', '--url', 'http://127.0.0.1:1')).to.match(/^SERVER_UNREACHABLE/)
      expect(await nowhere.refused('jobs', 'list', '--url', 'here')).to.match(/^URL_INVALID/)
      expect(await nowhere.refused('jobs', 'list', '--port', '1')).to.match(/^SERVER_NONE/)
      expect(await nowhere.refused('jobs', 'list', '--header', 'X-A: b')).to.match(/^SERVER_NONE[^]*--url/)
      expect((await nowhere.run('jobs', 'list', '--url', 'http://127.0.0.1:1', '--port', '1')).code).to.equal(2)
    })
  })

  it('read the store of this home if no server runs', async () => {
    const { json } = callerIn(elsewhere)
    expect((await json<{ kinds: { name: string }[] }>('jobs', 'kinds')).kinds.map(({ name }) => name)).to.include('store.backup')
    await json('schedules', 'add', 'local', '--every', '1d', '--kind', 'store.backup')
    expect(await json('schedules', 'pause', 'local')).to.include({ jitter_ms: 0, catch_up: 'none', is_paused: true })
    expect(await json('mcp', 'list')).to.deep.equal({ servers: [] })
  })
})

describe('commands that manage a server without the management API', function () {
  this.timeout(120_000)

  it('say which plugin is missing, near and far', async () => {
    const home = await newHome()
    const config = { plugins: [{ use: '@svc/plugin-admin-api', enabled: false }] }
    await using managed = await startManaged(home, { config })
    const { out } = await runSvc(['tokens', 'create', '--name', 'admin', '--scope', 'admin,read'], { home })
    const expected = /^MANAGEMENT_API_OFF\n[^]*there is no route [A-Z]+ \/api\/v1\/[^]*@svc\/plugin-admin-api/
    const far = callerIn(home, { SVC_API_KEY: out.trim() }, ['--url', managed.service.url])
    for (const caller of [callerIn(home), far]) {
      expect(await caller.refused('jobs', 'list')).to.match(expected)
      expect(await caller.refused('schedules', 'list')).to.match(expected)
    }
    expect(await far.refused('mcp', 'list')).to.match(expected)
    expect(await far.refused('mcp', 'test', 'x')).to.match(expected)
    await rm(home, { recursive: true, force: true })
  })
})
