import { randomUUID } from 'node:crypto'
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout } from 'node:timers/promises'

/** SQLite: another connection has the lock. */
const BUSY = 5
const LOOK_MS = 15

/**
 * Locks a file against other processes, and other holders in this one, through SQLite, because Node has no lock of the operating
 * system. The lock ends with its process. `waitMs` limits the wait for another holder. Throws the error of SQLite, with `errcode`.
 */
export async function holdFile(file: string, waitMs: number): Promise<Disposable> {
  // SQLite waits without returning to the event loop: a holder in this process could never release its lock
  for (const until = performance.now() + waitMs; ; ) {
    try {
      return await tryHold(file)
    } catch (error) {
      if ((error as { errcode?: number }).errcode !== BUSY || performance.now() >= until) throw error
      await setTimeout(LOOK_MS)
    }
  }
}

async function tryHold(file: string): Promise<Disposable> {
  const { DatabaseSync } = await import('node:sqlite')
  const lock = new DatabaseSync(file, { timeout: 0 })
  try {
    // nothing is written, so it needs no journal file
    lock.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
    return lock
  } catch (error) {
    lock.close()
    throw error
  }
}

/** Replaces a file in one step, so that no reader sees a part of the text. By default only the owner of the new file can read it. */
export async function replaceFile(file: string, text: string, mode = 0o600): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  const next = `${file}.${randomUUID()}`
  try {
    await using handle = await open(next, 'wx', mode)
    await handle.writeFile(text)
    await handle.sync()
    await rename(next, file)
  } catch (error) {
    await rm(next, { force: true })
    throw error
  }
}
