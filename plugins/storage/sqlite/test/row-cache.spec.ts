import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import { codeOf } from '@svc/core'
import type { Json, Store, StoreOp } from '@svc/core/contracts'
import { expect } from 'chai'
import { inspect } from '../src/inspect.ts'
import { createSqliteStore } from '../src/store.ts'
import { SPACE, temporaryFolder, ctx } from './support.ts'

const put = (key: string, n: number, more: object = {}): StoreOp => ({
  op: 'put',
  collection: 'notes',
  key,
  value: { n },
  ...more,
})
const append = (id: string, ...values: number[]) => ({ op: 'append', log: 'lines', id, values }) as const
const write = (store: Store, ...ops: StoreOp[]) => store.batch(ops, {}, ctx)
/** What the index has, in its order. */
const places = async (store: Store, index = 'by_n') =>
  (await store.range('notes', { index, limit: 100 }, ctx)).records.map(({ key, value }) => [key, (value as { n: number }).n])

describe('what the writer of the store in SQLite keeps in mind', () => {
  it('is not where a record was that another process has written since', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    await using sqliteStore = createSqliteStore({ path })
    await using other = createSqliteStore({ path })
    for (const store of [sqliteStore, other]) await store.open(SPACE, ctx)
    await write(sqliteStore, put('a', 1), put('b', 1))
    await write(other, put('a', 2), { op: 'delete', collection: 'notes', key: 'b' })
    await write(sqliteStore, put('a', 3), put('b', 3, { ifVersion: 0 }))
    expect(await places(sqliteStore)).to.deep.equal([
      ['a', 3],
      ['b', 3],
    ])
    await write(other, { op: 'delete', collection: 'notes', key: 'a' }, { op: 'delete', collection: 'notes', key: 'b' })
    expect(await places(sqliteStore)).to.deep.equal([])
  })

  it('is not what a refused batch has undone', async () => {
    await using folder = await temporaryFolder()
    await using store = createSqliteStore({ path: join(folder.path, 'svc.db') })
    await store.open(SPACE, ctx)
    await write(store, put('a', 1))
    const refused = await write(store, put('a', 2), put('b', 2), put('c', 2, { ifVersion: 7 })).catch(codeOf)
    expect(refused).to.equal('STORE_CONFLICT')
    const again = await write(store, put('a', 3, { ifVersion: 1 }), put('b', 3, { ifVersion: 0 }))
    expect(again.results).to.deep.equal([2, 1])
    expect(await places(store)).to.deep.equal([
      ['a', 3],
      ['b', 3],
    ])
  })

  it('has a new index put records there that were written without it', async () => {
    await using folder = await temporaryFolder()
    await using store = createSqliteStore({ path: join(folder.path, 'svc.db') })
    await store.open(SPACE, ctx)
    await write(store, put('a', 1))
    const { notes, ...others } = SPACE.collections!
    await store.open(
      { ...SPACE, collections: { ...others, notes: { indexes: { ...notes!.indexes, by_none: ['none', 'n'] } } } },
      ctx
    )
    await write(store, put('a', 2))
    expect(await places(store, 'by_none')).to.deep.equal([['a', 2]])
  })
})

for (const format of [1, 2] as const)
  describe(`a store file of format ${format}`, () => {
    it('is brought to this one when it is written to, and keeps what is in its logs', async () => {
      await using folder = await temporaryFolder()
      const path = join(folder.path, 'svc.db')
      {
        await using store = createSqliteStore({ path })
        await store.open(SPACE, ctx)
        for (const n of [1, 2, 3]) await write(store, append('a', n))
        await write(store, append('b', 9))
      }
      asFormat(format, path)
      await using store = createSqliteStore({ path })
      await store.open(SPACE, ctx)
      const read = async (id: string) => (await store.read('lines', id, { limit: 9 }, ctx)).map(({ seq, value }) => [seq, value])
      expect(await read('a')).to.deep.equal([
        [1, 1],
        [2, 2],
        [3, 3],
      ])
      const { results } = await write(store, { ...append('a', 4), ifLength: 3 }, append('b', 10, 11), append('c', 0))
      expect(results).to.deep.equal([4, 3, 1])
      expect((await read('b')).map(([, value]) => value)).to.deep.equal([9, 10, 11])
      using raw = new DatabaseSync(path, { readOnly: true })
      expect(raw.prepare('PRAGMA user_version').get()).to.deep.include({ user_version: 3 })
      // an older svc that has it open fails, and does not take several entries for one
      expect(() => raw.prepare('SELECT id FROM entries')).to.throw(/no such column/)
    })
  })

describe('entries that are appended together', () => {
  it('are read one by one, from wherever it is asked, in this process and in another', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    await using store = createSqliteStore({ path })
    await store.open(SPACE, ctx)
    const values = [[1], ' [2]', 'x'.repeat(20_000), [], 5, { six: 6 }, null]
    const more = [['eight', 9], 10]
    await store.batch([{ op: 'append', log: 'lines', id: 'a', values }], {}, ctx)
    await write(store, append('b', 1, 2))
    expect(await store.read('lines', 'a', { limit: 9 }, ctx)).to.deep.equal(asEntries(values))
    await store.batch([{ op: 'append', log: 'lines', id: 'a', values: more, ifLength: 7 }], {}, ctx)
    await using other = createSqliteStore({ path })
    await other.open(SPACE, ctx)
    const all = asEntries([...values, ...more])
    for (const item of [store, other])
      for (let from = 1; from <= all.length; from++) {
        expect(await item.read('lines', 'a', { from, limit: 2 }, ctx)).to.deep.equal(all.slice(from - 1, from + 1))
        const back = await item.read('lines', 'a', { from, reverse: true, limit: 3 }, ctx)
        expect(back).to.deep.equal(all.slice(Math.max(0, from - 3), from).toReversed())
      }
    await store.batch([{ op: 'append', log: 'lines', id: 'c', values: [[1, 2]] }], {}, ctx)
    for (const item of [store, other]) expect(await item.read('lines', 'c', { limit: 9 }, ctx)).to.deep.equal(asEntries([[1, 2]]))
    const { entries } = await inspect(path)
    expect(entries).to.equal(all.length + 3)
  })
})

const asEntries = (values: readonly Json[]) => values.map((value, at) => ({ seq: at + 1, value }))

/** Makes of a file what an older svc would have made: of each entry a row, known by another name; in the first format each stream says how long it is. */
function asFormat(format: 1 | 2, path: string): void {
  using raw = new DatabaseSync(path)
  raw.exec('ALTER TABLE entries RENAME COLUMN last TO id')
  if (format === 1)
    raw.exec(`
      ALTER TABLE streams ADD COLUMN length INTEGER NOT NULL DEFAULT 0;
      UPDATE streams SET length = (SELECT count(*) FROM entries WHERE entries.id >> 32 = streams.id)`)
  raw.exec(`PRAGMA user_version = ${format}`)
}
