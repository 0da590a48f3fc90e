import { hash } from 'node:crypto'
import { existsSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

/** A name beside a file for what is not that file yet: short, so that it can be had wherever the file's own can. */
export const partialOf = (file: string): string =>
  join(dirname(file), `.svc-partial-${process.pid}-${hash('sha256', basename(file)).slice(0, 8)}`)

/** Takes away what is left under that name, with all that SQLite puts beside it. */
export function dropPartial(partial: string): void {
  for (const side of ['', '-wal', '-shm', '-journal']) if (existsSync(partial + side)) rmSync(partial + side)
}
