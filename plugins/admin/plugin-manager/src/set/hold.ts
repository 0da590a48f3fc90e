import { accessSync, constants, existsSync, mkdirSync, readFileSync, rmdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { codeOf, timestamp } from '@svc/core'
import { holdFile } from '@svc/runtime/home-files'
import { setBusy } from './errors.ts'

/** SQLite's codes for a locked file, and for one that was removed during opening. */
const [BUSY, GONE] = [5, 14]
const TRIES = 20
/** Milliseconds; longer than a check of `isHeld`. */
const LOOK_MS = 100

interface Holder {
  readonly pid?: number
  readonly since?: string
  readonly what?: string
}

/**
 * Locks the plugins of a home against changes by other processes, to which `what` describes the change. The kernel holds the
 * lock (through SQLite, because Node has no other), so it ends with the process. Throws PLUGIN_SET_BUSY.
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
  accessSync(folder, constants.W_OK) // SQLite reports a read-only file the same way
  throw busyWith(note)
}

/**
 * Undefined if another process may have removed the file while this one opened it: then others would not see the lock. Only
 * SQLite may open the file, because closing it would release this process's locks.
 */
async function tryLock(file: string, note: string): Promise<Disposable | undefined> {
  const before = identity(file)
  let lock: Disposable
  try {
    lock = await holdFile(file, LOOK_MS)
  } catch (error) {
    const { errcode } = error as { errcode?: number }
    if (errcode === BUSY) throw busyWith(note)
    if (errcode === GONE) return undefined
    throw error
  }
  if (before !== undefined && identity(file) === before) return lock
  lock[Symbol.dispose]()
  return undefined
}

function identity(file: string): string | undefined {
  const stat = statSync(file, { bigint: true, throwIfNoEntry: false })
  return stat && `${stat.ino} ${stat.birthtimeNs}`
}

/** Whether a process holds the plugins of a home. Checks do not disturb each other: they only read. */
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

/** Removes its files while it holds the lock; processes that opened them notice. */
function release(lock: Disposable, folder: string, files: readonly string[]): void {
  try {
    for (const file of files) rmSync(file, { force: true })
    removeEmpty(folder)
  } finally {
    lock[Symbol.dispose]()
  }
}

/** Removes an empty folder. */
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
    return {} // it has just begun
  }
}
