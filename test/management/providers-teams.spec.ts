import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { type FakeUpstream, openUpstream } from '../support/upstream.ts'
import { eventsOf, type Managed, type ManagedService, outcomeOf, startManaged } from '../support/management.ts'

const TEAM = `name: pair
description: Two who take turns
formation: sequential
members:
  first: { role: Writer, goal: Write, tools: [] }
  second: { role: Critic, goal: Judge, tools: [], mode: review }
`

interface ProviderShown {
  readonly healthy: boolean
  readonly models: readonly {
    readonly id: string
    readonly breaker: string
    readonly breaker_open_in: number
    readonly calls: number
    readonly failures: number
    readonly last_error: { readonly kind: string; readonly message: string | null } | null
    readonly first_token_ms: { readonly last: number; readonly mean: number } | null
  }[]
}

describe('providers and teams over HTTP', function () {
  this.timeout(120_000)
  let home: string
  let managed: ManagedService
  let [admin, reader, runner]: Managed[] = []
  let upstream: FakeUpstream

  before(async () => {
    upstream = await openUpstream((_request, reply) => reply.json(500, { error: { message: 'down for repair' } }))
    home = await mkdtemp(join(tmpdir(), 'svc-home-'))
    await mkdir(join(home, 'teams'))
    await writeFile(join(home, 'teams', 'pair.yaml'), TEAM)
    await writeFile(join(home, 'teams', 'broken.yaml'), 'name: broken\nformation: none\nmembers: {}\n')
    const config = {
      chat: { policy: { attempts: 1, breaker_failures: 2, breaker_open_ms: 600_000 } },
      providers: {
        local: {},
        down: { type: 'openai', base_url: `${upstream.url}/v1`, models: ['m'] },
      },
      models: {
        aliases: { quick: { provider: 'local', model: 'local-1' } },
        prices: { 'local/local-1': { input: 1, output: 2, cached_input: 0.5 } },
      },
    }
    managed = await startManaged(home, { config, workers: 2 })
    admin = await managed.as('admin', 'admin,read,chat')
    reader = await managed.as('reader', 'read')
    runner = await managed.as('runner', 'workflows,read')
  })
  after(async () => {
    await managed?.[Symbol.asyncDispose]()
    await upstream[Symbol.asyncDispose]()
    await rm(home, { recursive: true, force: true })
  })
  const shown = async (by = admin!, name = 'local') => (await by.get(`/api/v1/providers/${name}`)).body as ProviderShown

  it('show models with limits, prices and aliases, and test with one small call that is counted', async () => {
    const tested = await admin!.send('POST', '/api/v1/providers/local/test', { model: 'local-1' })
    expect(tested.body, tested.text).to.deep.include({
      success: true,
      provider: 'local',
      model: 'local-1',
      attempts: 1,
      error: null,
    })
    expect(tested.body).to.have.nested.property('tokens_used.output').that.is.greaterThan(0)
    const provider = await shown(reader)
    const model = provider.models.find(({ id }) => id === 'local-1')!
    expect(model).to.deep.include({
      listed: true,
      aliases: ['quick'],
      price: { input: 1, output: 2, cached_input: 0.5, cache_write: null },
      breaker: 'closed',
      calls: 1,
      failures: 0,
      last_error: null,
    })
    expect(model).to.have.property('context').that.is.greaterThan(0)
    expect(provider.healthy).to.equal(true)
    expect(model.first_token_ms).to.not.equal(null)
    const usage = (await admin!.get('/api/v1/usage?by=model')).text
    expect(usage).to.include('local-1')
  })

  it('gather breakers and errors of all workers', async () => {
    for (let time = 0; time < 12; time++) {
      const body = { message: 'hi', provider: 'down', model: 'm' }
      expect((await admin!.send('POST', '/api/v1/chat', body)).status).to.equal(503)
    }
    const answers = await Promise.all(Array.from({ length: 10 }, () => shown(admin, 'down')))
    const models = answers.map(({ models: all }) => all.find(({ id }) => id === 'm')!)
    expect(new Set(models.map(model => JSON.stringify({ ...model, retry_at: null }))).size).to.equal(1)
    // two failures in each worker; their breakers refuse all others
    expect(models[0]).to.include({ breaker: 'open', breaker_open_in: 2, failures: 4 })
    expect(models[0]!.last_error).to.include({ kind: 'overloaded' })
    expect(models[0]!.last_error!.message).to.include('500')
    const other = (await shown(reader, 'down')).models.find(({ id }) => id === 'm')!
    expect(other.last_error).to.include({ message: null })
    const before = upstream.received.length
    const tested = await admin!.send('POST', '/api/v1/providers/down/test', { model: 'm' })
    expect(tested.status).to.equal(200)
    expect(tested.body).to.deep.include({ success: false })
    expect(tested.body).to.have.nested.property('error.error_code', 'PROVIDER_ERROR')
    expect(upstream.received.length, 'the breaker holds').to.equal(before)
  })

  it('list and show teams, and stream a run member by member', async () => {
    const { body } = await reader!.get('/api/v1/teams')
    const { teams } = body as { teams: { name: string; problems: unknown[]; members: string[] }[] }
    expect(teams.find(({ name }) => name === 'pair')).to.deep.include({
      formation: 'sequential',
      members: ['first', 'second'],
      problems: [],
    })
    expect(teams.find(({ name }) => name === 'broken')!.problems).to.not.deep.equal([])
    const team = (await reader!.get('/api/v1/teams/pair')).body as { members: object[] }
    expect(team.members[1]).to.deep.include({ name: 'second', role: 'Critic', mode: 'review', tools: [] })
    const run = await runner!.send('POST', '/api/v1/teams/pair/run', { task: 'Say hello' })
    expect(run.status, run.text).to.equal(200)
    const events = eventsOf(run)
    expect(events[0]).to.deep.include({ type: 'start', team: 'pair' })
    const members = events.filter(({ type, status }) => type === 'member' && ['started', 'completed'].includes(String(status)))
    expect(members.map(({ member, status }) => [member, status].join(' '))).to.deep.equal([
      'first started',
      'first completed',
      'second started',
      'second completed',
    ])
    expect(events.at(-1)).to.deep.include({ type: 'end', status: 'completed', run_id: events[0]!.run_id, error: null })
    expect(events.at(-1)).to.have.nested.property('result.answer').that.is.a('string')
    const status = await runner!.get(`/api/v1/workflows/${String(events[0]!.run_id)}/status`)
    expect(status.body).to.include({ status: 'completed' })
  })

  it('end the stream of a run at a reload, and the run goes on', async () => {
    const stream = await runner!.stream('POST', '/api/v1/teams/pair/run', { task: '/delay 3000\nhello' })
    const start = (await stream.until('start')).at(-1)!.data as { run_id: string }
    process.kill(managed.service.child.pid!, 'SIGHUP')
    const rest = await stream.rest()
    expect(rest.text).to.match(/retry: \d+\n\n$/)
    const followed = await runner!.send('GET', `/api/v1/workflows/${start.run_id}/events`)
    let text = followed.text
    for (let time = 0; time < 20 && !text.includes('run_completed'); time++)
      text = (await runner!.send('GET', `/api/v1/workflows/${start.run_id}/events`)).text
    expect(text).to.include('run_completed')
  })

  it('reject bad input', async () => {
    const bad: readonly (readonly [Managed, string, string, unknown, number])[] = [
      [reader!, 'GET', '/api/v1/providers/none', undefined, 404],
      [reader!, 'GET', '/api/v1/providers/__proto__', undefined, 404],
      [reader!, 'GET', '/api/v1/providers/local?full=1', undefined, 400],
      [reader!, 'POST', '/api/v1/providers/local/test', {}, 403],
      [runner!, 'POST', '/api/v1/providers/local/test', {}, 403],
      [admin!, 'POST', '/api/v1/providers/none/test', {}, 404],
      [admin!, 'POST', '/api/v1/providers/local/test', { model: 7 }, 400],
      [admin!, 'POST', '/api/v1/providers/local/test', { timeout: 0 }, 400],
      [admin!, 'POST', '/api/v1/providers/local/test', { timeout: 1_000 }, 400],
      [admin!, 'POST', '/api/v1/providers/local/test', { message: 'x' }, 400],
      [reader!, 'GET', '/api/v1/teams/none', undefined, 404],
      [reader!, 'GET', '/api/v1/teams/..%2f..%2fetc', undefined, 404],
      [reader!, 'GET', '/api/v1/teams?x=1', undefined, 400],
      [reader!, 'POST', '/api/v1/teams/pair/run', { task: 'x' }, 403],
      [runner!, 'POST', '/api/v1/teams/none/run', { task: 'x' }, 404],
      [runner!, 'POST', '/api/v1/teams/broken/run', { task: 'x' }, 400],
      [runner!, 'POST', '/api/v1/teams/pair/run', { task: ' ' }, 400],
      [runner!, 'POST', '/api/v1/teams/pair/run', { task: 7 }, 400],
      [runner!, 'POST', '/api/v1/teams/pair/run', {}, 400],
      [runner!, 'POST', '/api/v1/teams/pair/run', { task: 'x', members: {} }, 400],
    ]
    for (const [by, method, path, body, status] of bad)
      expect(outcomeOf(await by.send(method, path, body)).status, `${method} ${path} ${JSON.stringify(body)}`).to.equal(status)
    const unknown = await admin!.send('POST', '/api/v1/providers/local/test', { model: 'nothing' })
    expect(unknown.body, unknown.text).to.have.nested.property('error.error_code', 'MODEL_NOT_FOUND')
  })
})
