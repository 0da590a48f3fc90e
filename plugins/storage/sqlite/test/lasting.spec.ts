import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect } from 'chai'
import { makeBackup } from '../src/backup.ts'
import { restore } from '../src/restore.ts'
import { createSqliteStore } from '../src/store.ts'
import { SPACE, temporaryFolder, ctx } from './support.ts'
import { put } from './broken-files.ts'

const { signal } = ctx
const backup = (store: string, file: string) => makeBackup(store, file, { force: false, signal })

/** A folder with a store in it that has one record of no lasting collection. */
async function place() {
  const folder = await temporaryFolder()
  const path = join(folder.path, 'svc.db')
  await using store = createSqliteStore({ path })
  await store.open(SPACE, ctx)
  await put(store, 'a', 'of a')
  return { path, file: join(folder.path, 'backup.db'), folder, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() }
}
const keysOf = async (path: string) => {
  await using store = createSqliteStore({ path })
  await store.open(SPACE, ctx)
  return (await store.range('notes', { limit: 1000 }, ctx)).records.map(record => record.key)
}

describe('what lasts, when a store in SQLite is restored', () => {
  const LASTING = { name: 'rights', version: 1, collections: { rights: { indexes: { by_at: ['at'] }, lasting: true } } }
  /** Opens the store of a file, puts these records, and answers all of the collection in the order of its index. */
  const rights = async (path: string, puts: Record<string, number> = {}, version = 1) => {
    await using store = createSqliteStore({ path })
    await store.open({ ...LASTING, version }, ctx)
    for (const [key, at] of Object.entries(puts))
      await store.batch([{ op: 'put', collection: 'rights', key, value: { at } }], {}, ctx)
    const { records } = await store.range('rights', { index: 'by_at', limit: 1000 }, ctx)
    return records.map(({ key, value }) => `${key} ${(value as { at: number }).at}`)
  }

  it('is as the replaced store has it, and brings back what that one never had', async () => {
    await using at = await place()
    const other = join(at.folder.path, 'other.db')
    await rights(other, { only: 5, shared: 1 })
    await backup(other, at.file)
    await rights(at.path, { shared: 9, later: 3 })
    const { unsure } = await restore(at.file, at.path, signal)
    expect(await rights(at.path)).to.deep.equal(['later 3', 'only 5', 'shared 9'])
    expect(unsure).to.deep.equal([])
    expect(await keysOf(at.path), 'the rest is the backup').to.deep.equal([])
  })

  it('is as the replaced store has it where the backup is older than all of it', async () => {
    await using at = await place()
    await backup(at.path, at.file)
    await rights(at.path, { later: 3 })
    expect((await restore(at.file, at.path, signal)).unsure).to.deep.equal([])
    expect(await rights(at.path)).to.deep.equal(['later 3'])
  })

  for (const [what, spoil] of [
    ['is gone', (path: string) => rmSync(path)],
    ['is damaged', (path: string) => writeFileSync(path, readFileSync(path).fill(0xab, 4096))],
    [
      'has it in another form',
      (path: string) => {
        using raw = new DatabaseSync(path)
        raw.exec("UPDATE spaces SET version = 2 WHERE name = 'rights'")
      },
    ],
  ] as const)
    it(`keeps the records of the backup, and reports their number, if the former store ${what}`, async () => {
      await using at = await place()
      await rights(at.path, { one: 1, two: 2 })
      await backup(at.path, at.file)
      await rights(at.path, { one: 7 })
      spoil(at.path)
      const { unsure } = await restore(at.file, at.path, signal)
      expect(unsure).to.deep.equal([{ collection: 'rights', records: 2 }])
      expect(await rights(at.path)).to.deep.equal(['one 1', 'two 2'])
    })
})
