import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Json, Space } from '@svc/core/contracts'
import { expect } from 'chai'
import { makeBackup } from '../src/backup.ts'
import { createSqliteStore, type SqliteStore } from '../src/store.ts'
import { ctx, temporaryFolder } from './support.ts'

const PAGES = { fields: ['title'] }
const space = (collection: object): Space => ({ name: 'texts', version: 1, collections: { pages: collection } })
const put = (store: SqliteStore, key: string, title: Json) =>
  store.batch([{ op: 'put', collection: 'pages', key, value: { title } }], {}, ctx)
const keys = async (store: SqliteStore, query: string) =>
  (await store.search('pages', { index: 'content', query, limit: 9 }, ctx)).hits.map(({ record }) => record.key)

async function place() {
  const folder = await temporaryFolder()
  return {
    path: join(folder.path, 'svc.db'),
    file: join(folder.path, 'backup.db'),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  }
}
const formatOf = (path: string) => {
  using raw = new DatabaseSync(path)
  return raw.prepare('PRAGMA user_version').get()!.user_version
}

describe('a full-text index in SQLite', () => {
  it('follows writes of a process that does not declare it', async () => {
    await using at = await place()
    await using store = createSqliteStore({ path: at.path })
    await using other = createSqliteStore({ path: at.path })
    await other.open(space({}), ctx)
    await put(other, 'before', 'first words')
    await store.open(space({ text: { content: PAGES } }), ctx)
    expect(await keys(store, 'words')).to.deep.equal(['before'])
    await put(other, 'after', 'second words')
    await put(other, 'before', 'changed')
    expect(await keys(store, 'words')).to.deep.equal(['after'])
    await other.batch([{ op: 'delete', collection: 'pages', key: 'after' }], {}, ctx)
    expect(await keys(store, 'words')).to.deep.equal([])
  })

  it('makes the file one that an older svc refuses, and only then', async () => {
    await using at = await place()
    {
      await using store = createSqliteStore({ path: at.path })
      await store.open(space({}), ctx)
    }
    expect(formatOf(at.path)).to.equal(3)
    {
      await using store = createSqliteStore({ path: at.path })
      await store.open(space({ text: { content: PAGES } }), ctx)
    }
    expect(formatOf(at.path)).to.equal(4)
    await using store = createSqliteStore({ path: at.path })
    await store.open(space({ text: { content: PAGES } }), ctx)
    await put(store, 'a', 'found')
    expect(await keys(store, 'found')).to.deep.equal(['a'])
  })

  it('is in a backup, without the words of deleted records', async () => {
    await using at = await place()
    {
      await using store = createSqliteStore({ path: at.path })
      await store.open(space({ text: { content: PAGES } }), ctx)
      await put(store, 'a', 'kept words')
      await put(store, 'b', 'confidential')
      await store.batch([{ op: 'delete', collection: 'pages', key: 'b' }], {}, ctx)
    }
    await makeBackup(at.path, at.file, { force: false, signal: ctx.signal })
    {
      await using store = createSqliteStore({ path: at.file })
      await store.open(space({ text: { content: PAGES } }), ctx)
      expect(await keys(store, 'kept')).to.deep.equal(['a'])
    }
    using raw = new DatabaseSync(at.file)
    raw.exec('CREATE VIRTUAL TABLE temp.words USING fts5vocab(main, text_1, row)')
    expect(
      raw
        .prepare('SELECT term FROM temp.words')
        .all()
        .map(({ term }) => term)
    )
      .to.include('kept')
      .and.not.include('confidential')
  })

  it('is gone with the declaration, when the space has been migrated', async () => {
    await using at = await place()
    await using store = createSqliteStore({ path: at.path })
    await store.open(space({ text: { content: PAGES } }), ctx)
    await put(store, 'a', 'words')
    await store.open({ ...space({}), version: 2 }, ctx)
    await store.batch([{ op: 'migrated', space: 'texts', version: 2 }], {}, ctx)
    await put(store, 'a', 'more words')
    using raw = new DatabaseSync(at.path)
    expect(raw.prepare("SELECT name FROM sqlite_schema WHERE name LIKE 'text\\_%' ESCAPE '\\'").all()).to.deep.equal([])
  })

  it('answers searches of thousands of matches at once', async () => {
    await using at = await place()
    await using store = createSqliteStore({ path: at.path })
    await store.open(space({ text: { content: PAGES } }), ctx)
    for (let batch = 0; batch < 12; batch++)
      await store.batch(
        Array.from({ length: 1000 }, (_, i) => ({
          op: 'put' as const,
          collection: 'pages',
          key: `${batch}-${i}`,
          value: { title: `common word${i} and common text` },
        })),
        {},
        ctx
      )
    const began = performance.now()
    for (const query of ['common', 'common text', '"and common"', 'wor*', 'common -word7'])
      expect(await keys(store, query), query).to.have.length(9)
    expect(performance.now() - began).to.be.below(2000)
  })
})
