import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import { codeOf } from '@svc/core'
import type { Store, StoreOp } from '@svc/core/contracts'
import { expect } from 'chai'
import { createSqliteStore } from '../src/store.ts'
import { SPACE, temporaryFolder, use } from './support.ts'

const put = (key: string, n: number, more: object = {}): StoreOp => ({
  op: 'put',
  collection: 'notes',
  key,
  value: { n },
  ...more,
})
const append = (id: string, ...values: number[]) => ({ op: 'append', log: 'lines', id, values }) as const
const write = (store: Store, ...ops: StoreOp[]) => store.batch(ops, {}, use)
/** What the index has, in its order. */
const places = async (store: Store, index = 'by_n') =>
  (await store.range('notes', { index, limit: 100 }, use)).records.map(({ key, value }) => [key, (value as { n: number }).n])

describe('what the writer of the store in SQLite keeps in mind', () => {
  it('is not where a record was that another process has written since', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    await using one = createSqliteStore({ path })
    await using other = createSqliteStore({ path })
    for (const store of [one, other]) await store.open(SPACE, use)
    await write(one, put('a', 1), put('b', 1))
    await write(other, put('a', 2), { op: 'delete', collection: 'notes', key: 'b' })
    await write(one, put('a', 3), put('b', 3, { ifVersion: 0 }))
    expect(await places(one)).to.deep.equal([
      ['a', 3],
      ['b', 3],
    ])
    await write(other, { op: 'delete', collection: 'notes', key: 'a' }, { op: 'delete', collection: 'notes', key: 'b' })
    expect(await places(one)).to.deep.equal([])
  })

  it('is not what a refused batch has undone', async () => {
    await using folder = await temporaryFolder()
    await using store = createSqliteStore({ path: join(folder.path, 'svc.db') })
    await store.open(SPACE, use)
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
    await store.open(SPACE, use)
    await write(store, put('a', 1))
    const { notes, ...others } = SPACE.collections!
    await store.open(
      { ...SPACE, collections: { ...others, notes: { indexes: { ...notes!.indexes, by_none: ['none', 'n'] } } } },
      use
    )
    await write(store, put('a', 2))
    expect(await places(store, 'by_none')).to.deep.equal([['a', 2]])
  })
})

describe('a store file of the first format', () => {
  it('is brought to this one when it is written to, and keeps what is in its logs', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    {
      await using store = createSqliteStore({ path })
      await store.open(SPACE, use)
      await write(store, append('a', 1, 2, 3), append('b', 9))
    }
    asFirstFormat(path)
    await using store = createSqliteStore({ path })
    await store.open(SPACE, use)
    const read = async (id: string) => (await store.read('lines', id, { limit: 9 }, use)).map(({ seq, value }) => [seq, value])
    expect(await read('a')).to.deep.equal([
      [1, 1],
      [2, 2],
      [3, 3],
    ])
    const { results } = await write(store, { ...append('a', 4), ifLength: 3 }, append('b', 10, 11), append('c', 0))
    expect(results).to.deep.equal([4, 3, 1])
    expect((await read('b')).map(([, value]) => value)).to.deep.equal([9, 10, 11])
    using raw = new DatabaseSync(path, { readOnly: true })
    expect(raw.prepare('PRAGMA user_version').get()).to.deep.include({ user_version: 2 })
  })
})

/** Makes of a file what the first svc would have made: each stream says how long it is. */
function asFirstFormat(path: string): void {
  using raw = new DatabaseSync(path)
  raw.exec(`
    ALTER TABLE streams ADD COLUMN length INTEGER NOT NULL DEFAULT 0;
    UPDATE streams SET length = (SELECT count(*) FROM entries WHERE entries.id >> 32 = streams.id);
    PRAGMA user_version = 1`)
}
