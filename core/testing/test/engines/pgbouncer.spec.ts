import { setTimeout as sleep } from 'node:timers/promises'
import { type PgBouncer, type Postgres, startPgBouncer, startPostgres } from '@svc/testing/engines'
import { expect } from 'chai'
import { describeWith, lacking, skipBecause } from '../../../../test/support/needs.ts'
import { connectClient, failureText } from './support/writers.ts'

const MESSAGES = 20

describeWith('pgbouncer', 'the test engine PgBouncer', () => {
  const stack = new AsyncDisposableStack()
  let postgres: Postgres
  let pooler: PgBouncer

  before(async function () {
    skipBecause(this, lacking('postgres'))
    postgres = stack.use(await startPostgres())
    pooler = stack.use(await startPgBouncer(postgres, { settings: { default_pool_size: 2 } }))
  })
  after(() => stack.disposeAsync())

  it('shares two connections among twenty clients', async () => {
    const clients = await Promise.all(Array.from({ length: 20 }, () => connectClient(pooler.url)))
    const backends = await Promise.all(
      clients.map(
        client => client.query('SELECT pg_backend_pid() AS pid, pg_sleep(0.01)', []) as Promise<{ rows: { pid: number }[] }>
      )
    )
    await Promise.all(clients.map(client => client.end()))
    expect(new Set(backends.map(({ rows }) => rows[0]!.pid)).size).to.be.within(1, 2)
  })

  /** The number of notifications that reach an idle client of this address. */
  async function notificationsOf(url: string): Promise<number> {
    const listener = await connectClient(url)
    let heard = 0
    listener.on('notification', () => heard++)
    await listener.query('LISTEN news', [])
    await postgres.query(`SELECT pg_notify('news', n::text) FROM generate_series(1, $1) AS n`, [MESSAGES])
    const end = performance.now() + 300
    while (heard < MESSAGES && performance.now() < end) await sleep(10)
    await listener.end()
    return heard
  }

  it('delivers no notification to an idle client in transaction mode, although LISTEN succeeds: use a direct connection', async () => {
    expect(await notificationsOf(pooler.url)).to.equal(0)
    expect(await notificationsOf(postgres.url)).to.equal(MESSAGES)
  })

  it('fails with named statements in transaction mode, and works with unnamed ones', async () => {
    const clients = await Promise.all(Array.from({ length: 10 }, () => connectClient(pooler.url)))
    const named = { name: 'same', text: 'SELECT 1 AS n' }
    const failures = await Promise.all(clients.map(client => client.query(named).then(() => '', failureText)))
    await Promise.all(clients.map(client => client.end()))
    expect(failures.join()).to.match(/prepared statement "same" already exists/)
    expect(await pooler.query('SELECT $1::int AS n', [7])).to.deep.equal([{ n: 7 }])
  })

  it('serves again after PostgreSQL was killed and started', async () => {
    await postgres.kill()
    let answer: unknown
    const waiting = pooler.query('SELECT 1').catch(failureText) // gets an error, or an answer after the start
    await postgres.start()
    await waiting
    const end = performance.now() + 10_000
    do answer = await pooler.query('SELECT 1 AS n').catch(failureText)
    while (typeof answer === 'string' && performance.now() < end)
    expect(answer).to.deep.equal([{ n: 1 }])
  })

  it('is killed, stopped and started on the same port', async () => {
    await pooler.kill()
    expect(await pooler.query('SELECT 1').catch(failureText)).to.include('ECONNREFUSED')
    await pooler.start()
    await pooler.stop()
    await pooler.start()
    expect(await pooler.query('SELECT 1 AS n')).to.deep.equal([{ n: 1 }])
  })

  it('shows its log when a setting prevents its start', async () => {
    const message = await startPgBouncer(postgres, { settings: { pool_size: 'plenty' } }).catch(failureText)
    expect(message).to.match(/^PgBouncer ended at its start \(1\)\..*pool_size/s)
  })
})
