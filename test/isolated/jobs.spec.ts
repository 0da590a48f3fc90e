// Not a unit test: starts servers.
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Job } from '@svc/core/contracts'
import { expect } from 'chai'
import { operate } from '../support/management.ts'
import { describeWith } from '../support/needs.ts'
import { post, type Service } from '../support/service.ts'
import { serveStrangers, type Stranger } from '../support/stranger.ts'

/** A third-party plugin that uses jobs and schedules, and tries what it must not do. */
const WORDS: Stranger = {
  name: 'svc-plugin-words',
  svc: {
    kind: 'tool',
    contributes: {
      job_kinds: ['words.count', 'words.dies', 'words.odd'],
      plugin_schedules: ['words-each-second', 'words-steals'],
      tools: ['start_job', 'read_jobs', 'reach_server'],
    },
    permissions: { services: ['jobs', 'schedules'] },
  },
  code: `import { definePlugin } from '@svc/core'
import { JobKinds, Jobs, PluginSchedules, Schedules, Tools } from '@svc/core/contracts'

const own = { signal: new AbortController().signal, principal: { id: 'system', scopes: ['*'] }, requestId: 'own' }
const answer = value => ({ content: [{ type: 'text', text: JSON.stringify(value) }] })
const failure = error => ({ code: error.code })
export default definePlugin({
  requires: { jobs: Jobs, schedules: Schedules },
  setup(scope, { jobs, schedules }) {
    scope.add(JobKinds, 'words.count', {
      description: 'Counts words',
      async *run({ input, checkpoint, attempt, fence }, { signal, principal }) {
        yield { type: 'progress', progress: 1, total: 2, message: 'counting' }
        yield { type: 'log', level: 'info', message: 'as ' + principal.id }
        if (input === 'wait') await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
        yield { type: 'checkpoint', value: { attempt } }
        yield { type: 'result', value: String(input).split(' ').length }
      },
    })
    scope.add(JobKinds, 'words.dies', {
      description: 'Ends its process once',
      backoff: { firstMs: 10, maxMs: 10 },
      async *run({ checkpoint }) {
        if (checkpoint === undefined) {
          yield { type: 'checkpoint', value: 'dying' }
          await new Promise(resolve => setTimeout(resolve, 500))
          process.exit(3)
        }
        yield { type: 'result', value: checkpoint }
      },
    })
    scope.add(JobKinds, 'words.odd', {
      description: 'Odd', concurrency: -1, timeoutMs: 'never', attempts: 1e9, backoff: { firstMs: -5, maxMs: 'x' },
      async *run() {
        for (;;) yield { type: 'log', level: 'info', message: 'x'.repeat(100_000) }
      },
    })
    const job = { kind: 'words.count', input: 'a b' }
    scope.add(PluginSchedules, 'words-each-second', { everyMs: 1000, overlap: 'allow', job })
    scope.add(PluginSchedules, 'words-steals', { everyMs: 1000, overlap: 'allow', job: { kind: 'other.secret' } })
    const parameters = { type: 'object' }
    scope.add(Tools, 'start_job', {
      description: 'Adds a job', category: 'text', effects: [], parameters,
      call: async ({ kind, input }, ctx) => answer(await jobs.add({ kind, input }, own).catch(failure)),
    })
    scope.add(Tools, 'reach_server', {
      description: 'Opens the control socket', category: 'text', effects: [], parameters,
      call: async ({ path }) => {
        const { createConnection } = await import('node:net')
        const socket = createConnection(path)
        return answer(await new Promise(resolve => socket.once('connect', () => resolve('open')).once('error', resolve)).then(
          reached => (reached === 'open' ? reached : failure(reached))))
      },
    })
    scope.add(Tools, 'read_jobs', {
      description: 'Reads jobs', category: 'text', effects: [], parameters,
      call: async ({ id, forged }, ctx) => answer({
        listed: (await jobs.list({ limit: 200 }, own)).jobs.map(job => job.owner),
        foreign: await jobs.get(id, own).catch(failure),
        forged: await jobs.list({ limit: 1 }, { ...own, principal: { id: 'root', scopes: ['admin'] } }).catch(failure),
        schedules: (await schedules.list(own)).map(schedule => schedule.name),
      }),
    })
  },
})`,
}

/** A plugin with a job kind of its own. */
const OTHER: Stranger = {
  name: 'svc-plugin-other',
  isolation: 'in-process',
  svc: {
    kind: 'tool',
    contributes: { job_kinds: ['other.secret'], tools: ['start_other'] },
    permissions: { services: ['jobs'] },
  },
  code: `import { definePlugin } from '@svc/core'
import { JobKinds, Jobs, Tools } from '@svc/core/contracts'
const own = { signal: new AbortController().signal, principal: { id: 'system', scopes: ['*'] }, requestId: 'own' }
export default definePlugin({
  requires: { jobs: Jobs },
  setup(scope, { jobs }) {
    scope.add(JobKinds, 'other.secret', { description: 'Secret', async *run() { yield { type: 'result', value: 'secret' } } })
    scope.add(Tools, 'start_other', {
      description: 'Adds a job', category: 'text', effects: [], parameters: { type: 'object' },
      call: async () => ({ content: [{ type: 'text', text: JSON.stringify(await jobs.add({ kind: 'other.secret' }, own)) }] }),
    })
  },
})`,
}

async function callTool<T>(service: Service, tool: string, args: object): Promise<T> {
  const { status, body } = await post(`${service.url}/tools/${tool}/call`, { arguments: args })
  expect(status, JSON.stringify(body)).to.equal(200)
  return JSON.parse((body.content as { text: string }[])[0]!.text) as T
}

/** A job as the API shows it. */
interface Shown {
  readonly state: string
  readonly owner: string
  readonly attempts: number
  readonly max_attempts: number
  readonly progress: unknown
  readonly schedule: unknown
  readonly result?: unknown
  readonly checkpoint?: unknown
}

const shown = async ({ home }: Service, id: string) => ({
  job: await operate<Shown>(home, 'GET', `/api/v1/jobs/${id}`),
  log: (await operate<{ entries: { message: string }[] }>(home, 'GET', `/api/v1/jobs/${id}/log`)).entries,
})
const cancelled = ({ home }: Service, id: string) => operate<Shown>(home, 'POST', `/api/v1/jobs/${id}/cancel`)

interface ScheduleShown {
  readonly name: string
  readonly last: { readonly tick: string; readonly job: string | null; readonly error: { readonly code: string } | null } | null
}
const scheduleOf = async ({ home }: Service, wanted: string) =>
  (await operate<{ schedules: ScheduleShown[] }>(home, 'GET', '/api/v1/schedules')).schedules.find(({ name }) => name === wanted)

async function ended(service: Service, id: string): Promise<Shown> {
  for (let tries = 0; tries < 200; tries++) {
    const { job } = await shown(service, id)
    if (!['queued', 'running'].includes(job.state)) return job
    await sleep(50)
  }
  throw new Error(`the job did not end: ${JSON.stringify((await shown(service, id)).job)}`)
}

describeWith('bubblewrap', 'jobs and schedules of an isolated plugin', function () {
  this.timeout(60_000)
  let service: Awaited<ReturnType<typeof serveStrangers>>
  before(async () => {
    const beside = ['admin-api', 'jobs', 'schedules', 'mcp-server']
    service = await serveStrangers([OTHER, WORDS], { beside, config: { mcp: { server: { enabled: true } } } })
  })
  after(() => service[Symbol.asyncDispose]())

  it('are executed with progress, log, checkpoint and result, as the plugin', async () => {
    const { id } = await callTool<Job>(service, 'start_job', { kind: 'words.count', input: 'one two three' })
    const job = await ended(service, id)
    expect(job).to.include({ state: 'completed', result: 3, owner: 'plugin:svc-plugin-words', attempts: 1 })
    expect(job.checkpoint).to.deep.equal({ attempt: 1 })
    expect(job.progress).to.deep.equal({ progress: 1, total: 2, message: 'counting' })
    const { log } = await shown(service, id)
    expect(log.map(({ message }) => message)).to.deep.equal(['as plugin:svc-plugin-words'])
  })

  it('are cancelled while they run', async () => {
    const { id } = await callTool<Job>(service, 'start_job', { kind: 'words.count', input: 'wait' })
    while ((await shown(service, id)).job.state !== 'running') await sleep(20)
    expect((await cancelled(service, id)).state).to.equal('cancelled')
  })

  it('run again with their checkpoint when the process of the plugin dies', async () => {
    const { id } = await callTool<Job>(service, 'start_job', { kind: 'words.dies' })
    const job = await ended(service, id)
    expect(job).to.include({ state: 'completed', result: 'dying' })
    expect(job.attempts).to.be.greaterThan(1)
  })

  it('are ended when they log without end, and odd limits count as none', async () => {
    const { id } = await callTool<Job>(service, 'start_job', { kind: 'words.odd' })
    while ((await shown(service, id)).log.length < 100) await sleep(50)
    expect((await cancelled(service, id)).state).to.equal('cancelled')
    const { job, log } = await shown(service, id)
    expect(job.max_attempts).to.equal(100)
    expect(log.length).to.be.at.most(1000)
    expect(log[0]!.message.length).to.equal(2_000)
  })

  it('start each second by a schedule of the plugin', async () => {
    let schedule: ScheduleShown | undefined
    while (!schedule?.last?.job) {
      schedule = await scheduleOf(service, 'words-each-second')
      await sleep(50)
    }
    expect(schedule).to.include({ origin: 'plugin', owner: 'plugin:svc-plugin-words' })
    const job = await ended(service, schedule.last.job)
    expect(job).to.include({ state: 'completed', result: 2 })
    expect(job.schedule).to.deep.equal({ name: 'words-each-second', tick: schedule.last.tick })
  })

  it('cannot start the job kinds of other plugins, directly or by a schedule', async () => {
    expect(await callTool(service, 'start_job', { kind: 'other.secret' })).to.deep.equal({ code: 'FORBIDDEN' })
    let schedule: ScheduleShown | undefined
    while (!schedule?.last?.error) {
      schedule = await scheduleOf(service, 'words-steals')
      await sleep(50)
    }
    expect(schedule.last.error.code).to.equal('FORBIDDEN')
    expect(schedule.last.job).to.equal(null)
  })

  it('cannot open the control socket, over which the operator manages the server', async () => {
    const path = join(service.home, 'run', `${service.child.pid}.sock`)
    expect((await stat(path)).isSocket()).to.equal(true)
    const { code } = await callTool<{ code?: string }>(service, 'reach_server', { path })
    expect(code).to.be.oneOf(['ENOENT', 'EACCES', 'EPERM', 'ERR_ACCESS_DENIED'])
  })

  it('cannot see jobs and schedules of other owners, or act as another principal', async () => {
    const { id } = await callTool<Job>(service, 'start_other', {})
    const seen = await callTool<{ listed: string[]; foreign: object; forged: object; schedules: string[] }>(
      service,
      'read_jobs',
      { id }
    )
    expect(new Set(seen.listed)).to.deep.equal(new Set(['plugin:svc-plugin-words']))
    expect(seen.foreign).to.deep.equal({ code: 'JOB_UNKNOWN' })
    expect(seen.forged).to.deep.equal({ code: 'CONTEXT_FORGED' })
    expect(seen.schedules).to.have.members(['words-each-second', 'words-steals'])
  })
})
