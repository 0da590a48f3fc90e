import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect } from 'chai'
import { createCheck } from '../src/check.ts'
import { inspect } from '../src/inspect.ts'
import { createSqliteStore, type SqliteStore } from '../src/store.ts'
import { SPACE, temporaryFolder, ctx } from './support.ts'
import { lock, put, removeDisk, servant, smallDisk, unavailable } from './broken-files.ts'
import { skipBecause } from '../../../../test/support/needs.ts'

const HIT = [{ ms: 3_600_000, limit: 1000 }]
const valueOf = async (store: SqliteStore, key: string) => (await store.get('notes', key, ctx))?.value
const healthOf = async (store: SqliteStore) => (await createCheck(store).probe(ctx)).status

/** Brings everything from the log into the file itself. */
function checkpoint(path: string): void {
  using raw = new DatabaseSync(path)
  raw.exec('PRAGMA wal_checkpoint(TRUNCATE)')
}

/** Writes over bytes of a file where it is. */
function overwrite(path: string, bytes: Uint8Array, at: number): void {
  const file = openSync(path, 'r+')
  writeSync(file, bytes, 0, bytes.length, at)
  closeSync(file)
}

/** A store with 40 records in its file, and a backup of it. */
async function filled(folder: string) {
  const path = join(folder, 'svc.db')
  const store = createSqliteStore({ path, busyMs: 200 })
  await store.open(SPACE, ctx)
  for (let i = 0; i < 40; i++) await put(store, `k${i}`, `needle${i} ${'x'.repeat(3000)}`)
  checkpoint(path)
  copyFileSync(path, `${path}.backup`)
  return { path, store, backup: `${path}.backup` }
}

describe('the store in SQLite, when errors occur while it runs', () => {
  it('says that another process holds the file, in the health too, and works once it lets go', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    await using store = createSqliteStore({ path, busyMs: 40 })
    await store.open(SPACE, ctx)
    await put(store, 'a', 1)
    using locker = await lock(path)
    await unavailable(put(store, 'b', 1), folder.path, /svc\.db is locked by another program/)
    expect((await store.count('k', HIT, ctx)).windows[0]!.count, 'limits do not wait for it').to.equal(1)
    await unavailable(store.probe(ctx), folder.path, /locked/)
    expect(await valueOf(store, 'a')).to.equal(1)
    await locker.free()
    await put(store, 'b', 2)
    expect(await healthOf(store)).to.equal('healthy')
  })

  it('reports pages that were overwritten, in the health too, and works once a backup is moved into its place', async () => {
    await using folder = await temporaryFolder()
    const { path, store, backup } = await filled(folder.path)
    await using _ = store
    overwrite(path, Buffer.alloc(100_000, 0xab), 8192)
    const readAll = async () => {
      for (let i = 0; i < 40; i++) await store.get('notes', `k${i}`, ctx)
    }
    await unavailable(readAll(), folder.path, /svc\.db is damaged/)
    await unavailable(store.probe(ctx), folder.path, /svc\.db is damaged/)
    expect(await healthOf(store)).to.equal('unhealthy')
    renameSync(backup, path)
    expect(await valueOf(store, 'k39')).to.match(/^needle39 /)
    await put(store, 'k39', 'new')
    expect(await healthOf(store)).to.equal('healthy')
  })

  it('reports a value that was overwritten, and still reads and writes all others', async () => {
    await using folder = await temporaryFolder()
    const { path, store } = await filled(folder.path)
    await using _ = store
    const at = readFileSync(path).indexOf('"needle7 ')
    overwrite(path, Buffer.from('xx'), at)
    await unavailable(store.get('notes', 'k7', ctx), folder.path, /damaged/)
    await Promise.all([0, 1, 2, 3, 4, 5, 6, 8, 9, 10].map(i => put(store, `k${i}`, i)))
    expect(await valueOf(store, 'k8')).to.equal(8)
    expect(await healthOf(store)).to.equal('unhealthy')
  })

  it('reports a file that was deleted, and takes a backup for what it is, not for the end of the former file', async () => {
    await using folder = await temporaryFolder()
    const { path, store, backup } = await filled(folder.path)
    await using _ = store
    for (let i = 0; i < 40; i++) await put(store, `k${i}`, `later${i}`)
    rmSync(path)
    await unavailable(put(store, 'k0', 'void'), folder.path, /gone/)
    await unavailable(store.get('notes', 'k0', ctx), folder.path, /gone/)
    await unavailable(store.probe(ctx), folder.path, /gone/)
    expect(existsSync(path)).to.equal(false)
    renameSync(backup, path)
    expect(await valueOf(store, 'k5')).to.match(/^needle5 /)
    await put(store, 'k5', 'new')
    expect(await healthOf(store)).to.equal('healthy')
    expect((await inspect(path)).problem).to.equal(undefined)
    expect(readdirSync(folder.path).filter(name => /^svc\.db\.former-\d+-wal$/.test(name))).to.have.length(1)
  })

  it('has all that was acknowledged when the file is taken away with its log still beside it, and put back', async () => {
    await using folder = await temporaryFolder()
    const { path, store } = await filled(folder.path)
    await using _ = store
    for (let i = 0; i < 40; i++) await put(store, `k${i}`, `later${i}`)
    renameSync(path, `${path}.away`)
    await unavailable(put(store, 'k0', 'void'), folder.path, /gone/)
    renameSync(`${path}.away`, path)
    for (let i = 0; i < 40; i++) expect(await valueOf(store, `k${i}`)).to.equal(`later${i}`)
    await put(store, 'k0', 'new')
  })

  it('does not begin anew in a file that was emptied', async () => {
    await using folder = await temporaryFolder()
    const { path, store, backup } = await filled(folder.path)
    await using _ = store
    truncateSync(path, 0)
    for (let i = 0; i < 3; i++)
      await unavailable(store.open({ ...SPACE, name: `fresh${i}`, collections: {}, logs: [] }, ctx), folder.path, /./)
    renameSync(backup, path)
    expect(await valueOf(store, 'k5')).to.match(/^needle5 /)
    await put(store, 'k5', 'new')
  })

  it('has every acknowledged write of a full disk, says in the health that it is full, and goes on once there is room', async function () {
    await using folder = await temporaryFolder()
    const disk = join(folder.path, 'disk')
    skipBecause(this, smallDisk(disk))
    try {
      await using store = createSqliteStore({ path: join(disk, 'svc.db') })
      await store.open(SPACE, ctx)
      writeFileSync(join(disk, 'filler'), Buffer.alloc(500_000))
      const acknowledged: string[] = []
      const fill = async () => {
        for (let i = 0; ; i++) {
          await put(store, `k${i}`, `${i}`.padEnd(8000, '.'))
          acknowledged.push(`k${i}`)
        }
      }
      await unavailable(fill(), disk, /disk of svc\.db is full/)
      await unavailable(store.probe(ctx), disk, /disk of svc\.db is full/)
      for (const key of acknowledged) expect(await valueOf(store, key)).to.match(new RegExp(`^${key.slice(1)}\\.`))
      rmSync(join(disk, 'filler'))
      await put(store, 'after', 'x'.repeat(8000))
      expect((await store.count('k', HIT, ctx)).windows[0]!.count).to.equal(1)
      expect(await healthOf(store)).to.equal('healthy')
    } finally {
      removeDisk(disk)
    }
  })

  it('has every acknowledged write of a process whose files may grow no more, and goes on once they may', async function () {
    await using folder = await temporaryFolder()
    using store = await servant(join(folder.path, 'svc.db'), 'same')
    await store.ask('open')
    const limit = (bytes: string) =>
      execFileSync('prlimit', ['--pid', String(store.pid), `--fsize=${bytes}:unlimited`], { stdio: 'ignore' })
    try {
      limit('600000')
    } catch {
      skipBecause(this, 'prlimit is missing or may set no limits on this machine')
    }
    let acknowledged = 0
    const fill = async () => {
      for (; ; acknowledged++) await store.ask('put', `k${acknowledged}`, 'x'.repeat(8000))
    }
    await unavailable(fill(), folder.path, /svc\.db/)
    expect(acknowledged).to.be.greaterThan(5)
    for (let i = 0; i < acknowledged; i++) expect(await store.ask('get', `k${i}`)).to.include({ version: 1 })
    limit('unlimited')
    await store.ask('put', 'after', 'x'.repeat(8000))
    expect(await store.ask('probe')).to.include({ durable: true })
  })

  it('reports a file that it may not write, and works once it may', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    {
      await using store = createSqliteStore({ path })
      await store.open(SPACE, ctx)
      await put(store, 'a', 1)
    }
    chmodSync(folder.path, 0o755)
    chmodSync(path, 0o444)
    using store = await servant(path, 'none')
    const work = async () => {
      await store.ask('open')
      await store.ask('put', 'a', 'x')
    }
    await unavailable(work(), folder.path, /^svc\.db (or its folder is read-only|cannot be accessed: permission denied)$/)
    await unavailable(
      store.ask('probe'),
      folder.path,
      /^svc\.db (or its folder is read-only|cannot be accessed: permission denied)$/
    )
    chmodSync(folder.path, 0o777)
    chmodSync(path, 0o666)
    await work()
    expect(await store.ask('get', 'a')).to.deep.equal({ key: 'a', version: 2, value: 'x' })
  })
})
