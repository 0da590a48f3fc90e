import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { SvcError } from '@svc/core'
import { testHost } from '@svc/testing'
import { expect } from 'chai'
import { createSqliteStore } from '../src/store.ts'
import { SPACE, temporaryFolder, ctx } from './support.ts'
import { lock, put, removeDisk, smallDisk } from './broken-files.ts'
import { skipBecause } from '../../../../test/support/needs.ts'

const PLUGIN = new URL('..', import.meta.url)

/** The single problem of a start with this file. */
async function startErrorOf(path: string): Promise<SvcError> {
  const start = testHost([PLUGIN], { config: { store: { path, busy_timeout_ms: 40 } } })
  const failed = await start.then(
    async host => {
      await host.close()
      throw new Error('it started')
    },
    (error: SvcError & { problems: readonly SvcError[] }) => error
  )
  expect(failed.code, failed.stack).to.equal('START_FAILED')
  expect(failed.problems).to.have.length(1)
  const error = failed.problems[0]!
  expect(error).to.include({ code: 'SETUP_FAILED', plugin: '@svc/plugin-store-sqlite' })
  expect(error.where).to.match(/svc\.db$/)
  expect(error.hint, 'no server runs').to.not.match(/next request/)
  return error
}

/** A file that a store of svc's has been in. */
async function made(path: string): Promise<void> {
  await using store = createSqliteStore({ path })
  await store.open(SPACE, ctx)
  for (let i = 0; i < 20; i++) await put(store, `k${i}`, 'x'.repeat(3000))
}

type Case = readonly [what: string, prepare: (path: string) => unknown, code: string, message: RegExp, hint: RegExp]

const CASES: readonly Case[] = [
  [
    'a file that is not a database',
    path => writeFileSync(path, 'a letter, '.repeat(500)),
    'STORE_UNAVAILABLE',
    /svc\.db is not a database$/,
    /svc store restore/,
  ],
  [
    'a damaged file',
    async path => {
      await made(path)
      writeFileSync(path, readFileSync(path).fill(0xab, 4096))
    },
    'STORE_UNAVAILABLE',
    /svc\.db is damaged$/,
    /svc store restore/,
  ],
  [
    'a file of another program',
    path => {
      using raw = new DatabaseSync(path)
      raw.exec('CREATE TABLE theirs(a)')
    },
    'STORE_UNAVAILABLE',
    /another program/,
    /store\.path/,
  ],
  [
    'a file of a newer svc',
    async path => {
      await made(path)
      using raw = new DatabaseSync(path)
      raw.exec('PRAGMA user_version = 99')
    },
    'STORE_NEWER',
    /version 99, but this program supports only version 4/,
    /Update svc/,
  ],
  ['a folder in the place of the file', path => mkdirSync(path), 'STORE_UNAVAILABLE', /svc\.db cannot be opened/, /store\.path/],
]

describe('a start with a broken store', () => {
  for (const [what, prepare, code, message, hint] of CASES)
    it(`fails with ${what}: code, what, where and hint`, async () => {
      await using folder = await temporaryFolder()
      const path = join(folder.path, 'svc.db')
      await prepare(path)
      const error = await startErrorOf(path)
      expect(error.details).to.deep.equal({ cause: code })
      expect(error.message).to.match(message).and.not.include(folder.path)
      expect(error.hint).to.match(hint)
    })

  it('fails with a file that another process holds, and works once it lets go', async () => {
    await using folder = await temporaryFolder()
    const path = join(folder.path, 'svc.db')
    await made(path)
    using locker = await lock(path, 'alone')
    const error = await startErrorOf(path)
    expect(error.message).to.equal('its setup failed: svc.db is locked by another program')
    expect(error.hint).to.match(/End the program that holds it.*; then start svc again$/)
    await locker.free()
    await using _ = await testHost([PLUGIN], { config: { store: { path } } })
  })

  it('fails with a folder that cannot be made', async () => {
    await using folder = await temporaryFolder()
    writeFileSync(join(folder.path, 'home'), 'a file')
    const error = await startErrorOf(join(folder.path, 'home', 'svc.db'))
    expect(error.message).to.equal('its setup failed: svc.db cannot be opened')
    expect(error.hint).to.match(/folder exists and is writable/)
  })

  it('fails with a full disk, and works once there is room', async function () {
    await using folder = await temporaryFolder()
    const disk = join(folder.path, 'disk')
    skipBecause(this, smallDisk(disk))
    try {
      const path = join(disk, 'svc.db')
      const filler = join(disk, 'filler')
      const full = () => writeFileSync(filler, Buffer.alloc(2_000_000))
      expect(full).to.throw(/ENOSPC/)
      const error = await startErrorOf(path)
      expect(error.message).to.equal('its setup failed: the disk of svc.db is full')
      expect(error.hint).to.match(/Free some space/)
      writeFileSync(filler, '')
      await using _ = await testHost([PLUGIN], { config: { store: { path } } })
    } finally {
      removeDisk(disk)
    }
  })
})
