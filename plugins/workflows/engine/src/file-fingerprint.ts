import { statSync } from 'node:fs'

/** A change this young may be followed by one that the clock of the file system does not tell from it. */
const FRESH_MS = 50
let fresh = 0

/**
 * What differs after any change of a file, or of the names in a folder; empty where there is none. What was changed just now has another stamp each time.
 * Not asynchronous: it takes two microseconds, the way to Node's thread pool and back twenty times that, at each start of a run.
 */
export function fingerprintOf(path: string): string {
  const found = statOf(path)
  if (!found) return ''
  const { dev, ino, size, ctimeNs, ctimeMs } = found
  return Date.now() - Number(ctimeMs) < FRESH_MS ? `fresh ${++fresh}` : `${dev}/${ino}/${size}/${ctimeNs}`
}

function statOf(path: string) {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false })
  } catch {
    return undefined // what may not be looked at is not there
  }
}
