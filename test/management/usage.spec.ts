import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { type Answer, createClient } from '../support/client.ts'
import { runSvc } from '../support/command.ts'
import { inNewHome, type Service, startService } from '../support/service.ts'
import { metric } from '../support/two-workers.ts'

const AUTH = { SVC_API_KEY: 'the-key-of-the-operator', SVC_SERVER__AUTH__ENABLED: 'true' }
const PRICES = { 'local/local-1': { input: 3, output: 15 } }
const WORKFLOW = `name: think
nodes:
  one: { type: agent, prompt: "How are you?" }
`
const TEN = Array.from({ length: 10 }, (_, at) => at)

interface Row {
  readonly name: string
  readonly requests: number | null
  readonly errors: number | null
  readonly latency_ms: number | null
  readonly calls: number
  readonly failures: number
  readonly input_tokens: number
  readonly output_tokens: number
  readonly cost: number
}
interface Usage {
  readonly rows: readonly Row[]
  readonly total: Row
  readonly currency: string
}
interface Series {
  readonly times: readonly string[]
  readonly series: readonly {
    readonly name: string
    readonly values: readonly (number | null)[]
    readonly total: number | null
  }[]
}

/** Each request over a connection of its own, so that every worker has its turn. */
function caller({ url }: Service, token?: string) {
  const client = createClient(url, { keepAlive: false })
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const send = (method: string, path: string, body?: unknown) =>
    client.send({ method, path, headers, ...(body === undefined ? {} : { body }) })
  const read = async <T>(path: string): Promise<T> => {
    const { status, text, body } = await send('GET', path)
    expect(status, text).to.equal(200)
    return body as T
  }
  return {
    send,
    usage: (query = '') => read<Usage>(`/api/v1/usage${query}`),
    series: (query: string) => read<Series>(`/api/v1/series${query}`),
    async chat(message: string) {
      const { status, text, body } = await send('POST', '/api/v1/chat', { message })
      expect(status, text).to.equal(200)
      return body as { conversation_id: string; tokens_used: { input: number; output: number } }
    },
  }
}

async function startCounted(home: string, env = {}): Promise<Service> {
  await mkdir(join(home, 'workflows'), { recursive: true })
  await writeFile(join(home, 'workflows', 'think.yaml'), WORKFLOW)
  await writeFile(join(home, 'svc.config.json'), JSON.stringify({ models: { prices: PRICES, currency: 'EUR' } }))
  const service = await startService({ home, env, args: ['--workers', '2'] })
  await service.seen(/"event":"worker_ready"/)
  return service
}

const sum = (rows: readonly Row[], pick: (row: Row) => number) => rows.reduce((all, row) => all + pick(row), 0)
const codeOf = ({ body }: Answer) => (body as { error_code?: string }).error_code

describe('usage', () => {
  it('equals the metrics, whatever it is counted by, from any worker, and survives a restart', () =>
    inNewHome(async home => {
      await using before = await startCounted(home)
      const { chat, send, usage, series } = caller(before)
      const replies = []
      for (const at of TEN) replies.push(await chat(`message ${at}\n/tool calculate {"expression": "6 * 7"}`))
      const run = await send('POST', '/api/v1/workflows/run', { workflow: 'think' })
      expect(run.status, run.text).to.equal(200)
      const tokens = (kind: string) => metric(before.url, 'svc_tokens_total', `kind="${kind}"`)
      const [input, output] = [await tokens('input'), await tokens('output')]
      const cost = await metric(before.url, 'svc_model_cost_total')
      const calls = await metric(before.url, 'svc_model_calls_total')
      expect(input).to.be.above(0)
      for (const by of ['principal', 'provider', 'model', 'conversation', 'workflow']) {
        const { rows, total, currency } = await usage(`?by=${by}`)
        expect(currency).to.equal('EUR')
        expect([sum(rows, row => row.input_tokens), sum(rows, row => row.output_tokens)], by).to.deep.equal([input, output])
        expect([sum(rows, row => row.calls), total.calls], by).to.deep.equal([calls, calls])
        expect(
          sum(rows, row => row.cost),
          by
        ).to.be.closeTo(cost, 2 ** -18)
        expect(total.cost, by).to.be.closeTo(cost, 2 ** -18)
      }
      // requests are not counted by model, conversation or workflow: null, as 0 would be wrong
      for (const by of ['provider', 'model', 'conversation', 'workflow']) {
        const { rows, total } = await usage(`?by=${by}`)
        for (const row of [...rows, total])
          expect([row.requests, row.errors, row.latency_ms], by).to.deep.equal([null, null, null])
      }
      expect((await usage('?by=principal')).total.requests).to.be.above(TEN.length)
      const conversations = (await usage('?by=conversation')).rows
      for (const { conversation_id: id, tokens_used: used } of replies)
        expect(conversations.find(({ name }) => name === id)).to.include({
          input_tokens: used.input,
          output_tokens: used.output,
          calls: 2,
        })
      expect((await usage('?by=workflow')).rows.find(({ name }) => name === 'think')!.calls).to.equal(1)
      expect((await usage('?by=tool')).rows).to.have.length(1)
      expect((await usage('?by=tool')).rows[0]).to.include({ name: 'calculate', calls: TEN.length, failures: 0 })
      const chats = (await usage('?by=route')).rows.find(({ name }) => name === 'POST /api/v1/chat')
      expect(chats!.requests).to.equal(await metric(before.url, 'svc_requests_total', 'route="/api/v1/chat"'))
      const asked = '?metric=tokens&step=minute&by=model&from=2020-01-01T00:00:00Z'
      expect((await send('GET', `/api/v1/series${asked}`)).status).to.equal(400)
      const now = new Date(Date.now() + 60_000).toISOString()
      const from = new Date(Date.now() - 3_600_000).toISOString()
      const pages: string[] = []
      for (const _ of TEN) pages.push(JSON.stringify(await series(`?metric=tokens&by=model&from=${from}&to=${now}`)))
      expect(new Set(pages).size).to.equal(1)
      for (const step of ['minute', 'hour']) {
        const { series: lines, times } = await series(`?metric=tokens&step=${step}&from=${from}&to=${now}`)
        expect(lines[0]!.total).to.equal(input + output)
        expect(lines[0]!.values).to.have.length(times.length)
        expect(lines[0]!.values.reduce<number>((all, value) => all + (value ?? 0), 0)).to.equal(input + output)
      }
      expect((await series('?metric=latency')).series.map(({ name }) => name)).to.deep.equal(['mean', 'p50', 'p95', 'p99'])
      await before.stop()
      await using after = await startCounted(home)
      const again = await caller(after).usage('?by=model')
      expect([again.total.input_tokens, again.total.output_tokens]).to.deep.equal([input, output])
    }))

  it('shows a caller its own, and refuses what it does not know', () =>
    inNewHome(async home => {
      await using service = await startCounted(home, AUTH)
      const create = async (name: string, scopes: string) =>
        (await runSvc(['tokens', 'create', '--name', name, '--scope', scopes], { home })).out.trim()
      const tokens = [await create('anna', 'chat,read'), await create('ben', 'chat,read'), await create('root', 'read,admin')]
      const [anna, ben, root] = tokens.map(token => caller(service, token)) as [Caller, Caller, Caller]
      const { tokens_used: own } = await anna.chat('short')
      await ben.chat('a much longer message than that')
      expect((await anna.usage('?by=model')).total.input_tokens).to.equal(own.input)
      expect((await anna.usage()).rows.map(({ name }) => name)).to.deep.equal(['token:anna'])
      expect((await root.usage()).rows.map(({ name }) => name)).to.include.members(['token:anna', 'token:ben'])
      expect((await root.usage('?by=model&principal=token:anna')).total.input_tokens).to.equal(own.input)
      const others = await anna.send('GET', '/api/v1/usage?principal=token:ben')
      expect([others.status, codeOf(others)]).to.deep.equal([403, 'FORBIDDEN'])
      for (const [path, hint] of [
        ['/api/v1/usage?by=colour', 'principal'],
        ['/api/v1/usage?bye=model', 'by'],
        ['/api/v1/usage?from=now', 'from'],
        ['/api/v1/usage?from=2026-99-99T00:00:00Z', 'from'],
        ['/api/v1/usage?from=2030-01-02T00:00:00Z&to=2030-01-01T00:00:00Z', 'from'],
        ['/api/v1/series', 'metric'],
        ['/api/v1/series?metric=speed', 'latency'],
        ['/api/v1/series?metric=tokens&by=route', 'model'],
        ['/api/v1/series?metric=tokens&step=day', 'minute'],
        ['/api/v1/series?metric=tokens&step=hour&from=1970-01-01T00:00:00Z', 'from'],
      ] as const) {
        const answer = await anna.send('GET', path)
        expect(answer.status, path).to.equal(400)
        expect(answer.text, path).to.include(hint)
      }
    }))
})

type Caller = ReturnType<typeof caller>
