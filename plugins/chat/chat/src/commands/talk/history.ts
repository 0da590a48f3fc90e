import { appendFileSync, chmodSync, closeSync, fstatSync, openSync, readSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The lines that were typed, kept in the svc home for the next chat. */
export interface History {
  /** Newest first. */
  readonly lines: readonly string[]
  /** Keeps a line, unless it begins with a blank or is the last one again. Never throws. */
  add(line: string): void
}

const MOST_LINES = 1_000
const MOST_BYTES = 1024 * 1024
const LONGEST = 10_000

/** Reads `<home>/history`, which nobody else may read; without it, or where it cannot be read, a chat just begins with none. */
export function openHistory(home: string): History {
  const file = join(home, 'history')
  // a pipe or a device would hold the chat up
  if (attempt(() => statSync(file).isFile()) === false) return { lines: [], add() {} }
  const { lines, grown } = readLines(file)
  if (grown) rewrite(file, lines)
  let last = lines.at(-1)
  return {
    lines: lines.toReversed(),
    add(line) {
      if (line === last || line.trim() === '' || /^\s/.test(line) || line.length > LONGEST) return
      last = line
      // each line at once: two chats may write, and one may be killed
      attempt(() => appendFileSync(file, `${line}\n`, { mode: 0o600 }))
    },
  }
}

/** The last lines of a file; `grown`: it has so many more that it is time to cut it. */
function readLines(file: string): { lines: string[]; grown: boolean } {
  const { text, size } = attempt(() => tailOf(file)) ?? { text: '', size: 0 }
  const all = text.split('\n').filter(line => line.trim() !== '' && !/\p{Cc}/u.test(line))
  const lines = all.filter((line, at) => line !== all[at - 1]).slice(-MOST_LINES)
  return { lines, grown: all.length > 2 * MOST_LINES || size > MOST_BYTES }
}

function tailOf(file: string): { text: string; size: number } {
  const handle = openSync(file, 'r')
  try {
    const { size } = fstatSync(handle)
    const from = Math.max(0, size - MOST_BYTES)
    const bytes = Buffer.alloc(size - from)
    readSync(handle, bytes, 0, bytes.length, from)
    chmodSync(file, 0o600)
    const text = bytes.toString('utf8')
    return { text: from === 0 ? text : text.slice(text.indexOf('\n') + 1), size }
  } finally {
    closeSync(handle)
  }
}

function rewrite(file: string, lines: readonly string[]): void {
  attempt(() => {
    const next = `${file}.${process.pid}`
    writeFileSync(next, lines.map(line => `${line}\n`).join(''), { mode: 0o600 })
    renameSync(next, file)
  })
}

/** A home that cannot be written spoils the arrow keys, not the chat. */
function attempt<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}
