import { setTimeout } from 'node:timers/promises'
import { moveCounts, PROBE } from './counts-file.ts'
import { readError } from './errors.ts'
import { openForWriting } from './file.ts'
import { isBusy } from './file-errors.ts'

const RETRY_MS = 5
/** Less than the time of a setup. */
const LONGEST_MS = 5000

/**
 * Writes a probe; returns its value and SQLite's `synchronous`. For the time before the writer's thread starts. Throws SQLite's
 * errors.
 */
export function writeProbe(path: string): readonly [written: number, synced: number] {
  using db = openForWriting(path, { mayMake: false })
  const [written] = Object.values(db.prepare(`${PROBE} RETURNING value`).get()!)
  const [synced] = Object.values(db.prepare('PRAGMA synchronous').get()!)
  return [Number(written), Number(synced)]
}

/**
 * Opens the file, writes into it and closes it, on the calling thread: at the start that is faster than the writer's thread.
 * Throws STORE_UNAVAILABLE, STORE_NEWER.
 */
export async function tryOut(path: string, busyMs: number, signal: AbortSignal): Promise<void> {
  for (const until = performance.now() + Math.min(busyMs, LONGEST_MS); ; ) {
    try {
      using db = openForWriting(path, { mayMake: true })
      db.exec(`BEGIN IMMEDIATE; ${PROBE}; COMMIT`)
      moveCounts(db, path)
      return
    } catch (error) {
      if (!isBusy(error) || performance.now() >= until) throw readError(error, path, 'start')
    }
    await setTimeout(RETRY_MS, undefined, { signal })
  }
}
