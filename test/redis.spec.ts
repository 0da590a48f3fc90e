import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Postgres, type Redis, startPostgres, startRedis } from '@svc/testing/engines'
import { expect } from 'chai'
import { type Answer, type Client, createClient } from './support/client.ts'
import { runSvc } from './support/command.ts'
import { describeWith, lacking, skipBecause } from './support/needs.ts'
import { clientsOf, startNode } from './support/nodes.ts'
import { newHome } from './support/service.ts'
import { until, wait } from './support/wait.ts'

const PATH = '/api/v1/status'
const CHAT = '/api/v1/chat'
/** Within this time of a return of Redis, svc uses it again. */
const BACK_MS = 5_000
/** More than a test sends. */
const MANY = 1_000_000

const codeOf = ({ body }: Answer) => (body as { error_code?: string }).error_code
const statusOf = async (client: Client) => (await client.get(PATH)).status

/** Limits of one client in a minute. */
const limited = (perMinute: number) => ({
  server: { rate_limit: { enabled: true, requests_per_minute: perMinute, requests_per_day: MANY } },
})

/** A12 of the acceptance of clusters; the short one is in `redis-flush.spec.ts`. */
describeWith('redis', 'a server with redis.url that loses Redis', () => {
  async function startLimited(redis: Redis, more: object = {}) {
    const stack = new AsyncDisposableStack()
    const service = stack.use(
      await startNode({
        config: { ...limited(MANY), redis: { url: redis.url, use: ['counts', 'cache'], ...more } },
        few: ['rate-limit'],
      })
    )
    const client = createClient(service.url, { keepAlive: false })
    const begun = await client.post(CHAT, { message: 'one' })
    expect(begun.status, begun.text).to.equal(200)
    const { conversation_id: id } = begun.body as { conversation_id: string }
    return {
      service,
      client,
      /** The conversation is whole, and continues. */
      async isKept(turn: number) {
        const next = await client.post(CHAT, { message: 'next', conversation_id: id })
        expect(next.body, next.text).to.include({ response: `You said: next (turn ${turn})` })
      },
      [Symbol.asyncDispose]: () => stack.disposeAsync(),
    }
  }

  it('refuses what it cannot count while Redis is down, and counts within 5 s after its return; no data is lost', async () => {
    await using redis = await startRedis()
    await using server = await startLimited(redis)
    const { client } = server
    expect(await redis.command('KEYS', 'svc:*:counts:rate_limit*')).to.have.length(1)
    await redis.kill()
    for (let times = 0; times < 3; times++) {
      const refused = await client.get(PATH)
      expect([refused.status, codeOf(refused)]).to.deep.equal([503, 'UNAVAILABLE'])
      expect(Number(refused.headers['retry-after'])).to.be.within(1, 60)
      expect(refused.text).to.not.include(redis.password)
    }
    expect(((await client.get('/health')).body as { status: string }).status).to.equal('degraded')
    expect((await client.get('/health/live')).status).to.equal(200)
    await redis.start()
    const back = performance.now()
    await until(
      () => statusOf(client),
      status => status === 200
    )
    expect(performance.now() - back).to.be.below(BACK_MS)
    await server.isKept(2)
    expect(server.service.output()).to.not.include(redis.password)
  }).timeout(300_000)

  it('refuses what it cannot count while the memory of Redis is full, and counts again when there is some', async () => {
    await using redis = await startRedis({ maxMemory: '100mb' })
    await using server = await startLimited(redis)
    for (let at = 0; at < 30; at++) await redis.command('SET', `filler${at}`, 'x'.repeat(100_000))
    await redis.command('CONFIG', 'SET', 'maxmemory', '2mb')
    const refused = await server.client.get(PATH)
    expect([refused.status, codeOf(refused)], refused.text).to.deep.equal([503, 'UNAVAILABLE'])
    expect(Number(refused.headers['retry-after'])).to.be.within(1, 60)
    await redis.command('CONFIG', 'SET', 'maxmemory', '100mb')
    expect(await statusOf(server.client)).to.equal(200)
    await server.isKept(2)
  }).timeout(300_000)

  it('serves while Redis evicts its keys', async () => {
    await using redis = await startRedis({ maxMemory: '4mb', maxMemoryPolicy: 'allkeys-random' })
    await using server = await startLimited(redis)
    for (let at = 0; at < 100; at++) {
      await redis.command('SET', `filler${at}`, 'x'.repeat(100_000))
      if (at % 10 === 0) expect(await statusOf(server.client)).to.equal(200)
    }
    expect(server.service.output()).to.include('Redis can evict hits of limits')
    await server.isKept(2)
  }).timeout(300_000)

  it('shows no password: neither config show, nor the log, nor an error about the connection', async () => {
    await using redis = await startRedis()
    const home = await newHome()
    const wrong = redis.url.replace(redis.password, 'wrong-0d1b7c3f')
    await writeFile(join(home, 'svc.config.json'), JSON.stringify({ redis: { url: wrong } }))
    const shown = await runSvc(['config', 'show'], { home })
    expect([shown.code, shown.out.includes('redis:'), shown.out.includes('wrong-0d1b7c3f')], shown.err).to.deep.equal([
      0,
      true,
      false,
    ])
    await rm(home, { recursive: true })
    await using service = await startNode({ config: { redis: { url: wrong, use: ['cache'] } }, few: [] })
    await service.seen(/there is no connection to Redis/)
    expect(service.output()).to.include('Redis rejected the user or the password').and.not.include('wrong-0d1b7c3f')
  }).timeout(300_000)
})

/** Each case for servers that share one file, and for those that share one database. */
for (const kind of ['sqlite', 'postgres'] as const) {
  describeWith(kind === 'sqlite' ? 'redis' : 'postgres', `two servers with one store (${kind}) and Redis`, () => {
    const stack = new AsyncDisposableStack()
    const env = {
      SVC_API_KEY: 'the-key',
      SVC_SERVER__AUTH__ENABLED: 'true',
      SVC_CHAT__START_AFTER_MS: '0',
      SVC_CHAT__RESUME_S: '0',
    }
    const headers = { authorization: 'Bearer the-key' }
    const LIMIT = 4
    let redis: Redis
    let shared: object
    before(async function () {
      skipBecause(this, lacking('redis'))
      redis = stack.use(await startRedis())
      shared = await sharedStore()
    })
    after(() => stack.disposeAsync())

    async function sharedStore(): Promise<object> {
      if (kind === 'postgres') {
        const postgres: Postgres = stack.use(await startPostgres({ settings: { max_connections: 60 } }))
        return { store: { url: postgres.url } }
      }
      const folder = await newHome()
      stack.defer(() => rm(folder, { recursive: true, force: true }))
      return { store: { path: join(folder, 'svc.db') } }
    }

    async function startTwo(cluster: string, config: object, few: readonly string[], own: Record<string, string> = {}) {
      const ends = new AsyncDisposableStack()
      const whole = { redis: { url: redis.url }, ...config, ...shared, cluster: { name: cluster } }
      const start = async () => ends.use(await startNode({ config: whole, few, env: own }))
      const [one, two] = [await start(), await start()]
      const clients = clientsOf([one, two]) as [Client, Client]
      return { one, two, clients, [Symbol.asyncDispose]: () => ends.disposeAsync() }
    }

    it('share the mode, events, revocations and the limit of streams through Redis', async () => {
      const config = { server: { max_streams_per_principal: LIMIT, max_requests_per_second: 0 } }
      await using nodes = await startTwo('shop', config, ['auth-api-key', 'auth-bearer', 'event-feed', 'admin-api'], env)
      const [first, second] = nodes.clients
      const send = (client: Client, method: string, path: string, body?: object, own: object = headers) =>
        client.send({ method, path, headers: { ...own }, ...(body === undefined ? {} : { body }) })
      expect(await redis.command('KEYS', 'svc:shop:*:bus:members')).to.have.length(1)
      type Nodes = { readonly cluster: string; readonly nodes: readonly unknown[] }
      for (const client of nodes.clients) {
        const { cluster, nodes: all } = (await send(client, 'GET', '/api/v1/nodes')).body as Nodes
        expect([cluster, all.length]).to.deep.equal(['shop', 2])
      }
      // the mode
      await send(first, 'POST', '/api/v1/mode/switch', { mode: 'plan' })
      for (const client of nodes.clients)
        expect((await send(client, 'GET', '/api/v1/config/effective')).body).to.include({ mode: 'plan' })
      // events
      const events = await second.stream({ method: 'GET', path: '/api/v1/events?types=turn_completed', headers })
      // each worker begins to collect when it hears of the reader, so a turn is repeated until it comes
      let hasCome = false
      const reading = until(
        () => events.next(),
        said => said?.event === 'turn_completed' || JSON.stringify(said?.data ?? {}).includes('turn_completed')
      ).then(() => (hasCome = true))
      while (!hasCome) {
        await send(first, 'POST', CHAT, { message: 'hello' })
        await wait()
      }
      await reading
      await events.leave()
      // a revoked token
      const { out, err } = await runSvc(['tokens', 'create', '--name', 'anna', '--scope', 'read'], { home: nodes.one.home, env })
      const own = { authorization: `Bearer ${out.trim()}` }
      const statuses = () =>
        Promise.all(nodes.clients.map(async client => (await send(client, 'GET', PATH, undefined, own)).status))
      expect(await statuses(), err).to.deep.equal([200, 200])
      const revoked = await runSvc(['tokens', 'revoke', 'anna'], { home: nodes.one.home, env })
      expect(revoked.code, revoked.err).to.equal(0)
      expect(await statuses()).to.deep.equal([401, 401])
      // open streams
      const long = (client: Client) =>
        client.stream({ method: 'POST', path: `${CHAT}/stream`, headers, body: { message: '/delay 120000\nlong' } })
      const streams = await Promise.all(Array.from({ length: 5 * LIMIT }, (_, at) => long(nodes.clients[at % 2]!)))
      expect(streams.filter(({ status }) => status === 200)).to.have.length(LIMIT)
      for (const stream of streams) await stream.leave()
      // a lost node
      await nodes.one.kill()
      await until(
        async () => ((await send(second, 'GET', '/api/v1/nodes')).body as Nodes).nodes.length,
        count => count === 1
      )
    }).timeout(300_000)

    it('count requests exactly together, in Redis and, if configured so, in the store while Redis is down', async () => {
      await using own = await startRedis()
      const config = { ...limited(LIMIT), redis: { url: own.url, use: ['counts', 'bus'], counts: { fallback: 'store' } } }
      await using nodes = await startTwo('counts', config, ['rate-limit'])
      const allowed = async () => {
        const all = await Promise.all(Array.from({ length: 5 * LIMIT }, (_, at) => statusOf(nodes.clients[at % 2]!)))
        expect(new Set(all)).to.deep.equal(new Set([200, 429]))
        return all.filter(status => status === 200).length
      }
      expect(await allowed()).to.equal(LIMIT)
      await own.kill()
      // refused clients are remembered until their window ends; servers without Redis stay ready
      await new Promise(resolve => setTimeout(resolve, 61_000))
      for (const client of nodes.clients) expect((await client.get('/health/ready')).status).to.equal(200)
      expect(await allowed()).to.equal(LIMIT)
    }).timeout(300_000)
  })
}
