import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Store } from '@svc/core/contracts'
import { expect } from 'chai'
import { createCheck } from '../src/check.ts'
import { createSqliteStore } from '../src/store.ts'
import { PROBED, SPACE, temporaryFolder, ctx } from './support.ts'
import { errorOf, put, removeDisk, servant, smallDisk, unavailable } from './broken-files.ts'
import { skipBecause } from '../../../../test/support/needs.ts'

describe('the store in SQLite, with a broken file', () => {
  it('makes the file and its folder for its owner only', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'home', 'svc.db')
    await using store = createSqliteStore({ path })
    await store.open(SPACE, ctx)
    expect(statSync(join(folder.path, 'home')).mode & 0o777).to.equal(0o700)
    for (const name of readdirSync(join(folder.path, 'home')))
      expect(statSync(join(folder.path, 'home', name)).mode & 0o777, name).to.equal(0o600)
  })

  it('refuses a file of a newer format and says what to do', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    {
      await using store = createSqliteStore({ path })
      await store.open(SPACE, ctx)
    }
    using raw = new DatabaseSync(path)
    raw.exec('PRAGMA user_version = 5')
    await using store = createSqliteStore({ path })
    const error = await errorOf(store.open(SPACE, ctx))
    expect(error).to.include({ code: 'STORE_NEWER' })
    expect(error.details).to.deep.equal({ stored: 5, known: 4 })
    expect(error.hint).to.match(/Update svc/)
    raw.exec('PRAGMA user_version = 3')
    expect(await store.open(SPACE, ctx)).to.deep.equal({ version: 1 })
  })

  it('leaves a database of another program alone', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    using raw = new DatabaseSync(path)
    raw.exec('CREATE TABLE theirs(a)')
    await using store = createSqliteStore({ path })
    await unavailable(store.open(SPACE, ctx), folder.path, /another program/)
    expect(raw.prepare('SELECT count(*) AS n FROM sqlite_schema').get()?.n).to.equal(1)
  })

  it('refuses a file that is not a database, and works once it is fixed', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    writeFileSync(path, 'this is a letter, not a database. '.repeat(100))
    await using store = createSqliteStore({ path })
    await unavailable(store.open(SPACE, ctx), folder.path, /svc\.db is not a database/)
    expect(readFileSync(path, 'utf8')).to.match(/^this is a letter/)
    rmSync(path)
    await store.open(SPACE, ctx)
    await put(store, 'a', 1)
    expect((await store.get('notes', 'a', ctx))?.value).to.equal(1)
  })

  it('reports a damaged file, and works once a backup is in its place', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    {
      await using store = createSqliteStore({ path })
      await store.open(SPACE, ctx)
      for (let i = 0; i < 20; i++) await put(store, `k${i}`, 'x'.repeat(3000))
    }
    copyFileSync(path, `${path}.backup`)
    const bytes = readFileSync(path)
    bytes.fill(0xab, 4096)
    writeFileSync(path, bytes)
    await using store = createSqliteStore({ path })
    await unavailable(store.open(SPACE, ctx), folder.path, /svc\.db is damaged/)
    renameSync(`${path}.backup`, path)
    await store.open(SPACE, ctx)
    await put(store, 'k0', 'y')
    expect((await store.get('notes', 'k0', ctx))?.version).to.equal(2)
    expect((await store.get('notes', 'k19', ctx))?.version).to.equal(1)
  })

  it('waits for a file that another program has locked, then says so, then works again', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    await using impatient = createSqliteStore({ path, busyMs: 40 })
    await using patient = createSqliteStore({ path })
    await impatient.open(SPACE, ctx)
    await patient.open(SPACE, ctx)
    using raw = new DatabaseSync(path)
    raw.exec('BEGIN IMMEDIATE')
    const waiting = put(patient, 'b', 1)
    await unavailable(put(impatient, 'a', 1), folder.path, /locked/)
    expect(await impatient.get('notes', 'a', ctx)).to.equal(undefined)
    raw.exec('COMMIT')
    await waiting
    await put(impatient, 'a', 2)
    expect((await impatient.get('notes', 'a', ctx))?.value).to.equal(2)
  })

  it('reports a file that was taken away, writes nothing into the void, and works once it is back', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    await using store = createSqliteStore({ path })
    await store.open(SPACE, ctx)
    await put(store, 'a', 1)
    using raw = new DatabaseSync(path)
    raw.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    raw.close()
    renameSync(path, `${path}.away`)
    await unavailable(put(store, 'a', 2), folder.path, /gone/)
    expect(existsSync(path)).to.equal(false)
    renameSync(`${path}.away`, path)
    await put(store, 'a', 3)
    expect({ ...(await store.get('notes', 'a', ctx)) }).to.deep.equal({ key: 'a', version: 2, value: 3 })
  })

  it('reports a folder that cannot be written, and works once it can', async () => {
    await using folder = await temporaryFolder()
    const home = join(folder.path, 'home')
    writeFileSync(home, 'a file where the folder should be')
    await using store = createSqliteStore({ path: join(home, 'svc.db') })
    await unavailable(store.open(SPACE, ctx), folder.path, /svc\.db/)
    rmSync(home)
    await store.open(SPACE, ctx)
    await put(store, 'a', 1)
  })

  it('reports a folder that it may not write, and works once it may', async () => {
    await using folder = await temporaryFolder()
    chmodSync(folder.path, 0o755)
    const home = join(folder.path, 'home')
    mkdirSync(home, 0o555)
    using store = await servant(join(home, 'other.db'), 'none')
    await unavailable(store.ask('open'), folder.path, /^other\.db cannot be accessed: permission denied$/)
    chmodSync(home, 0o777)
    await store.ask('open')
    await store.ask('put', 'a', 'x')
  })

  it('reports a full disk, keeps what it had, and works once there is room', async function () {
    await using folder = await temporaryFolder()
    const disk = join(folder.path, 'disk')
    skipBecause(this, smallDisk(disk))
    try {
      await using store = createSqliteStore({ path: join(disk, 'svc.db') })
      await store.open(SPACE, ctx)
      await put(store, 'a', 'kept')
      writeFileSync(join(disk, 'filler'), Buffer.alloc(400_000))
      await unavailable(fill(store), disk, /disk of svc\.db is full/)
      expect((await store.get('notes', 'a', ctx))?.value).to.equal('kept')
      rmSync(join(disk, 'filler'))
      await put(store, 'a', 'again')
      expect((await store.get('notes', 'a', ctx))?.value).to.equal('again')
      expect(await store.probe(ctx)).to.deep.equal(PROBED)
    } finally {
      removeDisk(disk)
    }
  })

  it('says that its file system is read-only, in the health too, loses nothing and works once it is writable', async function () {
    await using folder = await temporaryFolder()
    const disk = join(folder.path, 'disk')
    skipBecause(this, smallDisk(disk))
    const remount = (mode: string) => execFileSync('mount', ['-o', `remount,${mode}`, disk])
    const path = join(disk, 'svc.db')
    const reason = /^svc\.db or its folder is read-only$/
    try {
      {
        await using store = createSqliteStore({ path })
        await store.open(SPACE, ctx)
        await put(store, 'a', 'kept')
      }
      remount('ro')
      await using store = createSqliteStore({ path })
      await unavailable(store.open(SPACE, ctx), disk, reason)
      expect((await errorOf(store.open(SPACE, ctx))).details).to.deep.equal({ retryable: true, reason: 'read_only' })
      expect(await createCheck(store).probe(ctx)).to.deep.equal({
        status: 'unhealthy',
        reason: 'svc.db or its folder is read-only',
      })
      remount('rw')
      await store.open(SPACE, ctx)
      expect({ ...(await store.get('notes', 'a', ctx)) }).to.deep.equal({ key: 'a', version: 1, value: 'kept' })
      await put(store, 'a', 'new')
      expect((await createCheck(store).probe(ctx)).status).to.equal('healthy')
    } finally {
      removeDisk(disk)
    }
  })

  it('never gives out a lower fence, even when a power cut takes what was not synced', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    const take = async (store: Store, lease: string) =>
      (await store.acquire(lease, { holder: 'h', ttlMs: 60_000, waitMs: 0 }, ctx)).fence
    let last = 0
    {
      await using store = createSqliteStore({ path })
      await store.open(SPACE, ctx)
      await take(store, 'first')
      // What has been synced by now is all that a power cut is sure to leave.
      for (const side of ['', '-wal']) if (existsSync(path + side)) copyFileSync(path + side, `${path}.synced${side}`)
      for (let i = 0; i < 50; i++) last = await take(store, `l${i}`)
    }
    const synced = join(folder.path, 'svc.db.synced')
    await using store = createSqliteStore({ path: synced })
    await store.open(SPACE, ctx)
    expect(await take(store, 'l49')).to.be.greaterThan(last)
  })
})

/** Writes until something refuses. */
async function fill(store: Store): Promise<never> {
  for (let i = 0; ; i++) await put(store, `fill${i}`, 'x'.repeat(20_000))
}
