import { readFileSync } from 'node:fs'

/** The commits in a write-ahead log: each ends with a frame that says how large the database is then (https://sqlite.org/fileformat2.html#walformat). */
export function commitsIn(path: string): number {
  const log = readFileSync(`${path}-wal`)
  const frame = 24 + log.readUInt32BE(8)
  const salt = log.subarray(16, 24)
  let commits = 0
  for (let at = 32; at + frame <= log.length; at += frame)
    if (log.readUInt32BE(at + 4) > 0 && log.subarray(at + 8, at + 16).equals(salt)) commits++
  return commits
}

/** Distinguishes a write-ahead log from the one before its restart. */
export const saltOf = (path: string): string => readFileSync(`${path}-wal`).subarray(16, 24).toString('hex')
