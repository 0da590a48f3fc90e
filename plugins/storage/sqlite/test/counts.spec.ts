import { closeSync, existsSync, openSync, readFileSync, statSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout } from 'node:timers/promises'
import { expect } from 'chai'
import { createCheck } from '../src/check.ts'
import { beginAnew } from '../src/counts-file.ts'
import { createSqliteStore, type SqliteStore } from '../src/store.ts'
import { tryOut } from '../src/try-out.ts'
import { commitsIn, saltOf } from './log-support.ts'
import { SPACE, temporaryFolder, ctx } from './support.ts'
import { errorOf, lock, put, unavailable } from './broken-files.ts'

const HOUR = 3_600_000
const hit = async (store: SqliteStore, key: string, ms = HOUR) =>
  (await store.count(key, [{ ms, limit: 1_000_000 }], ctx)).windows[0]!
const hitAll = async (store: SqliteStore, name: string, count: number, ms?: number) => {
  for (let at = 0; at < count; at++) await hit(store, `${name}${at}`, ms)
}

const DAMAGES: readonly (readonly [what: string, damage: (file: string) => void])[] = [
  ['overwritten with something else', file => overwrite(file, 0, 0x61)],
  ['damaged in its pages', file => overwrite(file, 4096, 0xab)],
  [
    'damaged in its values',
    file => {
      using raw = new DatabaseSync(file)
      raw.exec("UPDATE counts SET windows = 'x'")
    },
  ],
]

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
    using raw = new DatabaseSync(`${path}.counts`, { readOnly: true })
    expect(raw.prepare('SELECT count(*) AS n FROM counts').get()?.n).to.equal(61)
    expect(raw.prepare("SELECT value AS n FROM counters WHERE name = 'counts'").get()?.n).to.equal(61)
  })

  it('is moved from the store of a former release, once and with all that had been counted', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    await formerly(path, [
      ['k', Date.now() + HOUR, [[Date.now(), HOUR, 41]]],
      ['over', Date.now() - 1, [[Date.now() - HOUR, HOUR - 1, 7]]],
    ])
    for (const count of [42, 43]) {
      await tryOut(path, 0, ctx.signal)
      await using store = createSqliteStore({ path })
      expect((await hit(store, 'k')).count).to.equal(count)
      expect((await hit(store, 'over')).count).to.equal(count - 41)
    }
    using raw = new DatabaseSync(path, { readOnly: true })
    expect(raw.prepare('SELECT count(*) AS n FROM counts').get()?.n).to.equal(0)
  })

  it('shares one commit with all that is hit in the same turn', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    await using store = createSqliteStore({ path })
    await hit(store, 'k')
    const before = commitsIn(`${path}.counts`)
    await Promise.all(Array.from({ length: 200 }, (_, at) => hit(store, `k${at}`)))
    expect(commitsIn(`${path}.counts`) - before).to.equal(1)
  })

  it('is brought from the log into the file amid hits that never cease', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    await using store = createSqliteStore({ path })
    await store.open(SPACE, ctx)
    await hit(store, 'k')
    const first = saltOf(`${path}.counts`)
    // ends when the log has been begun again; a test that never ends is one that fails
    for (let at = 0; saltOf(`${path}.counts`) === first; at++) await hitAll(store, `k${at}-`, 200)
  })

  it('is whole after a power cut that took any end of its log, and has all before it', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    await using store = createSqliteStore({ path })
    for (let count = 1; count <= 40; count++) await hit(store, 'k')
    const [file, log] = [readFileSync(`${path}.counts`), readFileSync(`${path}.counts-wal`)]
    const left: number[] = []
    for (let part = 0; part <= 8; part++) {
      const cut = join(folder.path, `cut${part}.db`)
      writeFileSync(`${cut}.counts`, file)
      writeFileSync(`${cut}.counts-wal`, log.subarray(0, Math.ceil((log.length * part) / 8)))
      await using after = createSqliteStore({ path: cut, countsAnew: () => expect.fail('it was damaged') })
      left.push((await hit(after, 'k')).count - 1)
    }
    expect(left).to.deep.equal(left.toSorted((a, b) => a - b))
    expect([left[0], left.at(-1)]).to.deep.equal([0, 40])
  })

  for (const [what, damage] of DAMAGES)
    it(`is begun anew where its file is ${what}, by all that count, and says so in the health`, async () => {
      await using folder = await temporaryFolder()
      const path = join(folder.path, 'svc.db')
      const reported: number[] = []
      await using sqliteStore = createSqliteStore({ path, countsAnew: since => reported.push(since) })
      await using two = createSqliteStore({ path, countsAnew: since => reported.push(since) })
      await sqliteStore.open(SPACE, ctx)
      for (const store of [sqliteStore, two]) await hitAll(store, 'k', 50)
      expect((await createCheck(sqliteStore).probe(ctx)).status).to.equal('healthy')
      damage(`${path}.counts`)
      while (reported.length < 2) for (const store of [sqliteStore, two]) await hit(store, 'k7')
      const { count } = await hit(two, 'k7')
      expect((await hit(sqliteStore, 'k7')).count).to.equal(count + 1)
      expect(existsSync(`${path}.counts`), 'the damaged one is kept').to.equal(true)
      for (const store of [sqliteStore, two]) {
        const { status, reason } = await createCheck(store).probe(ctx)
        expect(status).to.equal('degraded')
        expect(reason).to.match(/^the file of counts was damaged: limits count anew since \d{4}-/)
      }
    })

  it('waits while another program holds its file, then fails, and nothing else does', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    await using store = createSqliteStore({ path, busyMs: 40 })
    await store.open(SPACE, ctx)
    await hit(store, 'k')
    await using patient = createSqliteStore({ path })
    using locker = await lock(`${path}.counts`)
    const waiting = hit(patient, 'k')
    await unavailable(hit(store, 'k'), folder.path, /^svc\.db\.counts is locked by another program$/)
    await unavailable(store.probe(ctx), folder.path, /^svc\.db\.counts is locked by another program$/)
    await put(store, 'a', 1)
    await locker.free()
    expect((await waiting).count).to.equal(2)
    expect((await hit(store, 'k')).count).to.equal(3)
  })

  it('does not count callers that have given up', async () => {
    await using folder = await temporaryFolder()
    await using store = createSqliteStore({ path: join(folder.path, 'svc.db') })
    const giveUp = new AbortController()
    const given = errorOf(store.count('k', [{ ms: HOUR, limit: 9 }], { ...ctx, signal: giveUp.signal }))
    giveUp.abort(new Error('gave up'))
    expect((await given).message).to.equal('gave up')
    expect((await hit(store, 'k')).count).to.equal(1)
  })

  it('goes on in the file that another process has begun in the place of a damaged one', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    let restarts = 0
    await using store = createSqliteStore({ path, countsAnew: () => restarts++ })
    await hit(store, 'k')
    beginAnew(path, 1)
    await using other = createSqliteStore({ path })
    await hit(other, 'k')
    while (restarts === 0) await hit(store, 'elsewhere')
    expect((await hit(store, 'k')).count).to.equal(2)
  })
})

/** Writes over a file, from a byte on, and takes its log away: what a broken disk may leave. */
function overwrite(file: string, from: number, byte: number): void {
  using raw = new DatabaseSync(file)
  raw.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  const open = openSync(file, 'r+')
  const { size } = statSync(file)
  writeSync(open, Buffer.alloc(size - from, byte), 0, size - from, from)
  closeSync(open)
}

type Former = readonly [key: string, ends: number, windows: object]

/** A store as a release left it that counted in the store itself. */
async function formerly(path: string, rows: readonly Former[]): Promise<void> {
  {
    await using store = createSqliteStore({ path })
    await store.open(SPACE, ctx)
  }
  using raw = new DatabaseSync(path)
  raw.exec(`CREATE TABLE counts(id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, ends INTEGER NOT NULL, windows TEXT NOT NULL) STRICT;
    INSERT INTO counters VALUES ('counts', ${rows.length})`)
  for (const [key, ends, windows] of rows)
    raw.prepare('INSERT INTO counts(key, ends, windows) VALUES (?, ?, ?)').run(key, ends, JSON.stringify(windows))
}
