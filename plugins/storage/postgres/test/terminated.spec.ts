import { codeOf, systemContext } from '@svc/core'
import type { SqlNotice } from '@svc/core/contracts'
import { type Postgres, startPostgres } from '@svc/testing/engines'
import { expect } from 'chai'
import { describeWith } from '../../../../test/support/needs.ts'
import type { PostgresStore } from '../src/store.ts'
import { audit, outcomeOf, put, SPACE, until, writeMany } from './load.ts'
import { ctx, newSchema, storeWith } from './support.ts'

const ROUNDS = 3

/** An operator, or a pooler, ends a session with pg_terminate_backend: its client gets 57P01 (admin_shutdown). */
describeWith('postgres', 'the store in PostgreSQL when its sessions are terminated (57P01)', () => {
  const stack = new AsyncDisposableStack()
  let postgres: Postgres
  before(async () => (postgres = stack.use(await startPostgres({ settings: { max_connections: 60 } }))))
  after(() => stack.disposeAsync())

  const sessionsOf = async (role: string) =>
    (
      await postgres.query(`SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'svc%' AND application_name LIKE $1`, [
        `% ${role}`,
      ])
    ).map(({ pid }) => Number(pid))
  const terminate = async (pids: readonly number[]) =>
    void (await postgres.query('SELECT pg_terminate_backend(pid) FROM unnest($1::integer[]) AS u(pid)', [pids]))
  /** Uses all connections of a store. */
  async function useAll(store: PostgresStore, round: number): Promise<void> {
    await store.batch([{ op: 'put', collection: 'notes', key: 'round', value: round }], {}, ctx)
    await Promise.all(Array.from({ length: 4 }, () => store.get('notes', 'round', ctx)))
    await until(() => counted(store))
    await until(() => store.runApart({ text: 'SELECT 1' }, ctx).then(Boolean, unsure))
  }
  const counted = (store: PostgresStore) => store.count('key', [{ limit: 1_000_000, ms: 60_000 }], ctx).then(Boolean, unsure)
  /** A count and a statement of another plugin cannot be repeated blindly. */
  const unsure = (error: unknown) => {
    if (codeOf(error) === 'STORE_UNSURE') return false
    throw error
  }

  it('replaces each of them under load: every batch is done once, every read is answered, and no watch ends', async () => {
    await using store = storeWith({ url: postgres.url, schema: newSchema() })
    await store.open(SPACE, ctx)
    const ending = new AbortController()
    const changes = store.watch('notes', { ...ctx, signal: ending.signal })[Symbol.asyncIterator]()
    let heard = 0
    const watching = (async () => {
      for (let next = await changes.next(); !next.done; next = await changes.next()) heard = Number(next.value.value)
    })()
    const notices: SqlNotice[] = []
    const listening = (async () => {
      for await (const notice of store.listen(['svc_a'], systemContext(ending.signal))) notices.push(notice)
    })()
    await using load = writeMany(store, 't')
    const reads = { isOver: false, count: 0 }
    const reading = (async () => {
      while (!reads.isOver) {
        await store.get('notes', 'round', ctx)
        reads.count += 1
      }
    })()
    let round = 0
    await useAll(store, round)
    for (const role of ['write', 'read', 'count', 'listen', 'queue'])
      for (let times = 0; times < ROUNDS; times++) {
        const [before, losses] = [await sessionsOf(role), notices.filter(({ channel }) => channel === undefined).length]
        expect(before, role).not.to.deep.equal([])
        await terminate(before)
        const [written, read] = [load.outcomes.size, reads.count]
        await until(() => load.outcomes.size > written + 20 && reads.count > read + 20)
        await useAll(store, ++round)
        await until(() => heard === round)
        // notices can be lost while the connection is replaced: readers get an empty one
        if (role === 'listen') await until(() => notices.filter(({ channel }) => channel === undefined).length > losses)
        await until(async () => (await sessionsOf(role)).length > 0)
        expect(await sessionsOf(role), `${role} was replaced`).not.to.include.members(before)
      }
    reads.isOver = true
    await Promise.all([reading, load.end()])
    expect(await audit(store, load.outcomes)).to.deep.equal({ done: load.outcomes.size })
    ending.abort()
    await Promise.all([watching, listening])
  }).timeout(120_000)

  it('says that the end of a statement is unknown, with 57P01 as its cause, and repeats a batch that was not committed', async () => {
    const schema = newSchema()
    await using store = storeWith({ url: postgres.url, schema })
    await store.open(SPACE, ctx)
    const sleeping = store.runApart({ text: 'SELECT pg_sleep(30)' }, ctx).catch((error: unknown) => error)
    const asleep = `SELECT pid FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(30)' AND pid <> pg_backend_pid()`
    let pids: number[] = []
    await until(async () => (pids = (await postgres.query(asleep)).map(({ pid }) => Number(pid))).length === 1)
    await terminate(pids)
    const error = await sleeping
    expect(error).to.include({ code: 'STORE_UNSURE' })
    expect((error as Error).cause).to.include({ code: '57P01' })

    await store.batch([put('held', 1)], {}, ctx)
    const holding = postgres.query(`BEGIN; LOCK TABLE "${schema}".records; SELECT pg_sleep(30)`).catch(() => {})
    const blocked = `SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name LIKE '% write'`
    const held = `SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep'`
    await until(async () => (pids = (await postgres.query(held)).map(({ pid }) => Number(pid))).length === 1)
    const [holder] = pids
    const outcome = outcomeOf(store, [put('held', 2), { op: 'append', log: 'lines', id: 'held', values: [2] }])
    await until(async () => (pids = (await postgres.query(blocked)).map(({ pid }) => Number(pid))).length === 1)
    await terminate(pids)
    await terminate([holder!])
    await holding
    expect(await outcome).to.equal('done')
    expect(await store.get('plain', 'held', ctx)).to.include({ version: 2, value: 2 })
    expect(await store.read('lines', 'held', { limit: 9 }, ctx)).to.have.length(1)
  }).timeout(60_000)
})
