import { randomUUID } from 'node:crypto'
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

/**
 * Locks a file against other processes, through SQLite, because Node has no lock of the operating system. The lock ends with its
 * process. `waitMs` limits the wait for another holder. Throws the error of SQLite, with `errcode`.
 */
export async function holdFile(file: string, waitMs: number): Promise<Disposable> {
  const { DatabaseSync } = await import('node:sqlite')
  const lock = new DatabaseSync(file, { timeout: waitMs })
  try {
    // nothing is written, so it needs no journal file
    lock.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
    return lock
  } catch (error) {
    lock.close()
    throw error
  }
}

/** Replaces a file in one step, so that no reader sees a part of the text. Only the owner of the new file can read it. */
export async function replaceFile(file: string, text: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  const next = `${file}.${randomUUID()}`
  try {
    await using handle = await open(next, 'wx', 0o600)
    await handle.writeFile(text)
    await handle.sync()
    await rename(next, file)
  } catch (error) {
    await rm(next, { force: true })
    throw error
  }
}
