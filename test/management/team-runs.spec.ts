import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { runSvc } from '../support/command.ts'
import { eventsOf, type Managed, type ManagedService, outcomeOf, startManaged } from '../support/management.ts'
import { workersOf } from '../support/two-workers.ts'

const TEAM = `name: pair
formation: sequential
budget: { cost: 50 }
members:
  first: { role: Writer, goal: Write, tools: [] }
  second: { role: Critic, goal: Judge, tools: [] }
`

interface Spent {
  readonly tokens: number
  readonly cost: number | null
}
interface Shown {
  readonly id: string
  readonly run_id: string
  readonly team: string
  readonly status: string
  readonly owner: string
  readonly workflow: string
  readonly rounds: number
  readonly spent: Spent
  readonly stop: { readonly budget: string } | null
  readonly members: readonly { readonly name: string; readonly status: string; readonly stopped_by: string | null }[]
  readonly tree: readonly { readonly round: number; readonly messages: readonly Message[] }[]
}
interface Message {
  readonly member: string
  readonly status: string
  readonly reply: string | null
  readonly attempts: number
  readonly spent: Spent
}

describe('runs of teams over HTTP', function () {
  this.timeout(120_000)
  let home: string
  let managed: ManagedService
  let [admin, reader, runner]: Managed[] = []

  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'svc-home-'))
    await mkdir(join(home, 'teams'))
    await writeFile(join(home, 'teams', 'pair.yaml'), TEAM)
    const config = {
      providers: { local: {} },
      models: { prices: { 'local/local-1': { input: 10_000, output: 10_000 } } },
    }
    managed = await startManaged(home, { config, workers: 2 })
    admin = await managed.as('admin', 'admin,read')
    reader = await managed.as('reader', 'read')
    runner = await managed.as('runner', 'workflows,read,chat')
  })
  after(async () => {
    await managed?.[Symbol.asyncDispose]()
    await rm(home, { recursive: true, force: true })
  })

  const runOf = async (body: object, by = runner!) => {
    const answer = await by.send('POST', '/api/v1/teams/pair/run', body)
    expect(answer.status, answer.text).to.equal(200)
    const events = eventsOf(answer)
    return { id: String(events[0]!.run_id), events }
  }
  const tree = async (id: string, by = runner!) => (await by.get(`/api/v1/teams/runs/${id}`)).body as Shown
  const listed = async (query = '', by = runner!) =>
    ((await by.get(`/api/v1/teams/runs${query}`)).body as { runs: readonly Shown[] }).runs

  it('are a tree with rounds, messages and costs, the same at each refresh of two workers', async () => {
    const { id, events } = await runOf({ task: 'Say hello' })
    const rounds = events.filter(({ type, status }) => type === 'member' && status === 'completed').map(({ round }) => round)
    expect(rounds).to.deep.equal([1, 2])
    const shown = await Promise.all(Array.from({ length: 10 }, () => tree(id)))
    expect(new Set(shown.map(one => JSON.stringify(one))).size).to.equal(1)
    const lists = await Promise.all(Array.from({ length: 10 }, () => listed()))
    expect(new Set(lists.map(one => JSON.stringify(one))).size).to.equal(1)
    const [one] = shown
    expect(one).to.deep.include({ id, run_id: id, team: 'pair', status: 'completed', rounds: 2, stop: null })
    expect(one!.tree.map(({ messages }) => messages.map(({ member }) => member))).to.deep.equal([['first'], ['second']])
    const [first, second] = one!.tree.map(({ messages }) => messages[0]!)
    expect(first!.reply).to.include('Say hello')
    expect(one!.spent.tokens).to.equal(first!.spent.tokens + second!.spent.tokens)
    expect(one!.spent.cost).to.be.closeTo(one!.spent.tokens / 100, 1e-9)
  })

  it('stop at the budget of the call, and say which member ended and which did not', async () => {
    const { id, events } = await runOf({ task: 'Say hello', budget: { rounds: 1, cost: 1_000 } })
    const end = events.at(-1)! as unknown as { status: string; result: { partial: object; answer: null; budget: object } }
    expect(end).to.include({ status: 'completed' })
    expect(end.result).to.deep.include({ answer: null, budget: { cost: 50, rounds: 1 } })
    expect(end.result.partial).to.include({ budget: 'rounds' })
    const one = await tree(id)
    expect(one).to.include({ status: 'partial', rounds: 1 })
    expect(one.stop).to.include({ budget: 'rounds' })
    expect(one.members.map(({ name, status, stopped_by: by }) => [name, status, by])).to.deep.equal([
      ['first', 'completed', null],
      ['second', 'idle', 'rounds'],
    ])
    expect((await listed('?status=partial')).map(run => run.id)).to.include(id)
    const { id: poor } = await runOf({ task: 'Say hello', budget: { tokens: 5 } })
    expect(await tree(poor))
      .to.include({ status: 'partial' })
      .and.have.nested.property('spent.tokens', 0)
  })

  it('are kept for the model name of a team and for the step of a workflow', async () => {
    const before = (await listed()).length
    const body = { model: 'team:pair', messages: [{ role: 'user', content: 'Hello there' }] }
    const reply = await runner!.send('POST', '/v1/chat/completions', body)
    expect(reply.status, reply.text).to.equal(200)
    await mkdir(join(home, 'workflows'), { recursive: true })
    await writeFile(
      join(home, 'workflows', 'asking.yaml'),
      'name: asking\nnodes:\n  ask: { type: team, team: pair, task: Hello, budget: { rounds: 1 } }\n'
    )
    const started = await runner!.send('POST', '/api/v1/workflows/run', { workflow: 'asking' })
    expect(started.status, started.text).to.be.within(200, 202)
    let runs = await listed()
    for (let time = 0; time < 100 && (runs.length < before + 2 || runs.some(({ status }) => status === 'running')); time++)
      runs = await listed()
    expect(runs.slice(0, 2).map(({ workflow, status }) => [workflow, status])).to.deep.equal([
      ['asking', 'partial'],
      ['team_pair', 'completed'],
    ])
    for (const run of runs.slice(0, 2)) expect((await tree(run.id)).tree).to.not.deep.equal([])
  })

  it('are those of their owner; the scope admin sees all', async () => {
    const { id } = await runOf({ task: 'Say hello' })
    expect(await listed('', reader)).to.deep.equal([])
    expect(outcomeOf(await reader!.get(`/api/v1/teams/runs/${id}`))).to.include({
      status: 404,
      code: 'INVALID_VALUE',
      field: 'run',
      reason: 'not found',
    })
    expect((await listed('', admin)).map(run => run.id)).to.include(id)
    expect(await tree(id, admin)).to.include({ id })
    const { body } = await runner!.get('/api/v1/teams/runs?limit=1')
    const { next_cursor: cursor } = body as { next_cursor: string }
    const other = await reader!.get(`/api/v1/teams/runs?cursor=${encodeURIComponent(cursor)}`)
    if (other.status === 200) expect((other.body as { runs: unknown[] }).runs).to.deep.equal([])
    else expect(outcomeOf(other)).to.include({ status: 400, field: 'cursor' })
  })

  it('can be read from their first event on', async () => {
    const stream = await runner!.stream('POST', '/api/v1/teams/pair/run', { task: '/delay 1500\nhello' })
    const start = (await stream.until('start')).at(-1)!.data as { id: string; run_id: string }
    expect(start.id).to.equal(start.run_id)
    const { status, body } = await runner!.get(`/api/v1/teams/runs/${start.id}`)
    expect([status, (body as Shown).status, (body as Shown).id]).to.deep.equal([200, 'running', start.id])
    expect((body as { members: { name: string }[] }).members.map(({ name }) => name)).to.include('first')
    await stream.rest()
    expect(((await runner!.get(`/api/v1/teams/runs/${start.id}`)).body as Shown).status).to.equal('completed')
  })

  it('are shown while their workers are killed, and whole after the restart', async () => {
    const stream = await runner!.stream('POST', '/api/v1/teams/pair/run', { task: '/delay 2500\nhello' })
    const { run_id: id } = (await stream.until('member')).find(({ event }) => event === 'start')!.data as { run_id: string }
    const pids = await workersOf(home)
    for (const pid of pids) process.kill(pid, 'SIGKILL')
    await stream.rest().catch(() => undefined)
    const again = async () => {
      for (let time = 0; ; time++) {
        const answer = await runner!.get(`/api/v1/teams/runs/${id}`).catch(() => undefined)
        if (answer?.status === 200) return answer.body as Shown
        if (time > 200) throw new Error('the server did not come back')
        await new Promise(resolve => setTimeout(resolve, 100))
      }
    }
    const broken = await again()
    expect(['running', 'completed']).to.include(broken.status)
    expect(broken.tree[0]!.messages[0]!.member).to.equal('first')
    let whole = broken
    for (let time = 0; time < 400 && whole.status === 'running'; time++) {
      await new Promise(resolve => setTimeout(resolve, 100))
      whole = await again()
    }
    expect(whole).to.include({ status: 'completed' })
    expect(whole.tree.map(({ messages }) => messages.length)).to.deep.equal([1, 1])
    expect(whole.tree[0]!.messages[0]!.attempts).to.equal(2)
  })

  it('reject bad input', async () => {
    const task = 'x'
    const bad: readonly (readonly [Managed, string, string, unknown, number])[] = [
      [runner!, 'GET', '/api/v1/teams/runs?limit=0', undefined, 400],
      [runner!, 'GET', '/api/v1/teams/runs?limit=201', undefined, 400],
      [runner!, 'GET', '/api/v1/teams/runs?limit=x', undefined, 400],
      [runner!, 'GET', '/api/v1/teams/runs?status=lost', undefined, 400],
      [runner!, 'GET', '/api/v1/teams/runs?cursor=none', undefined, 400],
      [runner!, 'GET', '/api/v1/teams/runs?owner=admin', undefined, 400],
      [runner!, 'GET', '/api/v1/teams/runs/none', undefined, 404],
      [runner!, 'GET', '/api/v1/teams/runs/..%2f..%2fetc', undefined, 404],
      [runner!, 'GET', '/api/v1/teams/runs/__proto__', undefined, 404],
      [runner!, 'GET', `/api/v1/teams/runs/${'x'.repeat(2_000)}`, undefined, 404],
      [reader!, 'POST', '/api/v1/teams/pair/run', { task, budget: { rounds: 1 } }, 403],
      [runner!, 'POST', '/api/v1/teams/pair/run', { task, budget: { tokens: -1 } }, 400],
      [runner!, 'POST', '/api/v1/teams/pair/run', { task, budget: { tokens: 1.5 } }, 400],
      [runner!, 'POST', '/api/v1/teams/pair/run', { task, budget: { cost: 'all' } }, 400],
      [runner!, 'POST', '/api/v1/teams/pair/run', { task, budget: { time: 'soon' } }, 400],
      [runner!, 'POST', '/api/v1/teams/pair/run', { task, budget: { rounds: 0 } }, 400],
      [runner!, 'POST', '/api/v1/teams/pair/run', { task, budget: { money: 1 } }, 400],
      [runner!, 'POST', '/api/v1/teams/pair/run', { task, budget: [] }, 400],
      [runner!, 'POST', '/api/v1/teams/pair/run', { task, budget: null }, 400],
    ]
    for (const [by, method, path, body, status] of bad)
      expect(outcomeOf(await by.send(method, path, body)).status, `${method} ${path} ${JSON.stringify(body)}`).to.equal(status)
  })

  it('are listed and shown by the command of the same home', async () => {
    const { runs } = JSON.parse((await runSvc(['teams', 'runs', '--json'], { home })).out) as { runs: { id: string }[] }
    expect(runs.length).to.be.greaterThan(3)
    const shown = await runSvc(['teams', 'show', runs.at(-1)!.id], { home })
    expect(shown.out).to.include('round 2').and.include('second: completed')
  })
})
