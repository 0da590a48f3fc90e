import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout } from 'node:timers/promises'
import { expect } from 'chai'
import { createSqliteStore, type SqliteStore } from '../src/store.ts'
import { SPACE, temporaryFolder, use } from './support.ts'

const HOUR = 3_600_000
const hit = async (store: SqliteStore, key: string, ms = HOUR) =>
  (await store.count(key, [{ ms, limit: 1_000_000 }], use)).windows[0]!
const hitAll = async (store: SqliteStore, name: string, count: number, ms?: number) => {
  for (let at = 0; at < count; at++) await hit(store, `${name}${at}`, ms)
}

describe('what the store in SQLite counts', () => {
  it('is bounded: the keys that began first are forgotten', async () => {
    await using folder = await temporaryFolder()
    await using store = createSqliteStore({ path: join(folder.path, 'svc.db'), mostCounts: 100 })
    await hitAll(store, 'k', 100)
    await hit(store, 'k0')
    await hitAll(store, 'more', 10)
    expect((await hit(store, 'k10')).count).to.equal(2)
    expect((await hit(store, 'k0')).count).to.equal(1)
  })

  it('gives up what is over before anything else', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    await using store = createSqliteStore({ path, mostCounts: 100 })
    await hit(store, 'kept')
    await hitAll(store, 'short', 90, 1)
    const { endsAt } = await hit(store, 'short', 1)
    while (Date.now() <= endsAt) await setTimeout(1)
    await hitAll(store, 'long', 60)
    expect((await hit(store, 'kept')).count).to.equal(2)
    using raw = new DatabaseSync(path, { readOnly: true })
    expect(raw.prepare('SELECT count(*) AS n FROM counts').get()?.n).to.equal(61)
    expect(raw.prepare("SELECT value AS n FROM counters WHERE name = 'counts'").get()?.n).to.equal(61)
  })

  it('is added to a file of a program that did not count yet', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    {
      await using store = createSqliteStore({ path })
      await store.open(SPACE, use)
    }
    {
      using raw = new DatabaseSync(path)
      raw.exec("DROP TABLE counts; DELETE FROM counters WHERE name = 'counts'")
    }
    await using store = createSqliteStore({ path })
    expect(await store.open(SPACE, use)).to.deep.equal({ version: 1 })
    expect((await hit(store, 'k')).count).to.equal(1)
    expect((await hit(store, 'k')).count).to.equal(2)
  })
})
