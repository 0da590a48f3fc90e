import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Postgres, startPostgres } from '@svc/testing/engines'
import { expect } from 'chai'
import type { Client, OpenStream } from '../support/client.ts'
import { runSvc } from '../support/command.ts'
import { auditTicks, RECORDS, untilDone } from '../support/job-load.ts'
import { describeWith } from '../support/needs.ts'
import { beginMcpSession, clientsOf, type NodeOptions, startNode } from '../support/nodes.ts'
import type { Service } from '../support/service.ts'
import { until } from '../support/wait.ts'

const NODES = 3
const CHAT = '/api/v1/chat'
const STREAM = `${CHAT}/stream`
const STATUS = '/api/v1/status'
const REVOKED_MS = 600
const ASKS = fileURLToPath(new URL('../support/asks.ts', import.meta.url))
const WORDS = Array.from({ length: 40 }, (_, at) => `word${at}`).join(' ')

type Three<T> = readonly [T, T, T]
type Data = Readonly<Record<string, unknown>>

/** A7 and A8 of the acceptance of clusters. */
describeWith('postgres', 'three nodes on one PostgreSQL', () => {
  const stack = new AsyncDisposableStack()
  let postgres: Postgres
  let schemas = 0
  before(async () => (postgres = stack.use(await startPostgres({ settings: { max_connections: 120 } }))))
  after(() => stack.disposeAsync())

  async function startThree({ config, ...rest }: NodeOptions) {
    const ends = new AsyncDisposableStack()
    const store = { url: postgres.url, schema: `three_${++schemas}` }
    const start = async () => ends.use(await startNode({ config: { ...config, store }, ...rest }))
    const nodes: Service[] = []
    while (nodes.length < NODES) nodes.push(await start())
    return {
      nodes: nodes as unknown as Three<Service>,
      clients: clientsOf(nodes) as unknown as Three<Client>,
      start,
      [Symbol.asyncDispose]: () => ends.disposeAsync(),
    }
  }

  it('work for a client as one: MCP sessions, questions, conversations, the mode', async () => {
    const config = { plugins: [ASKS], mcp: { server: { enabled: true } } }
    const few = ['mcp-server', 'admin-api', 'event-feed']
    await using cluster = await startThree({ config, few, env: { SVC_CHAT__START_AFTER_MS: '0' } })
    const { clients, nodes } = cluster
    for (const [at, own] of clients.entries()) {
      const [other, third] = [clients[(at + 1) % NODES]!, clients[(at + 2) % NODES]!]

      const session = await beginMcpSession(own)
      for (const client of [other, third, own, third]) expect((await session.list(client)).status).to.equal(200)
      expect((await session.end(third)).status).to.be.below(300)
      for (const client of clients) expect((await session.list(client)).status).to.equal(404)

      await own.post('/api/v1/mode/switch', { mode: at % 2 === 0 ? 'plan' : 'build' })
      for (const client of [other, third, own])
        expect((await client.get('/api/v1/config/effective')).body).to.include({ mode: at % 2 === 0 ? 'plan' : 'build' })

      const body = { message: '/tool whereabouts {}', interactive: true }
      const asking = await own.stream({ method: 'POST', path: STREAM, body })
      const events = (await asking.until('ask')).map(({ data }) => data as Data)
      const answer = { request_id: events[0]!.request_id, call_id: events.at(-1)!.call_id, allow: true }
      expect((await third.post(`${CHAT}/answer`, answer)).status).to.equal(200)
      await asking.rest()
      for (const client of clients) expect((await client.post(`${CHAT}/answer`, answer)).status).to.equal(404)

      const making = await own.stream({ method: 'POST', path: STREAM, body: { message: `/pace 20\n${WORDS}` } })
      const conversation_id = String(((await making.until('start'))[0]!.data as Data).conversation_id)
      const [next] = await Promise.all([other.post(CHAT, { message: 'next', conversation_id }), making.rest()])
      expect(next.body, next.text).to.include({ response: 'You said: next (turn 2)' })
      const dropped = await own.stream({ method: 'POST', path: STREAM, body: { message: `/pace 60\n${WORDS}` } })
      const path = `/api/v1/conversations/${String(((await dropped.until('start'))[0]!.data as Data).conversation_id)}`
      expect((await third.send({ method: 'DELETE', path })).status).to.equal(204)
      await dropped.rest()
      for (const client of clients) expect((await client.get(path)).status).to.equal(404)
    }
    await nodes[0].kill()
    const left = async () => ((await clients[1].get('/api/v1/nodes')).body as { nodes: unknown[] }).nodes.length
    await until(left, count => count === NODES - 1)
  }).timeout(400_000)

  it(`revoke a token within ${REVOKED_MS} ms, and allow the maximum of open requests of a principal exactly`, async () => {
    const LIMIT = 5
    const env = {
      SVC_API_KEY: 'the-key',
      SVC_SERVER__AUTH__ENABLED: 'true',
      SVC_CHAT__START_AFTER_MS: '0',
      SVC_CHAT__RESUME_S: '0',
    }
    const config = { server: { max_streams_per_principal: LIMIT, max_requests_per_second: 0 } }
    const few = ['auth-api-key', 'auth-bearer', 'event-feed', 'admin-api']
    await using cluster = await startThree({ config, few, env })
    const { clients, nodes } = cluster
    const { home } = nodes[1]
    const { out, err } = await runSvc(['tokens', 'create', '--name', 'anna', '--scope', 'read,admin'], { home, env })
    const own = { authorization: `Bearer ${out.trim()}` }
    const ask = (client: Client) => client.send({ method: 'GET', path: STATUS, headers: own })
    const statuses = async () => (await Promise.all(clients.map(ask))).map(({ status }) => status)
    expect(await statuses(), err).to.deep.equal([200, 200, 200])
    const open = await Promise.all(clients.map(client => client.stream({ method: 'GET', path: '/api/v1/events', headers: own })))
    const ended = Promise.all(open.map(ending))
    // when each node has taken the token for the last time
    const lastTaken = clients.map(async client => {
      for (let last = 0; ; await sleep(10)) {
        const began = performance.now()
        const { status } = await ask(client)
        if (status !== 200) return last
        last = began
      }
    })
    const revoked = await runSvc(['tokens', 'revoke', 'anna'], { home, env })
    const answered = performance.now()
    expect(revoked.code, revoked.err).to.equal(0)
    expect(await statuses()).to.deep.equal([401, 401, 401])
    for (const last of await Promise.all(lastTaken)) expect(last - answered).to.be.below(REVOKED_MS)
    await ended

    const headers = { authorization: 'Bearer the-key' }
    const long = (client: Client) =>
      client.stream({ method: 'POST', path: STREAM, headers, body: { message: '/delay 120000\nlong' } })
    for (let round = 0; round < 2; round++) {
      const streams = await Promise.all(Array.from({ length: 10 * LIMIT }, (_, at) => long(clients[at % NODES]!)))
      const opened = streams.filter(({ status }) => status === 200)
      expect([opened.length, new Set(streams.map(({ status }) => status))]).to.deep.equal([LIMIT, new Set([200, 429])])
      for (const stream of streams) await stream.leave()
      for (const client of clients)
        await until(
          () => openAndLeave(long, client),
          status => status === 200
        )
    }
  }).timeout(400_000)

  it('count the requests of a client exactly', async () => {
    const LIMIT = 12
    const config = { server: { rate_limit: { enabled: true, requests_per_minute: LIMIT, requests_per_day: 1_000_000 } } }
    await using cluster = await startThree({ config, few: ['rate-limit'] })
    const { clients } = cluster
    const statuses = await Promise.all(
      Array.from({ length: 10 * LIMIT }, async (_, at) => (await clients[at % NODES]!.get(STATUS)).status)
    )
    expect(statuses.filter(status => status === 200)).to.have.length(LIMIT)
    expect(statuses.filter(status => status === 429)).to.have.length(9 * LIMIT)
  }).timeout(200_000)

  it('start each tick of a schedule once, although nodes are killed', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'svc-ticks-'))
    stack.defer(() => rm(folder, { recursive: true, force: true }))
    const few = ['admin-api', 'jobs', 'schedules']
    await using cluster = await startThree({ config: { plugins: [RECORDS] }, few, env: { TEST_RECORDS: folder } })
    let last = cluster.nodes[2]
    for (const node of cluster.nodes.slice(0, 2)) {
      await sleep(6_000)
      await node.kill()
      last = await cluster.start()
    }
    await sleep(6_000)
    await untilDone(last.home, 'tick', 60_000)
    const { ticks, problems } = await auditTicks(last.home, folder)
    expect(problems).to.deep.equal([])
    expect(ticks).to.be.above(16)
  }).timeout(400_000)
})

/** Resolves when a stream ends, in whatever way. */
const ending = (stream: OpenStream) => stream.rest().catch(() => undefined)

async function openAndLeave(open: (client: Client) => Promise<OpenStream>, client: Client): Promise<number> {
  const stream = await open(client)
  await stream.leave()
  return stream.status
}
