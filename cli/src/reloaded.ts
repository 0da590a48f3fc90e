import { relative } from 'node:path'
import { milliseconds } from './command/text.ts'

/** Tells whoever writes a plugin which files were taken up, and how long that took. */
export function tellReloaded(folder: string, files: readonly string[], ms: number): void {
  const names = files.map(file => relative(folder, file)).join(', ')
  process.stderr.write(`${names}: taken up in ${milliseconds(ms)}\n`)
}
