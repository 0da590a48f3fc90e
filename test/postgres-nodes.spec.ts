import { rm } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Postgres, startPostgres } from '@svc/testing/engines'
import { expect } from 'chai'
import type { Answer, Client, OpenStream } from './support/client.ts'
import type { SentEvent } from './support/events.ts'
import { runSvc } from './support/command.ts'
import { describeWith } from './support/needs.ts'
import { beginMcpSession, clientsOf, type NodeOptions, startNode } from './support/nodes.ts'
import { newHome } from './support/service.ts'
import { until } from './support/wait.ts'

const support = (name: string) => fileURLToPath(new URL(`./support/${name}`, import.meta.url))
const STREAM = '/api/v1/chat/stream'
/** Statements of an idle node in a second. */
const MOST_IDLE = 10
const WORDS = Array.from({ length: 40 }, (_, at) => `word${at}`).join(' ')

const dataOf = (event: SentEvent | undefined) => event!.data as Record<string, unknown>
const codeOf = ({ body }: Answer) => (body as { error_code?: string }).error_code
const textOf = (events: readonly SentEvent[]) =>
  events
    .filter(({ event }) => event === 'token')
    .map(event => String(dataOf(event).content))
    .join('')

/** Nodes of one cluster: each is a server with a home of its own. */
describeWith('postgres', 'two servers on one PostgreSQL', () => {
  const stack = new AsyncDisposableStack()
  let postgres: Postgres
  let schemas = 0
  before(async () => {
    // counts statements; it is a part of the package of the server
    const settings = { max_connections: 100, shared_preload_libraries: 'pg_stat_statements' }
    postgres = stack.use(await startPostgres({ settings }))
    await postgres.query('CREATE EXTENSION pg_stat_statements')
  })
  after(() => stack.disposeAsync())

  async function startTwoNodes({ config, ...rest }: Partial<NodeOptions> = {}) {
    const schema = `nodes_${++schemas}`
    const ends = new AsyncDisposableStack()
    const start = async () => ends.use(await startNode({ config: { ...config, store: { url: postgres.url, schema } }, ...rest }))
    const [one, two] = [await start(), await start()]
    const clients = clientsOf([one, two]) as [Client, Client]
    return { schema, one, two, clients, [Symbol.asyncDispose]: () => ends.disposeAsync() }
  }

  describe('that chat', () => {
    let nodes: Awaited<ReturnType<typeof startTwoNodes>>
    before(async () => {
      const config = { plugins: [support('asks.ts')], mcp: { server: { enabled: true } } }
      nodes = stack.use(await startTwoNodes({ config, env: { SVC_CHAT__START_AFTER_MS: '0' } }))
    })

    it('send few statements while nothing happens', async () => {
      // BEGIN and COMMIT included
      const count = async () =>
        Number((await postgres.query(`SELECT sum(calls) AS n FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat%'`))[0]!.n)
      await sleep(20_000) // the start, and what it looks for afterwards
      const [before, began] = [await count(), performance.now()]
      await sleep(20_000)
      const each = ((await count()) - before) / 2 / ((performance.now() - began) / 1_000)
      expect(each, 'statements of a node in a second').to.be.below(MOST_IDLE)
    }).timeout(120_000)

    it('are one cluster without a configuration: a switch of the mode holds on both when it is answered', async () => {
      const [first, second] = nodes.clients
      for (const [asked, other, mode] of [
        [first, second, 'plan'],
        [second, first, 'build'],
      ] as const) {
        await asked.post('/api/v1/mode/switch', { mode })
        for (const client of [other, asked, other])
          expect((await client.get('/api/v1/config/effective')).body).to.include({ mode })
      }
    })

    it('list the nodes of the cluster with their workers, the same on both', async () => {
      type Nodes = { readonly cluster: string; readonly nodes: { id: string; is_self: boolean; workers: { name: string }[] }[] }
      const [one, two] = await Promise.all(nodes.clients.map(async client => (await client.get('/api/v1/nodes')).body as Nodes))
      expect([one!.cluster, one!.nodes.length]).to.deep.equal(['svc', 2])
      expect(one!.nodes.map(node => node.workers.length)).to.deep.equal([1, 1])
      const namesIn = ({ nodes: all }: Nodes) => all.map(({ id, workers }) => [id, workers.map(({ name }) => name)])
      expect(namesIn(two!)).to.deep.equal(namesIn(one!))
      expect(one!.nodes.map(node => node.is_self)).to.deep.equal(two!.nodes.map(node => !node.is_self))
    })

    it('are listed by svc nodes', async () => {
      const { home } = nodes.two
      const shown = await runSvc(['nodes', '--json'], { home })
      expect(shown.code, shown.err).to.equal(0)
      const listed = JSON.parse(shown.out) as { cluster: string; nodes: { id: string; workers: { name: string }[] }[] }
      expect([listed.cluster, listed.nodes.length]).to.deep.equal(['svc', 2])
      const text = await runSvc(['nodes'], { home })
      // as in `svc status --cluster`: the name of a worker without that of its node
      for (const { id, workers } of listed.nodes)
        expect(text.out)
          .to.include(id)
          .and.include(workers[0]!.name.slice(id.length + 1))
          .and.not.include(workers[0]!.name)
      expect(text.out.match(/this node/g)).to.have.length(1)
      expect((await runSvc(['nodes', '--nonsense'], { home })).code).to.equal(2)
      const another = await newHome()
      const alone = await runSvc(['nodes', '--json'], { home: another })
      await rm(another, { recursive: true })
      expect([alone.code, alone.out + alone.err]).to.satisfy(
        ([code, said]: [number, string]) => code === 1 && said.includes('SERVER_NONE')
      )
    }).timeout(300_000)

    it('answer a question about a tool through the other node, once', async () => {
      const [first, second] = nodes.clients
      const body = { message: '/tool whereabouts {}', interactive: true }
      const stream = await first.stream({ method: 'POST', path: STREAM, body })
      const events = await stream.until('ask')
      const question = { request_id: dataOf(events[0]).request_id, call_id: dataOf(events.at(-1)).call_id, allow: true }
      const said = await second.post('/api/v1/chat/answer', question)
      expect([said.status, said.body]).to.deep.equal([200, { success: true }])
      const result = (await stream.rest()).events.find(({ event }) => event === 'tool_result')
      expect(dataOf(result)).to.include({ success: true })
      for (const client of nodes.clients) expect((await client.post('/api/v1/chat/answer', question)).status).to.equal(404)
    })

    it('continue a stream on the other node, and cancel one there', async () => {
      const [first, second] = nodes.clients
      const open = await first.stream({ method: 'POST', path: STREAM, body: { message: `/pace 20\n${WORDS}` } })
      const before: SentEvent[] = []
      while (before.length < 8) before.push((await open.next())!)
      await open.leave()
      const path = `${STREAM}/${String(dataOf(before[0]).turn_id)}`
      const rest = await second.send({ method: 'GET', path, headers: { 'last-event-id': before.at(-1)!.id } })
      expect(rest.status, rest.text).to.equal(200)
      const all = [...before, ...rest.events]
      expect(all.map(({ id }) => Number(id))).to.deep.equal(all.map((_, at) => at + 1))
      expect(textOf(all)).to.contain('word0 ').and.contain('word39')
      expect(dataOf(all.at(-1))).to.include({ type: 'end', status: 'completed' })

      const long = await second.stream({ method: 'POST', path: STREAM, body: { message: `/pace 200\n${WORDS}` } })
      const [start] = await long.until('start')
      const cancelled = await first.post(`${STREAM}/${String(dataOf(start).turn_id)}/cancel`, undefined)
      expect([cancelled.status, cancelled.body]).to.deep.equal([200, { success: true }])
      expect(dataOf((await long.rest()).events.at(-1))).to.include({ type: 'end', status: 'cancelled' })
    })

    it('delete a conversation that the other node is making', async () => {
      const [first, second] = nodes.clients
      const making = await first.stream({ method: 'POST', path: STREAM, body: { message: `/pace 60\n${WORDS}` } })
      const [start] = await making.until('start')
      const path = `/api/v1/conversations/${String(dataOf(start).conversation_id)}`
      expect((await second.send({ method: 'DELETE', path })).status).to.equal(204)
      expect(dataOf((await making.rest()).events.at(-1))).to.include({ status: 'failed' })
      for (const client of nodes.clients) expect((await client.get(path)).status).to.equal(404)
    })

    it('continue a conversation that the other node is making, after its turn', async () => {
      const [first, second] = nodes.clients
      const making = await first.stream({ method: 'POST', path: STREAM, body: { message: `/pace 20\n${WORDS}` } })
      const [start] = await making.until('start')
      const conversation_id = String(dataOf(start).conversation_id)
      const next = await second.post('/api/v1/chat', { message: 'next', conversation_id })
      expect(next.body, next.text).to.include({ response: 'You said: next (turn 2)' })
      await making.rest()
    })

    it('stream the events of both nodes, and to a client that comes back to the other node what it has missed', async () => {
      const [first, second] = nodes.clients
      const path = '/api/v1/events?types=turn_completed'
      const say = async (client: Client, id: string) => {
        const headers = { 'x-request-id': id, 'content-type': 'application/json' }
        expect(
          (await client.send({ method: 'POST', path: '/api/v1/chat', headers, body: { message: 'hello' } })).status
        ).to.equal(200)
      }
      const openEvents = (client: Client, headers: Record<string, string> = {}) => client.stream({ method: 'GET', path, headers })
      /** Reads until all these turns have come; returns the last event. */
      const take = async (stream: OpenStream, ids: readonly string[]): Promise<SentEvent> => {
        const missing = new Set(ids)
        for (;;) {
          const event = await stream.next()
          if (!event) throw new Error('the stream ended')
          missing.delete(String(dataOf(event).requestid))
          if (missing.size === 0) return event
        }
      }
      // each worker begins to collect when it hears of the reader
      const warm = await openEvents(second)
      const reading = take(warm, ['warm'])
      let isWarm = false
      void reading.finally(() => (isWarm = true))
      while (!isWarm) {
        await say(first, 'warm')
        await sleep(20)
      }
      const ids = ['a', 'b', 'c', 'd']
      for (const [at, id] of ids.entries()) await say(nodes.clients[at % 2]!, id)
      const last = await take(warm, ids)
      await warm.leave()
      const missed = ['e', 'f', 'g', 'h']
      for (const [at, id] of missed.entries()) await say(nodes.clients[at % 2]!, id)
      for (const client of [first, second]) {
        const back = await openEvents(client, { 'last-event-id': last.id })
        await take(back, missed)
        await back.leave()
      }
    })

    it('serve the MCP sessions of the older era of each other', async () => {
      const [first, second] = nodes.clients
      const session = await beginMcpSession(first)
      for (const client of [second, first, second]) {
        const listed = await session.list(client)
        expect(listed.status, listed.text).to.equal(200)
      }
      const ended = await session.end(second)
      expect(ended.status, ended.text).to.be.below(300)
      for (const client of [first, second]) expect((await session.list(client)).status).to.equal(404)
    })
  })

  describe('that check credentials', () => {
    const KEY = 'the-key'
    const LIMIT = 4
    const env = { SVC_API_KEY: KEY, SVC_SERVER__AUTH__ENABLED: 'true', SVC_CHAT__START_AFTER_MS: '0', SVC_CHAT__RESUME_S: '0' }
    let nodes: Awaited<ReturnType<typeof startTwoNodes>>
    before(async () => {
      const config = {
        server: { max_streams_per_principal: LIMIT, max_requests_per_second: 0 },
        chat: { queue_timeout_ms: 60_000 },
      }
      const few = ['auth-api-key', 'auth-bearer', 'event-feed', 'admin-api']
      nodes = stack.use(await startTwoNodes({ env, config, few }))
    })
    const headers = { authorization: `Bearer ${KEY}` }
    const long = (client: Client, more: object = {}) =>
      client.stream({ method: 'POST', path: STREAM, headers, body: { message: '/delay 120000\nlong', ...more } })
    const isFree = (client: Client) =>
      until(
        async () => {
          const stream = await client.stream({ method: 'POST', path: STREAM, headers, body: { message: 'x' } })
          await stream.rest()
          return stream.status
        },
        status => status === 200
      )

    it('revoke a token on both nodes before the command ends, and end its streams', async () => {
      const { home } = nodes.one
      const { out, err } = await runSvc(['tokens', 'create', '--name', 'anna', '--scope', 'read'], { home, env })
      const own = { authorization: `Bearer ${out.trim()}` }
      const statuses = () =>
        Promise.all(
          nodes.clients.map(async client => (await client.send({ method: 'GET', path: '/api/v1/status', headers: own })).status)
        )
      expect(await statuses(), err).to.deep.equal([200, 200])
      const streams = await Promise.all(
        nodes.clients.map(client => client.stream({ method: 'GET', path: '/api/v1/events', headers: own }))
      )
      const ended = Promise.all(
        streams.map(stream =>
          stream.rest().then(
            () => 'ended',
            () => 'ended'
          )
        )
      )
      const revoked = await runSvc(['tokens', 'revoke', 'anna'], { home, env })
      expect(revoked.code, revoked.err).to.equal(0)
      expect(await statuses()).to.deep.equal([401, 401])
      expect(await ended).to.deep.equal(['ended', 'ended'])
    }).timeout(300_000)

    it('allow exactly the maximum of open streams of a principal over both', async () => {
      const streams = await Promise.all(Array.from({ length: 10 * LIMIT }, (_, at) => long(nodes.clients[at % 2]!)))
      const opened = streams.filter(({ status }) => status === 200)
      expect([opened.length, streams.length - opened.length]).to.deep.equal([LIMIT, 9 * LIMIT])
      const refused = await Promise.all(streams.filter(({ status }) => status !== 200).map(stream => stream.rest()))
      expect(new Set(refused.map(answer => `${answer.status} ${String(codeOf(answer))}`))).to.deep.equal(
        new Set(['429 RATE_LIMITED'])
      )
      // what has ended makes room on either node
      for (const stream of opened) await stream.leave()
      for (const client of nodes.clients) await isFree(client)
    }).timeout(300_000)

    it('free what a killed node has held: its conversations and its permits', async () => {
      const [first, second] = nodes.clients
      const begun = await first.send({ method: 'POST', path: '/api/v1/chat', headers, body: { message: 'one' } })
      const { conversation_id } = begun.body as { conversation_id: string }
      for (let at = 0; at < LIMIT; at++) await (await long(first, at === 0 ? { conversation_id } : {})).until('start')
      expect((await long(second)).status).to.equal(429)
      await nodes.one.kill()
      const began = performance.now()
      const body = { message: 'three', conversation_id }
      const next = await second.send({ method: 'POST', path: '/api/v1/chat', headers, body })
      expect(next.body, next.text).to.include({ response: 'You said: three (turn 2)' })
      expect(performance.now() - began, 'its lease lasts longer').to.be.below(25_000)
      await isFree(second)
      const left = await second.send({ method: 'GET', path: '/api/v1/nodes', headers })
      expect((left.body as { nodes: unknown[] }).nodes).to.have.length(1)
    }).timeout(300_000)
  })
})
