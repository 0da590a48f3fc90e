import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Postgres, type PostgresStandby, startPostgres, startTcpProxy } from '@svc/testing/engines'
import { expect } from 'chai'
import { describeWith } from '../../../../test/support/needs.ts'
import { failureText, writeUntil } from './support/writers.ts'

describeWith('postgres', 'the test engine PostgreSQL', () => {
  const stack = new AsyncDisposableStack()
  let postgres: Postgres

  before(async () => {
    postgres = stack.use(await startPostgres({ settings: { max_connections: 20 } }))
    await postgres.query('CREATE TABLE acknowledged (n int PRIMARY KEY)')
  })
  after(() => stack.disposeAsync())

  it('writes as in production, and takes settings', async () => {
    const names = ['fsync', 'synchronous_commit', 'full_page_writes', 'max_connections']
    const rows = await postgres.query('SELECT name, setting FROM pg_settings WHERE name = ANY($1)', [names])
    expect(Object.fromEntries(rows.map(row => [row.name, row.setting]))).to.deep.equal({
      fsync: 'on',
      synchronous_commit: 'on',
      full_page_writes: 'on',
      max_connections: '20',
    })
  })

  it('keeps every acknowledged row when it is killed in the middle of writes', async () => {
    for (const round of [0, 1]) {
      const writers = await writeUntil(postgres.url, { first: round * 1_000_000, enough: 300 })
      await postgres.kill()
      const acknowledged = await writers.broken()
      expect(acknowledged.length).to.be.at.least(300)
      await postgres.start()
      const rows = await postgres.query('SELECT n FROM acknowledged WHERE n = ANY($1)', [acknowledged])
      expect(rows).to.have.length(acknowledged.length)
    }
    expect(await postgres.log()).to.include('automatic recovery in progress')
  })

  it('stops with clients connected, and starts on the same port', async () => {
    const sleeping = postgres.query('SELECT pg_sleep(60)').catch(failureText)
    while ((await postgres.query(`SELECT 1 FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)'`)).length === 0)
      await sleep(10)
    await postgres.stop()
    expect(await sleeping).to.match(/terminating connection due to administrator command|Connection terminated/)
    expect(await postgres.query('SELECT 1').catch(failureText)).to.include('ECONNREFUSED')
    await postgres.start()
    expect(await postgres.query('SELECT $1::int AS n', [7])).to.deep.equal([{ n: 7 }])
  })

  it('shows its log when a setting prevents its start', async () => {
    const message = await startPostgres({ settings: { shared_buffers: 'plenty' } }).catch(failureText)
    expect(message).to.match(/^PostgreSQL ended at its start \(1\)\. The end of its log:/)
    expect(message).to.include('invalid value for parameter "shared_buffers": "plenty"')
  })

  describe('with a synchronous standby', () => {
    let standby: PostgresStandby

    before(async () => {
      standby = stack.use(await postgres.standby({ synchronous: true }))
    })

    it('answers queries, and rejects writes, on the standby', async () => {
      expect(await standby.query('SELECT pg_is_in_recovery() AS standby')).to.deep.equal([{ standby: true }])
      const error = await standby.query('INSERT INTO acknowledged VALUES (-1)').catch((err: unknown) => err)
      expect(error).to.have.property('code', '25006') // read_only_sql_transaction
    })

    it('has every acknowledged row on the standby that is promoted when the primary is killed', async () => {
      const writers = await writeUntil(postgres.url, { first: 5_000_000, enough: 300 })
      await postgres.kill()
      const acknowledged = await writers.broken()
      await standby.promote()
      expect(await standby.query('SELECT pg_is_in_recovery() AS standby')).to.deep.equal([{ standby: false }])
      const rows = await standby.query('SELECT n FROM acknowledged WHERE n = ANY($1)', [acknowledged])
      expect(rows).to.have.length(acknowledged.length)
      await standby.query('INSERT INTO acknowledged VALUES (-1)')
      const [row] = await standby.query('SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8) AS timeline')
      expect(row).to.deep.equal({ timeline: '00000002' })
      await using next = await standby.standby({ synchronous: true }) // of a server that was a synchronous standby itself
      await standby.query('INSERT INTO acknowledged VALUES (-2)')
      await standby.kill()
      await next.promote()
      expect(await next.query('SELECT n FROM acknowledged WHERE n < 0 ORDER BY n')).to.deep.equal([{ n: -2 }, { n: -1 }])
      await next.query('INSERT INTO acknowledged VALUES (-3)')
    })
  })

  it('loses what a standby that is not synchronous has not received, when it is promoted', async () => {
    await using primary = await startPostgres()
    await primary.query('CREATE TABLE t (n int)')
    await using link = await startTcpProxy(primary)
    await using standby = await primary.standby({ via: link })
    await primary.query('INSERT INTO t VALUES (1)')
    while ((await standby.query('SELECT n FROM t')).length === 0) await sleep(5)
    link.drop()
    await primary.query('INSERT INTO t VALUES (2)') // acknowledged
    await primary.kill()
    await standby.promote()
    expect(await standby.query('SELECT n FROM t')).to.deep.equal([{ n: 1 }])
    await primary.start()
    expect(await primary.query('SELECT n FROM t')).to.deep.equal([{ n: 1 }, { n: 2 }])
  })

  it('leaves no file behind', async () => {
    const one = await startPostgres()
    const [row] = await one.query<{ data_directory: string }>('SHOW data_directory')
    expect(existsSync(row!.data_directory)).to.equal(true)
    await one[Symbol.asyncDispose]()
    expect(existsSync(row!.data_directory)).to.equal(false)
  })
})
