import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { changesOf, type Managed, startManaged, tenTimes, until } from '../support/admin-caller.ts'

const JOBS = '/api/v1/jobs'
const KINDS = fileURLToPath(new URL('../support/manual-jobs.ts', import.meta.url))

interface Shown {
  readonly id: string
  readonly kind: string
  readonly state: string
  readonly owner: string
  readonly created_at: string
  readonly due_at: string
  readonly finished_at: string | null
  readonly attempts: number
  readonly progress: { readonly progress: number } | null
  readonly error: { readonly code: string; readonly message: string } | null
}
type Detail = Shown & { readonly input: unknown; readonly result?: unknown }
interface Page {
  readonly jobs: readonly Shown[]
  readonly next_cursor: string | null
}

describe('the management API of jobs', () => {
  let home: string
  let server: Managed & AsyncDisposable
  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'svc-jobs-api-'))
    server = await startManaged(home, `plugins: [${JSON.stringify(KINDS)}]\n`)
  })
  after(async () => {
    await server?.[Symbol.asyncDispose]()
    await rm(home, { recursive: true, force: true })
  })
  const ended = async (id: string) => {
    await until(`the job ${id} ends`, async () => (await read(id)).finished_at !== null)
    return read(id)
  }
  const read = (id: string) => server.admin.expect<Detail>(200, 'GET', `${JOBS}/${id}`)
  const add = (body: object) => server.admin.expect<Shown>(201, 'POST', JOBS, body)

  it('adds a job, reads it with input, result and log, and lists it', async () => {
    const { admin } = server
    const job = await add({ kind: 'manual.echo', input: { say: 'hello' } })
    expect(job).to.include({ kind: 'manual.echo', owner: 'api-key' }).and.to.have.property('created_at').match(/Z$/)
    const done = await ended(job.id)
    expect(done).to.deep.include({ state: 'completed', input: { say: 'hello' }, result: { said: 'hello' }, attempts: 1 })
    expect(done.progress).to.deep.include({ progress: 1 })
    const { entries } = await admin.expect<{ entries: readonly { message: string; level: string; at: string }[] }>(
      200,
      'GET',
      `${JOBS}/${job.id}/log`
    )
    expect(entries.map(({ level, message }) => [level, message])).to.deep.include(['info', 'says hello'])
    const { jobs } = await admin.expect<Page>(200, 'GET', `${JOBS}?kind=manual.echo&state=completed&limit=200`)
    expect(jobs.map(({ id }) => id)).to.include(job.id)
    expect(Object.keys(jobs[0]!)).to.not.include('input')
    const [change] = await changesOf(server, `jobs/${job.id}`)
    expect(change).to.deep.include({ change: 'job_added_by_api', principal: 'api-key', after: { kind: 'manual.echo' } })
  })

  it('starts a job no earlier than it is due, and returns the job of a key again', async () => {
    const due = new Date(Date.now() + 3_600_000).toISOString()
    const first = await add({ kind: 'manual.echo', input: { say: 'later' }, due_at: due, key: 'once', group: 'g' })
    expect(first).to.deep.include({ state: 'queued', due_at: due })
    expect((await add({ kind: 'manual.echo', input: { say: 'later' }, key: 'once' })).id).to.equal(first.id)
    const { jobs } = await server.admin.expect<Page>(200, 'GET', `${JOBS}?group=g&kind=manual.echo`)
    expect(jobs.map(({ id }) => id)).to.deep.equal([first.id])
    expect(await server.admin.expect<Shown>(200, 'POST', `${JOBS}/${first.id}/cancel`)).to.deep.include({ state: 'cancelled' })
  })

  it('cancels a running job, and retries it', async () => {
    const job = await add({ kind: 'manual.wait' })
    await until('the job runs', async () => (await read(job.id)).state === 'running')
    expect(await server.admin.expect<Shown>(200, 'POST', `${JOBS}/${job.id}/cancel`)).to.include({ state: 'cancelled' })
    // a second time changes nothing
    expect(await server.admin.expect<Shown>(200, 'POST', `${JOBS}/${job.id}/cancel`)).to.include({ state: 'cancelled' })
    const again = await server.admin.expect<Shown>(200, 'POST', `${JOBS}/${job.id}/retry`)
    expect(again.state).to.be.oneOf(['queued', 'running'])
    await until('the job runs again', async () => (await read(job.id)).state === 'running')
    await server.admin.expect(200, 'POST', `${JOBS}/${job.id}/cancel`)
    const types = (await changesOf(server, `jobs/${job.id}`, 4)).map(({ change }) => change)
    const completed = await ended((await add({ kind: 'manual.echo', input: { say: 'x' } })).id)
    for (const what of ['cancel', 'retry'])
      await server.admin.refused(400, 'INVALID_VALUE', 'POST', `${JOBS}/${completed.id}/${what}`)
    expect(types).to.have.members(['job_added_by_api', 'job_cancel_requested', 'job_retry_requested', 'job_cancel_requested'])
  })

  it('shows why a job failed, without paths or stacks', async () => {
    const { id } = await add({ kind: 'manual.fail' })
    const failed = await ended(id)
    expect(failed.state).to.equal('failed')
    expect(JSON.stringify(failed)).to.not.match(/\/tmp|\bat \w/)
    expect(failed.error).to.deep.include({ code: 'JOB_FAILED' })
  })

  it('lists the kinds with their input, and which the caller can start', async () => {
    type Kinds = { kinds: readonly { name: string; [member: string]: unknown }[] }
    const { kinds } = (await tenTimes(server.admin, `${JOBS}/kinds`)) as Kinds
    expect(kinds.find(({ name }) => name === 'manual.echo')).to.deep.include({
      description: 'Says its input',
      is_internal: false,
      can_start: true,
      concurrency: null,
      scope: null,
      input: { type: 'object', properties: { say: { type: 'string' } }, required: ['say'], additionalProperties: false },
    })
    expect(kinds.find(({ name }) => name === 'webhooks.deliver')).to.include({
      plugin: '@svc/plugin-webhooks',
      is_internal: true,
      can_start: false,
    })
    const seen = await server.reader.expect<Kinds>(200, 'GET', `${JOBS}/kinds`)
    expect(seen.kinds.filter(({ can_start: can }) => can)).to.deep.equal([])
  })

  it('refuses the internal kinds to everybody, also in schedules', async () => {
    const inputs = {
      'conversations.delete': { owner: '*' },
      'openai-api.response': { response: 'a' },
      'webhooks.deliver': null,
    }
    for (const [kind, input] of Object.entries(inputs)) {
      const { body: added } = await server.admin.refused(403, 'FORBIDDEN', 'POST', JOBS, { kind, input })
      expect((added as { error: string }).error).to.match(/is internal: only the plugin @svc\/plugin-\S+ adds its jobs/)
      const schedule = { name: 'inner', every_ms: 3_600_000, job: { kind, input } }
      await server.admin.refused(403, 'FORBIDDEN', 'POST', '/api/v1/schedules', schedule)
      await server.admin.refused(403, 'FORBIDDEN', 'POST', '/api/v1/schedules/preview', { every_ms: 1_000, job: { kind, input } })
    }
    // the value of the kind is no field of a request
    await server.admin.refused(400, 'INVALID_VALUE', 'POST', JOBS, { kind: 'webhooks.deliver', internal: 'x' })
  })

  it('names the nearest kind for an unknown one, and those that the caller can start', async () => {
    const answer = await server.admin.refused(404, 'INVALID_VALUE', 'POST', JOBS, { kind: 'manual.ehco' })
    const { error, details } = answer.body as { error: string; details: { allowed: readonly string[] } }
    expect(error).to.equal('kind not found: did you mean "manual.echo"?')
    expect(details).to.deep.include({ field: 'kind', value: 'manual.ehco', nearest: 'manual.echo', reason: 'not found' })
    expect(details.allowed).to.include.members(['manual.echo', 'manual.fail', 'store.backup'])
    expect(details.allowed).to.not.include('webhooks.deliver')
  })

  it('shows the same from every worker, page by page', async () => {
    for (let at = 0; at < 3; at++) await ended((await add({ kind: 'manual.echo', input: { say: String(at) } })).id)
    const all = ((await tenTimes(server.admin, `${JOBS}?limit=200&state=completed`)) as Page).jobs
    const paged: Shown[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page: Page = await server.admin.expect(
        200,
        'GET',
        `${JOBS}?limit=2&state=completed${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`
      )
      paged.push(...page.jobs)
      cursor = page.next_cursor
    }
    expect(paged.map(({ id }) => id)).to.deep.equal(all.map(({ id }) => id))
  })

  it('shows a principal its own jobs only', async () => {
    const { reader, other, admin } = server
    const job = await ended((await add({ kind: 'manual.echo', input: { say: 'mine' } })).id)
    expect((await reader.expect<Page>(200, 'GET', JOBS)).jobs).to.deep.equal([])
    for (const caller of [reader, other]) {
      await caller.refused(404, 'INVALID_VALUE', 'GET', `${JOBS}/${job.id}`)
      await caller.refused(404, 'INVALID_VALUE', 'GET', `${JOBS}/${job.id}/log`)
    }
    // a cursor of the administrator leads to nothing of others
    const { next_cursor: cursor } = await admin.expect<Page>(200, 'GET', `${JOBS}?limit=1`)
    const page = await reader.send('GET', `${JOBS}?limit=5&cursor=${encodeURIComponent(cursor!)}`)
    expect(page.status === 400 || (page.body as Page).jobs.length === 0, page.text).to.equal(true)
  })

  it('requires the scopes', async () => {
    const { reader, unfit } = server
    for (const path of [JOBS, `${JOBS}/kinds`, `${JOBS}/j`, `${JOBS}/j/log`]) await unfit.refused(403, 'FORBIDDEN', 'GET', path)
    await reader.refused(403, 'FORBIDDEN', 'POST', JOBS, { kind: 'manual.echo' })
    for (const what of ['cancel', 'retry']) await reader.refused(403, 'FORBIDDEN', 'POST', `${JOBS}/j/${what}`)
  })

  const bad: Readonly<Record<string, readonly [status: number, code: string, method: string, path: string, body?: unknown]>> = {
    'an unknown id': [404, 'INVALID_VALUE', 'GET', `${JOBS}/01890a5d-0000-7000-8000-000000000000`],
    'an id that is none': [404, 'INVALID_VALUE', 'GET', `${JOBS}/${'%2e%2e%2f'.repeat(20)}`],
    'an id of 10^4 characters': [404, 'INVALID_VALUE', 'GET', `${JOBS}/${'a'.repeat(8_000)}`],
    'an id with a zero byte': [404, 'INVALID_VALUE', 'GET', `${JOBS}/a%00b`],
    'a limit that is no number': [400, 'INVALID_VALUE', 'GET', `${JOBS}?limit=ten`],
    'a limit of zero': [400, 'INVALID_VALUE', 'GET', `${JOBS}?limit=0`],
    'a limit beyond the maximum': [400, 'INVALID_VALUE', 'GET', `${JOBS}?limit=201`],
    'a state that is none': [400, 'INVALID_VALUE', 'GET', `${JOBS}?state=lost`],
    'a parameter of the kinds': [400, 'INVALID_VALUE', 'GET', `${JOBS}/kinds?name=a`],
    'a parameter that is none': [400, 'INVALID_VALUE', 'GET', `${JOBS}?owner=anna`],
    'a cursor that is none': [400, 'INVALID_VALUE', 'GET', `${JOBS}?cursor=x`],
    'a log limit beyond the maximum': [400, 'INVALID_VALUE', 'GET', `${JOBS}/j/log?limit=1001`],
    'no kind': [400, 'MISSING_FIELD', 'POST', JOBS, { input: 1 }],
    'a kind that is no text': [400, 'INVALID_VALUE', 'POST', JOBS, { kind: 7 }],
    'a kind that no plugin adds': [404, 'INVALID_VALUE', 'POST', JOBS, { kind: 'nothing.here' }],
    'a kind of the prototype': [404, 'INVALID_VALUE', 'POST', JOBS, { kind: '__proto__' }],
    'an input that does not fit': [400, 'INVALID_VALUE', 'POST', JOBS, { kind: 'manual.echo', input: { say: 1 } }],
    'a time that is none': [400, 'INVALID_VALUE', 'POST', JOBS, { kind: 'manual.echo', due_at: 'tomorrow' }],
    'a day that is none': [
      400,
      'INVALID_VALUE',
      'POST',
      JOBS,
      { kind: 'manual.echo', input: { say: '' }, due_at: '2026-02-31T25:00:00Z' },
    ],
    'a group of 201 characters': [400, 'INVALID_VALUE', 'POST', JOBS, { kind: 'manual.echo', group: 'g'.repeat(201) }],
    'an empty key': [400, 'INVALID_VALUE', 'POST', JOBS, { kind: 'manual.echo', key: ' ' }],
    'a field that is none': [400, 'INVALID_VALUE', 'POST', JOBS, { kind: 'manual.echo', owner: 'anna' }],
    'a list as the body': [400, 'INVALID_VALUE', 'POST', JOBS, [1]],
    '10^5 values': [400, 'INVALID_VALUE', 'POST', JOBS, { kind: 'manual.echo', input: Array.from({ length: 100_000 }, () => 0) }],
    'a cancel of nothing': [404, 'INVALID_VALUE', 'POST', `${JOBS}/nothing/cancel`],
    'a retry of nothing': [404, 'INVALID_VALUE', 'POST', `${JOBS}/nothing/retry`],
  }
  for (const [what, [status, code, method, path, body]] of Object.entries(bad))
    it(`refuses ${what}`, () => server.admin.refused(status, code, method, path, body))
})
