import { setTimeout as sleep } from 'node:timers/promises'
import { type Postgres, type PostgresStandby, startPostgres, startTcpProxy, type TcpProxy } from '@svc/testing/engines'
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
    const writers = await writeUntil(postgres.url, { first: 0, enough: 300 })
    await postgres.kill()
    const acknowledged = await writers.broken()
    expect(acknowledged.length).to.be.at.least(300)
    await postgres.start()
    expect(await countOf(postgres, acknowledged)).to.equal(acknowledged.length)
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

  describe('with a synchronous standby, and another one behind a proxy', () => {
    let link: TcpProxy
    let standby: PostgresStandby
    let behind: PostgresStandby

    before(async () => {
      link = stack.use(await startTcpProxy(postgres))
      standby = stack.use(await postgres.standby({ synchronous: true }))
      behind = stack.use(await postgres.standby({ via: link }))
    })

    it('answers queries, and rejects writes, on a standby', async () => {
      expect(await standby.query('SELECT pg_is_in_recovery() AS standby')).to.deep.equal([{ standby: true }])
      const error = await standby.query('INSERT INTO acknowledged VALUES (-1)').catch((err: unknown) => err)
      expect(error).to.have.property('code', '25006') // read_only_sql_transaction
    })

    it('keeps every acknowledged row on the synchronous standby when the primary is killed, and may lose some on the other', async () => {
      await postgres.query('INSERT INTO acknowledged VALUES (-1)')
      while ((await countOf(behind, [-1])) === 0) await sleep(5)
      link.drop()
      const writers = await writeUntil(postgres.url, { first: 1_000_000, enough: 300 })
      await postgres.kill()
      const acknowledged = await writers.broken()
      for (const promoted of [standby, behind]) {
        await promoted.promote()
        expect(await countOf(promoted, acknowledged)).to.equal(promoted === standby ? acknowledged.length : 0)
        await promoted.query('INSERT INTO acknowledged VALUES (-2)')
        expect(await countOf(promoted, [-1, -2])).to.equal(2)
        const [row] = await promoted.query('SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8) AS timeline')
        expect(row).to.deep.equal({ timeline: '00000002' })
      }
    })

    it('brings the old primary back as a read-only standby of the one that was promoted', async () => {
      await postgres.demote(standby)
      await standby.query('INSERT INTO acknowledged VALUES (-3)')
      while ((await countOf(postgres, [-3])) === 0) await sleep(5)
      expect(await postgres.query('SELECT pg_is_in_recovery() AS standby')).to.deep.equal([{ standby: true }])
      const error = await postgres.query('INSERT INTO acknowledged VALUES (-4)').catch((err: unknown) => err)
      expect(error).to.have.property('code', '25006')
    })
  })
})

async function countOf(postgres: Postgres, numbers: readonly number[]): Promise<number> {
  return (await postgres.query('SELECT n FROM acknowledged WHERE n = ANY($1)', [numbers])).length
}
