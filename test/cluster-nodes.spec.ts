import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { hostname } from 'node:os'
import { fileURLToPath } from 'node:url'
import { type Postgres, startPostgres } from '@svc/testing/engines'
import { expect } from 'chai'
import { type Client, createClient } from './support/client.ts'
import { runSvc } from './support/command.ts'
import { describeWith } from './support/needs.ts'
import { newHome, type Service, startService } from './support/service.ts'
import { until } from './support/wait.ts'

const WORK = fileURLToPath(new URL('./support/long-runs.ts', import.meta.url))
const [RUNS, JOBS] = [12, 8]

interface Shown {
  readonly cluster: string | null
  readonly nodes: readonly {
    readonly id: string
    readonly host: string | null
    readonly address: { readonly host: string; readonly port: number; readonly url: string } | null
    readonly is_self: boolean
    readonly roles: readonly string[]
    readonly workers: readonly {
      readonly name: string
      readonly version: string | null
      readonly state: string | null
      readonly requests_active: number | null
      readonly memory_bytes: number | null
    }[]
    readonly differs: boolean
    readonly differences: readonly { readonly what: string; readonly name: string; readonly here: string | null }[]
  }[]
  readonly silent?: readonly string[]
}

const clientOf = ({ url }: Service): Client => createClient(url, { keepAlive: false })

describeWith('postgres', 'a node that serves and a node that works on one PostgreSQL', () => {
  const stack = new AsyncDisposableStack()
  let postgres: Postgres
  let file: string
  let [front, back]: [Service, Service] = [undefined!, undefined!]
  /** The process ids of the workers. */
  let pids: { readonly front: number; readonly back: number }

  async function startNode(config: object): Promise<Service> {
    const home = await newHome()
    stack.defer(() => rm(home, { recursive: true, force: true }))
    const whole = { plugins: [WORK], store: { url: postgres.url }, ...config }
    await writeFile(join(home, 'svc.config.json'), JSON.stringify(whole))
    // a stopped worker is not killed
    return stack.use(await startService({ home, env: { TEST_RUNS_FILE: file, SVC_SERVER__HANG_TIMEOUT_MS: '3600000' } }))
  }
  const shownBy = async (client: Client) => (await client.get('/api/v1/nodes')).body as Shown
  const workerOf = async ({ home }: Service) => {
    const { out, err } = await runSvc(['status', '--json'], { home })
    expect(out, err).to.include('"workers"')
    return (JSON.parse(out) as { workers: readonly { pid: number }[] }).workers[0]!.pid
  }

  before(async function () {
    this.timeout(120_000)
    postgres = stack.use(await startPostgres({ settings: { max_connections: 60 } }))
    const folder = await newHome()
    stack.defer(() => rm(folder, { recursive: true, force: true }))
    file = join(folder, 'runs')
    writeFileSync(`${file}.go`, '')
    front = await startNode({ cluster: { roles: ['http'] }, server: { rate_limit: { requests_per_day: 91_001 } } })
    back = await startNode({
      cluster: { roles: ['runs'] },
      server: { rate_limit: { requests_per_day: 91_002 } },
      providers: {
        secret: { type: 'openai', base_url: 'http://127.0.0.1:1/v1', headers: { 'x-key': 'the-secret-key-of-a-provider' } },
      },
    })
    pids = { front: await workerOf(front), back: await workerOf(back) }
  })
  after(() => stack.disposeAsync())

  it('list both nodes with host, version, roles and the state of their workers', async () => {
    const { cluster, nodes } = await shownBy(clientOf(front))
    expect([cluster, nodes.length]).to.deep.equal(['svc', 2])
    const [self, other] = [nodes.find(node => node.is_self)!, nodes.find(node => !node.is_self)!]
    expect([self.roles, other.roles]).to.deep.equal([['http'], ['runs']])
    for (const { host, workers } of nodes) {
      expect([host, workers.length]).to.deep.equal([hostname(), 1])
      expect(workers[0]!.state).to.equal('running')
      expect(workers[0]!.version).to.be.a('string')
      expect(workers[0]!.memory_bytes).to.be.above(10_000_000)
    }
    expect(self.workers[0]!.requests_active).to.be.at.least(1)
  })

  it('name where each of them listens, with the port that the system has chosen', async () => {
    const { nodes } = await shownBy(clientOf(front))
    const { out, err } = await runSvc(['nodes'], { home: back.home })
    for (const [service, isSelf] of [[front, true] as const, [back, false] as const]) {
      const { hostname: host, port, origin: url } = new URL(service.url)
      expect(nodes.find(node => node.is_self === isSelf)!.address).to.deep.equal({ host, port: Number(port), url })
      expect(out, err).to.include(` ${url} `)
    }
  })

  it('name what they run differently, without values, in the list and in the log', async () => {
    const { nodes } = await shownBy(clientOf(front))
    const [self, other] = [nodes.find(node => node.is_self)!, nodes.find(node => !node.is_self)!]
    expect([self.differs, self.differences, other.differs]).to.deep.equal([false, [], true])
    const names = other.differences.map(({ what, name, here }) => [what, name, here])
    expect(names).to.deep.include(['configuration', 'server.rate_limit.requests_per_day', null])
    expect(names.map(([, name]) => name))
      .to.include('providers.secret.base_url')
      .and.not.include('cluster.roles')
    await front.seen(/NODE_DIFFERS/)
    const line = front
      .output()
      .split('\n')
      .find(text => text.includes('NODE_DIFFERS'))!
    expect(line).to.include('configuration server.rate_limit.requests_per_day').and.include(other.id)
    for (const text of [line, JSON.stringify(nodes)]) expect(text).to.not.include('91002').and.not.include('the-secret-key')
    const listed = await runSvc(['nodes'], { home: front.home })
    expect(listed.code, listed.err).to.equal(0)
    expect(listed.out)
      .to.include(hostname())
      .and.include(`NODE_DIFFERS ${other.id}`)
      .and.match(/running +this node/)
    expect(listed.out).to.include('configuration server.rate_limit.requests_per_day')
  })

  it('let only the one with the role runs take runs and jobs, wherever they are started', async () => {
    const client = clientOf(front)
    const begun = await Promise.all(
      Array.from({ length: RUNS }, () =>
        client.send({
          method: 'POST',
          path: '/api/v1/workflows/run',
          headers: { prefer: 'respond-async' },
          body: { workflow: 'long', input: {} },
        })
      )
    )
    const ids = begun.map(({ body }) => (body as { workflow_id: string }).workflow_id)
    for (const id of ids)
      await until(
        async () => ((await client.get(`/api/v1/workflows/${id}/status`)).body as { status: string }).status,
        status => status === 'completed'
      )
    const places = (existsSync(file) ? readFileSync(file, 'utf8') : '').split('\n').filter(line => line.startsWith('begin '))
    expect(places).to.have.length(RUNS)
    expect(new Set(places.map(line => Number(line.split(' ')[3])))).to.deep.equal(new Set([pids.back]))
    for (let job = 0; job < JOBS; job++) {
      const added = await client.post('/api/v1/jobs', { kind: 'where', input: {} })
      expect(added.status, added.text).to.be.below(300)
      const { id } = added.body as { id: string }
      const done = await until(
        async () => (await client.get(`/api/v1/jobs/${id}`)).body as { state: string; result?: unknown },
        ({ state }) => !['queued', 'running'].includes(state)
      )
      expect([done.state, done.result]).to.deep.equal(['completed', pids.back])
    }
  }).timeout(120_000)

  it('let the one without the role http serve health, metrics and its operator only', async () => {
    const client = clientOf(back)
    for (const path of ['/health', '/health/live', '/health/ready', '/metrics'])
      expect((await client.get(path)).status, path).to.equal(200)
    for (const path of ['/api/v1/status', '/api/v1/nodes', '/openapi.json', '/v1/models', '/', '/mcp']) {
      const refused = await client.get(path)
      expect(refused.status, path).to.equal(404)
      // a model endpoint has errors of its own
      if (path !== '/v1/models') expect(refused.text, path).to.include('no role')
    }
    expect((await client.post('/api/v1/chat', { message: 'hello' })).status).to.equal(404)
    const status = await runSvc(['status'], { home: back.home })
    expect(status.code, status.out + status.err).to.equal(0)
    expect((await clientOf(front).post('/api/v1/chat', { message: 'hello' })).status).to.equal(200)
  }).timeout(60_000)

  it('are shown by svc status --cluster, with those that do not answer', async () => {
    const shown = async (...args: string[]) => runSvc(['status', '--cluster', ...args], { home: front.home })
    const good = await shown()
    expect(good.code, good.err).to.equal(0)
    expect(good.out)
      .to.match(/cluster svc: 2 nodes/)
      .and.match(/http +\S+ +\S+ +running +\d+ +\d+ % +\d+ MB/)
    const byUrl = await runSvc(['status', '--cluster', '--json', '--url', front.url], { home: back.home })
    expect([byUrl.code, (JSON.parse(byUrl.out) as Shown).silent]).to.deep.equal([0, []])
    const refused = await runSvc(['status', '--cluster', '--url', back.url], { home: front.home })
    expect([refused.code, /NOT_FOUND/.test(refused.err)]).to.deep.equal([1, true])
    expect((await shown('--watch')).code).to.equal(2)
    process.kill(pids.back, 'SIGSTOP')
    try {
      const { code, out } = await shown('--json')
      const { silent, nodes } = JSON.parse(out) as Shown
      const stopped = nodes.find(node => !node.is_self)!.workers[0]!
      expect([code, silent, stopped.state, stopped.memory_bytes]).to.deep.equal([1, [stopped.name], null, null])
    } finally {
      process.kill(pids.back, 'SIGCONT')
    }
  }).timeout(120_000)

  it('report that they differ when another node has migrated the data, and are not ready then', async () => {
    const facts = { version: '9.9.9', host: 'newer', roles: ['http'], setup: 'other', spaces: { conversations: '99' } }
    await postgres.query(
      `INSERT INTO svc.bus_members(worker, cluster, node, facts, seen, claimed)
        VALUES ('newer.1.1', 'svc', 'newer', '${JSON.stringify(facts)}', 99999999999999, 0)`
    )
    const status = await until(
      async () => (await clientOf(front).get('/health/ready')).body as { status: string },
      ({ status: word }) => word !== 'ready'
    )
    expect(status).to.deep.equal({ status: 'node_differs' })
    const newer = (await shownBy(clientOf(front))).nodes.find(({ id }) => id === 'newer')!
    const schema = newer.differences.find(({ what }) => what === 'schema')
    expect(schema).to.deep.include({ what: 'schema', name: 'conversations', there: '99' })
    expect((await clientOf(front).get('/health/live')).status).to.equal(200)
  }).timeout(120_000)
})

describe('cluster.roles', () => {
  it('accepts http and runs only, and at least one', async () => {
    const home = await newHome()
    for (const [roles, code] of [
      [['runs'], 0],
      [[], 1],
      [['workers'], 1],
    ] as const) {
      await writeFile(join(home, 'svc.config.json'), JSON.stringify({ cluster: { roles } }))
      const checked = await runSvc(['config', 'check'], { home, share: true })
      expect([roles, checked.code], checked.err).to.deep.equal([roles, code])
      if (code === 1) expect(checked.err).to.include('cluster.roles')
    }
    await rm(home, { recursive: true })
  }).timeout(120_000)
})
