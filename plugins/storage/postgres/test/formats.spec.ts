import { readFile } from 'node:fs/promises'
import { codeOf } from '@svc/core'
import { type Postgres, startPostgres } from '@svc/testing/engines'
import { expect } from 'chai'
import { describeWith } from '../../../../test/support/needs.ts'
import { FORMAT } from '../src/schema.ts'
import { until } from './load.ts'
import { ctx, storeWith } from './support.ts'

/** A dump of the tables of format 1 with some data, without those of later formats. */
const FIXTURE = new URL('./fixtures/format-1.sql', import.meta.url)
const SPACE = {
  name: 'older',
  version: 4,
  collections: { notes: { watched: true, indexes: { by_owner: ['owner'] } } },
  logs: ['lines'],
} as const
const SERVERS = 3

/** Expand and contract: a new version adds to the tables, so that the former one goes on with them. */
describeWith('postgres', 'tables of another format or server in PostgreSQL', () => {
  const stack = new AsyncDisposableStack()
  let postgres: Postgres
  let dump: string
  let schemas = 0
  before(async () => {
    postgres = stack.use(await startPostgres({ settings: { max_connections: 60 } }))
    dump = await readFile(FIXTURE, 'utf8')
  })
  after(() => stack.disposeAsync())

  async function restore(): Promise<string> {
    const schema = `format_${++schemas}`
    await postgres.query(dump.replaceAll('older.', `${schema}.`).replace('CREATE SCHEMA older', `CREATE SCHEMA ${schema}`))
    return schema
  }
  const formatOf = async (schema: string) =>
    Number((await postgres.query(`SELECT value FROM ${schema}.meta WHERE name = 'format'`))[0]!.value)

  it('are brought to the newest one once, by one of the servers that start together, and keep all data', async () => {
    const schema = await restore()
    expect(await formatOf(schema)).to.equal(1)
    const tables = async () =>
      (await postgres.query(`SELECT tablename FROM pg_tables WHERE schemaname = $1 ORDER BY 1`, [schema])).map(
        row => row.tablename
      )
    const before = await tables()
    await using stores = new AsyncDisposableStack()
    const opened = Array.from({ length: SERVERS }, () => stores.use(storeWith({ url: postgres.url, schema })))
    const [one, two] = opened
    const all = await Promise.all(opened.map(store => store.open(SPACE, ctx)))
    expect(all).to.deep.equal(Array.from({ length: SERVERS }, () => ({ version: 4 })))
    expect(await formatOf(schema)).to.equal(FORMAT)
    // what was there is there still: the former version uses it
    expect(await tables()).to.include.members(before)
    expect(await tables()).to.include('bus_members')

    expect(await one!.get('notes', 'note 3', ctx)).to.deep.equal({
      key: 'note 3',
      version: 2,
      value: { owner: 'anna', text: 'again' },
    })
    const page = await one!.range('notes', { index: 'by_owner', equals: ['anna'], limit: 9 }, ctx)
    expect(page.records.map(({ key, value }) => [key, Reflect.get(Object(value), 'text')])).to.deep.equal([
      ['note 1', 'ünï 1 \ud800'],
      ['note 3', 'again'],
    ])
    expect((await one!.read('lines', 'stream', { limit: 9 }, ctx)).map(({ value }) => value)).to.deep.equal([
      { n: 1 },
      'two',
      null,
    ])
    const [row] = await postgres.query(`SELECT fence::text AS fence FROM ${schema}.leases WHERE name = 'lease'`)
    const lease = await one!.acquire('lease', { holder: 'next/', ttlMs: 1_000, waitMs: 0 }, ctx)
    expect(lease.fence).to.be.above(Number(row!.fence))

    const heard: string[] = []
    const ending = new AbortController()
    const watching = (async () => {
      for await (const { key } of two!.watch('notes', { ...ctx, signal: ending.signal })) heard.push(key)
    })()
    for (let n = 0; !heard.includes(`new ${n - 1}`); n++)
      await one!.batch([{ op: 'put', collection: 'notes', key: `new ${n}`, value: { owner: 'carl' } }], {}, ctx)
    ending.abort()
    await watching
  }).timeout(60_000)

  it('are left as they are with store.migrate off, and the error says what to run', async () => {
    const schema = await restore()
    await using store = storeWith({ url: postgres.url, schema, migrate: false })
    const error = await store.start().catch((reason: unknown) => reason)
    expect(error).to.include({ code: 'STORE_UNAVAILABLE', hint: 'Run `svc store init`' })
    expect(String(error)).to.include(`the tables of svc in the schema "${schema}" have the older format 1`)
    expect(await formatOf(schema)).to.equal(1)
  })

  it('are refused when a newer version has made them, but a server that runs already goes on', async () => {
    const schema = await restore()
    await using running = storeWith({ url: postgres.url, schema })
    await running.open(SPACE, ctx)
    const write = (n: number) =>
      running.batch([{ op: 'put', collection: 'notes', key: 'during', value: { owner: 'dora', n } }], {}, ctx)
    await write(1)
    // what the next version can do: it adds a column and a table
    await postgres.query(`ALTER TABLE ${schema}.records ADD COLUMN made timestamptz NOT NULL DEFAULT now();
      CREATE TABLE ${schema}.more(id integer PRIMARY KEY); UPDATE ${schema}.meta SET value = ${FORMAT + 1} WHERE name = 'format'`)
    await write(2)
    const pids = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'svc%'`
    await postgres.query(pids) // it connects again
    await until(() => write(3).then(() => true))
    expect(await running.get('notes', 'during', ctx)).to.include({ version: 3 })

    for (const migrate of [true, false]) {
      await using later = storeWith({ url: postgres.url, schema, migrate })
      const error = await later.start().catch((reason: unknown) => reason)
      expect(codeOf(error)).to.equal('STORE_NEWER')
      expect(String(error))
        .to.include(String(FORMAT + 1))
        .and.include(String(FORMAT))
    }
    expect(await formatOf(schema)).to.equal(FORMAT + 1)
  }).timeout(60_000)

  it('report changes after a restore on a server whose transaction ids are lower', async () => {
    const schema = await restore()
    const high = 5_000_000_000
    await postgres.query(
      `UPDATE ${schema}.feed SET xid = '${high}'; UPDATE ${schema}.meta SET value = ${high} WHERE name = 'forgotten'`
    )
    await using store = storeWith({ url: postgres.url, schema })
    await store.open(SPACE, ctx)
    const ending = new AbortController()
    const changes = store.watch('notes', { ...ctx, signal: ending.signal })[Symbol.asyncIterator]()
    const first = changes.next()
    let heard = false
    void first.then(() => (heard = true)).catch(() => (heard = true))
    for (let n = 0; !heard; n++)
      await store.batch([{ op: 'put', collection: 'notes', key: 'note 1', value: { owner: 'anna', n } }], {}, ctx)
    expect((await first).value).to.include({ key: 'note 1' })
    const left = await postgres.query(`SELECT FROM ${schema}.feed WHERE xid >= '${high}'`)
    expect(left, 'changes that watchers would wait for').to.deep.equal([])
    ending.abort()
    await changes.return?.()
  }).timeout(60_000)
})
