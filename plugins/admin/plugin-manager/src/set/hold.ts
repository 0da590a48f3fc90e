import { accessSync, constants, existsSync, mkdirSync, readFileSync, rmdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { codeOf, timestamp } from '@svc/core'
import { setBusy } from './errors.ts'

/** SQLite's codes for a file that another holds, and for one that went while it was opened. */
const [BUSY, GONE] = [5, 14]
const TRIES = 20
/** Milliseconds: a look of `isHeld` lasts shorter. */
const LOOK_MS = 100

interface Holder {
  readonly pid?: number
  readonly since?: string
  readonly what?: string
}

/**
 * Holds the plugins below a home, so that no other process changes them; another command reports `what`. It is a lock of the kernel (by way of SQLite, the one that Node has):
 * it ends with the process, however that ends, and needs no guess whether a process id still means the same. Throws PLUGIN_SET_BUSY.
 */
export async function holdSet(home: string, what: string): Promise<Disposable> {
  const folder = join(home, 'plugins')
  const [file, note] = [join(folder, 'changing'), join(folder, 'changing.json')]
  for (let left = TRIES; left > 0; left--) {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const lock = await tryLock(file, note)
    if (lock === undefined) continue
    writeFileSync(note, JSON.stringify({ pid: process.pid, since: timestamp(), what } satisfies Holder), {
      mode: 0o600,
    })
    return { [Symbol.dispose]: () => release(lock, folder, [note, file]) }
  }
  accessSync(folder, constants.W_OK) // what may not be written looks the same to SQLite
  throw busyWith(note)
}

/**
 * Undefined where it is not sure that the file is still in its place: another may have removed it while this process opened it, and no other process would see that lock.
 * Only SQLite may open the file: to close it would end what this process holds of it.
 */
async function tryLock(file: string, note: string): Promise<Disposable | undefined> {
  const { DatabaseSync } = await import('node:sqlite')
  const before = identity(file)
  let lock: InstanceType<typeof DatabaseSync> | undefined
  try {
    lock = new DatabaseSync(file, { timeout: LOOK_MS })
    // nothing is written: it needs no journal beside it
    lock.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
  } catch (error) {
    lock?.close()
    const { errcode } = error as { errcode?: number }
    if (errcode === BUSY) throw busyWith(note)
    if (errcode === GONE) return undefined
    throw error
  }
  if (before !== undefined && identity(file) === before) return lock
  lock.close()
  return undefined
}

function identity(file: string): string | undefined {
  const stat = statSync(file, { bigint: true, throwIfNoEntry: false })
  return stat && `${stat.ino} ${stat.birthtimeNs}`
}

/** Whether anybody holds the plugins below a home. Those who look do not see each other: they only read. */
export async function isHeld(home: string): Promise<boolean> {
  const file = join(home, 'plugins', 'changing')
  if (!existsSync(file)) return false
  const { DatabaseSync } = await import('node:sqlite')
  try {
    using look = new DatabaseSync(file, { readOnly: true, timeout: 0 })
    look.prepare('SELECT count(*) FROM sqlite_master').get()
    return false
  } catch (error) {
    const { errcode } = error as { errcode?: number }
    if (errcode === GONE) return false
    if (errcode === BUSY) return true
    throw error
  }
}

/** Its files go while it is still held; who has opened them sees that they went. */
function release(lock: Disposable, folder: string, files: readonly string[]): void {
  try {
    for (const file of files) rmSync(file, { force: true })
    removeEmpty(folder)
  } finally {
    lock[Symbol.dispose]()
  }
}

/** Takes away a folder with nothing in it. */
export function removeEmpty(folder: string): void {
  try {
    rmdirSync(folder)
  } catch (error) {
    if (!/^(ENOTEMPTY|EEXIST|ENOENT)$/.test(codeOf(error) ?? '')) throw error
  }
}

function busyWith(note: string) {
  const { what = 'another change', pid, since } = holderIn(note)
  return setBusy(what, pid, since)
}

function holderIn(note: string): Holder {
  try {
    return JSON.parse(readFileSync(note, 'utf8')) as Holder
  } catch {
    return {} // it has only just begun
  }
}
