import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Postgres, type PostgresStandby, startPostgres, startTcpProxy } from '@svc/testing/engines'
import { expect } from 'chai'
import { describeWith } from '../support/needs.ts'
import { auditNodeLoad, loadEnv, startNodeLoad, workersOf } from '../support/node-load.ts'
import { beginLong, LONG_RUNS, processesIn } from '../support/node-runs.ts'
import { beginMcpSession, clientsOf, isReady, startNode } from '../support/nodes.ts'
import { until } from '../support/wait.ts'

/** From the promotion, or for a node behind an address from the time when it leads to the new primary. */
const MOVED_MS = 5_000
const HELD_RUNS = 6
const FEW = ['workflows', 'workflow-nodes', 'mcp-server']
/** The high part of a fence is the timeline of the database. */
const TIMELINE = 2 ** 32

/** A4 of the acceptance of clusters. */
describeWith('postgres', 'two nodes whose PostgreSQL fails over to a synchronous standby', () => {
  const stack = new AsyncDisposableStack()
  let postgres: Postgres
  let standby: PostgresStandby
  let file: string
  before(async () => {
    postgres = stack.use(await startPostgres({ settings: { max_connections: 60 } }))
    standby = stack.use(await postgres.standby({ synchronous: true }))
    const folder = await mkdtemp(join(tmpdir(), 'svc-failover-'))
    stack.defer(() => rm(folder, { recursive: true, force: true }))
    file = join(folder, 'runs')
  })
  after(() => stack.disposeAsync())

  const fencesOf = async (server: Postgres) => {
    const rows = await server.query('SELECT name, fence::text AS fence FROM svc.leases')
    return new Map(rows.map(({ name, fence }) => [String(name), Number(fence)]))
  }
  /** Connections of svc to a server. */
  const linesTo = async (server: Postgres) =>
    Number((await server.query(`SELECT count(*)::integer AS n FROM pg_stat_activity WHERE application_name LIKE 'svc%'`))[0]!.n)

  it('move to it by a list of hosts or by an address, lose nothing, and leave the old primary that is read-only', async () => {
    const address = { port: postgres.port, url: postgres.url }
    const proxy = stack.use(await startTcpProxy(address))
    const hosts = postgres.url.replace(/\/postgres$/, `,127.0.0.1:${standby.port}/postgres`)
    const nodeAt = async (url: string) => {
      const config = { plugins: [LONG_RUNS], store: { url }, mcp: { server: { enabled: true } } }
      return stack.use(await startNode({ config, few: FEW, env: loadEnv(file) }))
    }
    const [one, two] = await Promise.all([nodeAt(hosts), nodeAt(proxy.url)])
    const [first, second] = clientsOf([one, two])
    const processes = await Promise.all([one, two].map(workersOf))
    const session = await beginMcpSession(first!)
    expect((await session.list(second!)).status).to.equal(200)
    const held = await Promise.all(Array.from({ length: HELD_RUNS }, (_, at) => beginLong([one, two][at % 2]!.url)))
    await until(
      async () => processesIn(file, 'begin').size,
      count => count >= HELD_RUNS
    )
    const load = startNodeLoad([one, two], { everyMs: 500 })
    await load.more(20, 2)

    await postgres.kill()
    const replayed = 'SELECT pg_last_wal_replay_lsn() = pg_last_wal_receive_lsn() AS done'
    await until(
      () => standby.query(replayed),
      ([row]) => row!.done === true
    )
    const before = await fencesOf(standby)
    await standby.promote()
    const promoted = performance.now()
    await load.serves(one)
    expect(performance.now() - promoted, 'until the node with both hosts serves').to.be.below(MOVED_MS)

    // the address of the other node leads to the old primary, which is a standby now
    await postgres.demote(standby)
    await until(
      () => linesTo(postgres),
      lines => lines > 0
    )
    expect(await isReady(two.url)).to.equal(false)
    const refused = await second!.post('/api/v1/chat', { message: 'to a standby' })
    expect(refused.status, refused.text).to.equal(503)
    await load.more(10, 1)
    Object.assign(address, { port: standby.port })
    const led = performance.now()
    await load.serves(two)
    expect(performance.now() - led, 'until the node behind the address serves').to.be.below(MOVED_MS)
    // its connections to the old one are still possible, and yet none is left
    await until(
      () => linesTo(postgres),
      lines => lines === 0
    )

    await load.more(20, 2)
    const given = await until(
      async () => [...(await fencesOf(standby))].filter(([name, fence]) => before.get(name) !== fence).map(([, fence]) => fence),
      fences => fences.length > 0
    )
    await first!.post('/api/v1/mode/switch', { mode: 'plan' })
    for (const [node, client] of [
      [one, first!],
      [two, second!],
    ] as const) {
      expect((await client.get('/api/v1/config/effective')).body).to.include({ mode: 'plan' })
      expect((await session.list(client)).status).to.equal(200)
      expect(node.output()).to.include('the watch over switches of other workers ended; it restarts')
    }
    await writeFile(`${file}.go`, '')
    await load.end()
    expect(await auditNodeLoad(two.url, { ...load, runs: [...held, ...load.runs] }, file)).to.deep.equal([])
    expect(Math.max(...before.values())).to.be.below(2 * TIMELINE)
    expect(Math.min(...given), 'fences since the failover').to.be.above(2 * TIMELINE)
    expect(await Promise.all([one, two].map(workersOf))).to.deep.equal(processes)
  }).timeout(300_000)
})
