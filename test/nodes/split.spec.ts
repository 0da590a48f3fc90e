import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Postgres, type Redis, startPostgres, startRedis } from '@svc/testing/engines'
import { expect } from 'chai'
import type { Client } from '../support/client.ts'
import { runSvc } from '../support/command.ts'
import { describeWith, lacking, skipBecause } from '../support/needs.ts'
import { clientsOf, startNode } from '../support/nodes.ts'
import { newHome, type Service } from '../support/service.ts'
import { until } from '../support/wait.ts'

const LIMIT = 20
const MANY = 1_000_000
const limited = { server: { rate_limit: { enabled: true, requests_per_minute: LIMIT, requests_per_day: MANY } } }
const PATH = '/api/v1/status'

const ready = async (client: Client) => {
  const { status, body } = await client.get('/health/ready')
  return `${status} ${(body as { status: string }).status}`
}
const becomes = async (client: Client, word: string) =>
  until(
    () => ready(client),
    found => found === word
  )
/** How many requests the nodes let through, sent in turn to all of them. */
async function allowed(clients: readonly Client[]): Promise<number> {
  const asked = Array.from({ length: 3 * LIMIT }, (_, at) => clients[at % clients.length]!.get(PATH))
  return (await Promise.all(asked)).filter(({ status }) => status === 200).length
}

describeWith('postgres', 'clusters with PostgreSQL and Redis', () => {
  const stack = new AsyncDisposableStack()
  let [postgres, redis]: [Postgres, Redis] = [undefined!, undefined!]
  before(async function () {
    this.timeout(120_000)
    skipBecause(this, lacking('redis'))
    postgres = stack.use(await startPostgres({ settings: { max_connections: 80 } }))
    redis = stack.use(await startRedis())
  })
  after(() => stack.disposeAsync())

  it('with different databases never meet in one Redis, though their names are the same', async () => {
    await postgres.query('CREATE DATABASE other')
    const other = new URL(postgres.url)
    other.pathname = '/other'
    const start = (url: string) =>
      startNode({ config: { ...limited, store: { url }, redis: { url: redis.url } }, few: ['rate-limit', 'admin-api'] })
    await using one = await start(postgres.url)
    await using two = await start(other.href)
    const [a, b] = clientsOf([one, two]) as [Client, Client]
    for (const client of [a, b]) {
      const { nodes, cluster } = (await client.get('/api/v1/nodes')).body as { nodes: readonly unknown[]; cluster: string }
      expect([cluster, nodes.length]).to.deep.equal(['svc', 1])
    }
    expect(await redis.command('KEYS', 'svc:svc:*:bus:members')).to.have.length(2)
    expect(await redis.command('KEYS', 'svc:svc:bus:*')).to.deep.equal([])
    // one request of each has counted above
    expect([await allowed([a]), await allowed([b])]).to.deep.equal([LIMIT - 1, LIMIT - 1])
  }).timeout(240_000)

  it('let a node that alone gets redis.url wait and say why, and serve when the other one has it', async () => {
    await using pair = await startPair('rolling', [{}, {}])
    const { first, second, a, b } = pair
    await becomes(a, '200 ready')
    await becomes(b, '200 ready')
    await configure(second, { redis: { url: redis.url } })
    await becomes(b, '503 node_differs')
    expect(await ready(a)).to.equal('200 ready')
    for (const node of [first, second]) {
      await node.seen(/NODE_DIFFERS/)
      const listed = await runSvc(['nodes'], { home: node.home })
      expect(listed.out, listed.err).to.include('NODE_DIFFERS').and.include('service node_bus').and.include('service counts')
      const doctor = await runSvc(['doctor'], { home: node.home })
      expect(doctor.code, doctor.out).to.equal(1)
      expect(doctor.out).to.include('NODE_DIFFERS').and.include('bus-redis').and.not.include(redis.password)
    }
    expect(await allowed([a])).to.be.within(1, LIMIT)
    await staysReady([a, b], () => configure(first, { redis: { url: redis.url } }))
    await becomes(a, '200 ready')
    await becomes(b, '200 ready')
    expect(await allowed([a, b])).to.be.within(1, LIMIT)
    const { out } = await runSvc(['nodes', '--json'], { home: first.home })
    const { nodes } = JSON.parse(out) as { nodes: readonly { differences: readonly unknown[] }[] }
    expect(nodes.map(({ differences }) => differences)).to.deep.equal([[], []])
    const good = await runSvc(['doctor'], { home: second.home })
    expect(good.out).to.include('all running nodes share messages and limits')
    // without Redis again
    await configure(first, { redis: undefined })
    await becomes(a, '503 node_differs')
    await staysReady([a, b], () => configure(second, { redis: undefined }))
    await becomes(a, '200 ready')
    await becomes(b, '200 ready')
  }).timeout(300_000)

  it('let a node with another Redis server wait', async () => {
    await using other = await startRedis()
    await using pair = await startPair('servers', [{ redis: { url: redis.url } }, { redis: { url: other.url } }])
    const { second, a, b } = pair
    expect([await ready(a), await ready(b)]).to.deep.equal(['200 ready', '503 node_differs'])
    await second.seen(/NODE_DIFFERS/)
    expect(second.output()).to.include('service redis').and.not.include(redis.password).and.not.include(other.password)
  }).timeout(240_000)

  /** Two nodes with a database of their own. */
  async function startPair(database: string, [one, two]: readonly [object, object]) {
    const ends = new AsyncDisposableStack()
    await postgres.query(`CREATE DATABASE ${database}`)
    const url = new URL(postgres.url)
    url.pathname = `/${database}`
    const start = async (config: object) => {
      const home = await newHome()
      ends.defer(() => rm(home, { recursive: true, force: true }))
      const whole = { ...limited, store: { url: url.href }, ...config }
      return ends.use(await startNode({ home, config: whole, few: ['rate-limit', 'admin-api', 'plugin-manager'] }))
    }
    const [first, second] = [await start(one), await start(two)]
    const [a, b] = clientsOf([first, second]) as [Client, Client]
    return { first, second, a, b, [Symbol.asyncDispose]: () => ends.disposeAsync() }
  }
})

/** Changes the configuration of a running node. */
async function configure({ home }: Service, config: object): Promise<void> {
  const file = join(home, 'svc.config.json')
  const former = JSON.parse(await readFile(file, 'utf8')) as object
  await writeFile(file, JSON.stringify({ ...former, ...config }))
  const { code, err } = await runSvc(['reload'], { home })
  expect(code, err).to.equal(0)
}

/** Whether a load balancer finds a node that is ready during the change, and until all are. */
async function staysReady(clients: readonly Client[], change: () => Promise<void>): Promise<void> {
  const found = async () => (await Promise.all(clients.map(ready))).filter(word => word === '200 ready').length
  let isChanged = false
  const changing = change().finally(() => (isChanged = true))
  const counts: number[] = []
  do counts.push(await found())
  while (!isChanged || counts.at(-1)! < clients.length)
  await changing
  expect(Math.min(...counts)).to.be.above(0)
}
