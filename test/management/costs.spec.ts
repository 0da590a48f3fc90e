import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { runSvc } from '../support/command.ts'
import { type Managed, type ManagedService, startManaged } from '../support/management.ts'

const CHAT = '/api/v1/chat'
const RUNS = '/api/v1/workflows'
const CALL = '/tool calculate {"expression": "1 + 1"}'
const LONG = 'word '.repeat(400)
/** Of each token. */
const PRICE = 0.001

interface Reply {
  readonly response: string
  readonly conversation_id: string
  readonly tokens_used: { readonly input: number; readonly output: number; readonly total: number }
  readonly tools_used: readonly unknown[]
  readonly cost?: number
  readonly partial?: { readonly budget: string; readonly reason: string }
}
interface Run {
  readonly workflow_id: string
  readonly status: string
  readonly cost: number | null
  readonly tokens: number
}
interface Refusal {
  readonly error: string
  readonly error_code: string
  readonly details: { readonly field: string; readonly hint?: string }
}

describe('costs over HTTP', function () {
  this.timeout(120_000)
  let home: string
  let managed: ManagedService
  let anna: Managed
  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'svc-home-'))
    await mkdir(join(home, 'workflows'))
    await writeFile(
      join(home, 'workflows', 'says.yaml'),
      'name: says\nnodes:\n  one: { type: agent, prompt: Hello, tools: [], next: two }\n  two: { type: transform, value: done }\n'
    )
    const prices = { 'local/local-1': { input: PRICE * 1e6, output: PRICE * 1e6 } }
    managed = await startManaged(home, { config: { models: { prices }, workflows: { sync_wait_ms: 10_000 } }, workers: 2 })
    anna = await managed.as('anna', 'chat,workflows,read')
  })
  after(async () => {
    await managed?.[Symbol.asyncDispose]()
    await rm(home, { recursive: true, force: true })
  })
  const ask = async (body: object) => {
    const answer = await anna.send('POST', CHAT, body)
    expect(answer.status, answer.text).to.equal(200)
    return answer.body as Reply
  }
  const refused = async (body: object) => {
    const answer = await anna.send('POST', CHAT, body)
    return { status: answer.status, ...(answer.body as Refusal) }
  }

  it('are in the reply of a chat, and a budget of them ends it with what it has, after the call of a model', async () => {
    const whole = await ask({ message: `${CALL}\n${LONG}`, tools: ['calculate'] })
    expect(whole.cost).to.be.closeTo(whole.tokens_used.total * PRICE, 1e-9)
    expect(whole).to.not.have.property('partial')
    expect(whole.tools_used).to.have.length(1)
    const rich = await ask({ message: `${CALL}\n${LONG}`, tools: ['calculate'], cost_budget: whole.cost! * 3 })
    expect(rich).to.not.have.property('partial')

    // the first step fits, the second does not
    const cut = await ask({ message: `${CALL}\n${LONG}`, tools: ['calculate'], cost_budget: whole.cost! * 0.6 })
    expect(cut.partial!.budget).to.equal('cost')
    expect(cut.partial!.reason).to.match(/budget/)
    expect(cut.cost).to.be.at.most(whole.cost! * 0.6)
    const { body } = await anna.get(`/api/v1/conversations/${cut.conversation_id}`)
    const { messages } = body as { messages: { role: string; status?: string }[] }
    expect(messages.at(-1)).to.include({ role: 'assistant', status: 'failed' })

    // the reply itself is cut
    const short = await ask({ message: LONG, tools: [], cost_budget: 0.6 })
    expect(short.partial).to.deep.equal({ budget: 'cost', reason: 'the budget of costs is used up' })
    expect(short.response.length).to.be.above(0).and.below(LONG.length)
    expect(short.cost).to.be.at.most(0.6 + 1e-6)
  })

  it('are in the end of a stream, with the budget that stopped the turn', async () => {
    const open = await anna.stream('POST', `${CHAT}/stream`, { message: LONG, tools: [], cost_budget: 0.6 })
    const { events } = await open.rest()
    const end = events.at(-1)!.data as unknown as Reply & { status: string }
    expect(end).to.deep.include({ status: 'completed', partial: { budget: 'cost', reason: 'the budget of costs is used up' } })
    expect(end.cost)
      .to.be.above(0)
      .and.at.most(0.6 + 1e-6)
    expect(events.some(({ event }) => event === 'token')).to.equal(true)
  })

  it('refuse a budget that pays for nothing, that is no number, or that no price can hold', async () => {
    for (const [body, field] of [
      [{ cost_budget: 0.000001 }, 'cost_budget'],
      [{ token_budget: 1 }, 'token_budget'],
      [{ cost_budget: 1, model: 'local-small', provider: 'local' }, 'cost_budget'],
    ] as const) {
      const { status, error_code: code, details } = await refused({ message: LONG, ...body })
      expect([status, code, details.field], JSON.stringify(body)).to.deep.equal([400, 'INVALID_VALUE', field])
      expect(details.hint).to.be.a('string')
    }
    for (const bad of [-1, '1', null, [1]])
      for (const path of [CHAT, `${CHAT}/stream`]) {
        const answer = await anna.send('POST', path, { message: 'hi', cost_budget: bad })
        const { error_code: code, details } = answer.body as Refusal
        expect([answer.status, code, details.field], JSON.stringify(bad)).to.deep.equal([400, 'INVALID_VALUE', 'cost_budget'])
      }
  })

  it('are in the records of a run: its status, the list, its steps and events, and on the command line', async () => {
    const started = (await anna.send('POST', `${RUNS}/run`, { workflow: 'says' })).body as Run
    expect(started.status).to.equal('completed')
    const { workflow_id: id } = started
    const run = (await anna.get(`${RUNS}/${id}/status`)).body as Run
    expect(run.cost).to.be.closeTo(run.tokens * PRICE, 1e-9)
    expect(run.cost).to.be.above(0)
    const { runs } = (await anna.get(`${RUNS}/runs`)).body as { runs: Run[] }
    expect(runs.find(one => one.workflow_id === id)!.cost).to.equal(run.cost)
    const { steps } = (await anna.get(`${RUNS}/${id}/steps`)).body as { steps: { node: string; cost: number | null }[] }
    expect(steps.map(({ node, cost }) => [node, cost])).to.deep.equal([
      ['one', run.cost],
      ['two', null],
    ])
    const { events } = await (await anna.stream('GET', `${RUNS}/${id}/events`)).rest()
    const done = events.find(({ event, data }) => event === 'node_completed' && data.node === 'one')!
    expect(done.data.spent).to.deep.equal({ tool_calls: 0, tokens: run.tokens, cost: run.cost })
    const shown = await runSvc(['workflows', 'status', id], { home })
    expect(shown.out).to.include(`cost ${run.cost}`)
    const json = await runSvc(['workflows', 'status', id, '--json'], { home })
    expect(JSON.parse(json.out)).to.include({ cost: run.cost })
  })
})
