import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { SvcError } from '@svc/core'
import { expect } from 'chai'
import { makeBackup } from '../src/backup.ts'
import { inspect } from '../src/inspect.ts'
import { restore } from '../src/restore.ts'
import { createSqliteStore } from '../src/store.ts'
import { SPACE, temporaryFolder, ctx } from './support.ts'
import { errorOf, lock, put } from './broken-files.ts'

const { signal } = ctx
const backup = (store: string, file: string, force = false) => makeBackup(store, file, { force, signal })
const fails = async (work: Promise<unknown>, code: string, message: RegExp): Promise<SvcError> => {
  const error = await errorOf(work)
  expect(error.code, error.stack).to.equal(code)
  expect(error.message).to.match(message)
  expect(error.hint).to.be.a('string')
  return error
}

/** A folder with a store in it that has these records. */
async function place(...keys: string[]) {
  const folder = await temporaryFolder()
  const path = join(folder.path, 'svc.db')
  await using store = createSqliteStore({ path })
  await store.open(SPACE, ctx)
  for (const key of keys) await put(store, key, `of ${key}`)
  return { path, file: join(folder.path, 'backup.db'), folder, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() }
}
const keysOf = async (path: string) => {
  await using store = createSqliteStore({ path })
  await store.open(SPACE, ctx)
  return (await store.range('notes', { limit: 1000 }, ctx)).records.map(record => record.key)
}

describe('a backup of the store in SQLite', () => {
  it('has all that was acknowledged before, whole batches only, while others write', async () => {
    await using at = await place()
    await using store = createSqliteStore({ path: at.path })
    await store.open(SPACE, ctx)
    let written = 0
    let done = false
    const write = async (client: number) => {
      for (let n = 0; !done; n++, written++)
        await store.batch(
          [
            { op: 'put', collection: 'notes', key: `${client}-${n}`, value: n },
            { op: 'append', log: 'lines', id: `${client}-${n}`, values: [n, n] },
          ],
          {},
          ctx
        )
    }
    const clients = [0, 1, 2, 3].map(write)
    while (written < 200) await store.probe(ctx)
    const before = (await store.range('notes', { limit: 1000 }, ctx)).records
    const { findings } = await backup(at.path, at.file)
    done = true
    await Promise.all(clients)
    expect(findings.records).to.be.at.least(before.length)
    expect(findings.entries).to.equal(findings.records * 2)
    const keys = new Set(await keysOf(at.file))
    expect(before.filter(({ key }) => !keys.has(key))).to.deep.equal([])
  })

  it('is for its owner only, one file, and leaves nothing else behind', async () => {
    await using at = await place('a')
    await backup(at.path, at.file)
    expect(statSync(at.file).mode & 0o777).to.equal(0o600)
    expect(readdirSync(at.folder.path).filter(name => !name.startsWith('svc.db'))).to.deep.equal(['backup.db'])
  })

  it('has nothing of what was deleted', async () => {
    await using at = await place('secret', 'kept')
    {
      await using store = createSqliteStore({ path: at.path })
      await store.open(SPACE, ctx)
      await store.batch([{ op: 'delete', collection: 'notes', key: 'secret' }], {}, ctx)
    }
    await backup(at.path, at.file)
    expect(readFileSync(at.file).includes('of secret')).to.equal(false)
    expect(readFileSync(at.file).includes('of kept')).to.equal(true)
  })

  it('writes over another file only by force, and never over the store', async () => {
    await using at = await place('a')
    writeFileSync(at.file, 'mine')
    await fails(backup(at.path, at.file), 'BACKUP_EXISTS', /already/)
    expect(readFileSync(at.file, 'utf8')).to.equal('mine')
    await fails(backup(at.path, at.path, true), 'BACKUP_INVALID', /the store itself/)
    await fails(backup(at.path, at.folder.path, true), 'BACKUP_EXISTS', /already/)
    await backup(at.path, at.file, true)
    expect(await keysOf(at.file)).to.deep.equal(['a'])
  })

  it('says why it cannot be made, and leaves what was there', async () => {
    await using at = await place('a')
    await fails(backup(join(at.folder.path, 'none.db'), at.file), 'STORE_MISSING', /does not exist yet/)
    await fails(
      backup(at.path, join(at.folder.path, 'none', 'b.db')),
      'BACKUP_FAILED',
      /no such file or directory, open '.*\/none\/b\.db'$/
    )
    const bytes = readFileSync(at.path)
    writeFileSync(at.path, bytes.fill(0xab, 4096))
    writeFileSync(at.file, 'the last good one')
    const damaged = await fails(
      backup(at.path, at.file, true),
      'BACKUP_FAILED',
      /^cannot make the backup: svc cannot read the store: .*damaged/
    )
    expect(damaged.hint).to.contain('Restore an older backup')
    expect(readFileSync(at.file, 'utf8')).to.equal('the last good one')
    expect(readdirSync(at.folder.path).filter(name => name.includes('partial'))).to.deep.equal([])
  })

  it('may have the longest name that a file can have; of a longer one, and of a folder with one, it says so', async () => {
    await using at = await place('a')
    const named = (length: number) => join(at.folder.path, 'b'.repeat(length))
    await backup(at.path, named(255))
    expect((await inspect(named(255), signal)).records).to.equal(1)
    for (const file of [named(256), join(named(256), 'b.db'), join(at.folder.path, ...Array<string>(50).fill('b'.repeat(100)))])
      expect((await fails(backup(at.path, file), 'BACKUP_FAILED', /name too long/)).hint).to.contain('shorter name')
    expect(readdirSync(at.folder.path).filter(name => !name.startsWith('svc.db'))).to.deep.equal(['b'.repeat(255)])
  })
})

describe('the restore of a store in SQLite', () => {
  it('puts the backup in the place of the store and keeps the former one beside it', async () => {
    await using at = await place('a')
    await backup(at.path, at.file)
    {
      await using store = createSqliteStore({ path: at.path })
      await store.open(SPACE, ctx)
      await put(store, 'later', 1)
      await store.acquire('l', { holder: 'dead', ttlMs: 3_600_000, waitMs: 0 }, ctx)
    }
    const { kept } = await restore(at.file, at.path, signal)
    expect(kept).to.match(/svc\.db\.bak-\d{4}-\d\d-\d\dT[\d-]+Z$/)
    expect(await keysOf(at.path)).to.deep.equal(['a'])
    expect(await keysOf(kept!)).to.deep.equal(['a', 'later'])
    expect(statSync(at.path).mode & 0o777).to.equal(0o600)
    expect(existsSync(at.file)).to.equal(true)
  })

  it('releases the leases in the backup', async () => {
    await using at = await place('a')
    {
      await using store = createSqliteStore({ path: at.path })
      await store.acquire('l', { holder: 'dead', ttlMs: 3_600_000, waitMs: 0 }, ctx)
      await backup(at.path, at.file)
    }
    await restore(at.file, at.path, signal)
    await using store = createSqliteStore({ path: at.path })
    await store.acquire('l', { holder: 'new', ttlMs: 1000, waitMs: 0 }, ctx)
  })

  it('makes a store where there was none', async () => {
    await using at = await place('a')
    await backup(at.path, at.file)
    const path = join(at.folder.path, 'fresh', 'svc.db')
    expect((await restore(at.file, path, signal)).kept).to.equal(undefined)
    expect(await keysOf(path)).to.deep.equal(['a'])
    expect(statSync(join(at.folder.path, 'fresh')).mode & 0o777).to.equal(0o700)
  })

  it('takes the place of a damaged store, whose file and log are kept', async () => {
    await using at = await place('a')
    await backup(at.path, at.file)
    writeFileSync(at.path, 'a letter')
    writeFileSync(`${at.path}-wal`, 'its end')
    const { kept } = await restore(at.file, at.path, signal)
    expect(await keysOf(at.path)).to.deep.equal(['a'])
    expect(readFileSync(kept!, 'utf8') + readFileSync(`${kept!}-wal`, 'utf8')).to.equal('a letterits end')
  })

  it('takes a raw copy with its log beside it', async () => {
    await using at = await place('a')
    mkdirSync(join(at.folder.path, 'raw'))
    const copy = join(at.folder.path, 'raw', 'copy.db')
    {
      await using store = createSqliteStore({ path: at.path })
      await store.open(SPACE, ctx)
      await put(store, 'in the log', 1)
      for (const side of ['', '-wal']) copyFileSync(at.path + side, copy + side)
    }
    await restore(copy, at.path, signal)
    expect(await keysOf(at.path)).to.deep.equal(['a', 'in the log'])
    expect((await inspect(at.path)).problem).to.equal(undefined)
  })

  it('refuses what is no backup, and leaves the store alone', async () => {
    await using at = await place('a')
    await fails(restore(at.file, at.path, signal), 'BACKUP_INVALID', /does not exist/)
    await fails(restore(at.path, at.path, signal), 'BACKUP_INVALID', /the store itself/)
    await fails(restore(at.folder.path, at.path, signal), 'BACKUP_INVALID', /does not exist/)
    for (const [content, reason] of [
      ['a letter, '.repeat(200), /^backup\.db is not a database$/],
      ['', /it contains no store/],
    ] as const) {
      writeFileSync(at.file, content)
      await fails(restore(at.file, at.path, signal), 'BACKUP_INVALID', reason)
    }
    await backup(at.path, at.file, true)
    {
      using raw = new DatabaseSync(at.file)
      raw.exec('PRAGMA user_version = 99')
    }
    await fails(restore(at.file, at.path, signal), 'STORE_NEWER', /format 99, but this program supports only format 4/)
    await backup(at.path, at.file, true)
    writeFileSync(at.file, readFileSync(at.file).fill(0xab, 12_288, 40_960))
    await fails(restore(at.file, at.path, signal), 'BACKUP_INVALID', /damaged/)
    expect(await keysOf(at.path)).to.deep.equal(['a'])
    expect(readdirSync(at.folder.path).filter(name => /bak|partial/.test(name))).to.deep.equal([])
  })

  it('says of a place where it cannot be made what the person called it', async () => {
    await using at = await place('a')
    await backup(at.path, at.file)
    // an existing folder in which no file can be created
    await fails(restore(at.file, '/proc/svc.db', signal), 'RESTORE_FAILED', /'\/proc\/svc\.db'$/)
  })

  it('takes a backup of the longest name; of a store whose name leaves no room beside it says so, and leaves it alone', async () => {
    await using at = await place('a')
    const long = join(at.folder.path, 'b'.repeat(255))
    await backup(at.path, long)
    const named = (length: number) => join(at.folder.path, 's'.repeat(length))
    await restore(long, named(200), signal)
    expect(await keysOf(named(200))).to.deep.equal(['a'])
    await restore(long, named(240), signal)
    for (const store of [named(240), named(300)])
      expect((await fails(restore(long, store, signal), 'RESTORE_FAILED', /name too long/)).hint).to.contain('store.path')
    expect(await keysOf(named(240))).to.deep.equal(['a'])
    expect(readdirSync(at.folder.path).filter(name => name.includes('partial'))).to.deep.equal([])
  })

  it('fails while another program has the store open', async () => {
    await using at = await place('a')
    await backup(at.path, at.file)
    {
      await using store = createSqliteStore({ path: at.path })
      await store.open(SPACE, ctx)
      await fails(restore(at.file, at.path, signal), 'STORE_IN_USE', /has the store open/)
      await put(store, 'b', 1)
    }
    {
      using _ = await lock(at.path)
      await fails(restore(at.file, at.path, signal), 'STORE_IN_USE', /has the store open/)
    }
    expect(await keysOf(at.path)).to.deep.equal(['a', 'b'])
  })
})
