import { type Yielder, createYielder } from '@svc/safe-fs'
import { manyMatches, noMatch, tooLarge } from './errors.ts'
import { finder } from './find-text.ts'
import { nearby } from './nearby.ts'

/** What to put where; both texts hold whole characters only. */
export interface Edit {
  /** The file, as it is told. */
  readonly path: string
  readonly oldText: string
  readonly newText: string
  /** Every time it is there, not the only time. */
  readonly all: boolean
}

/** What an edit did. */
export interface Edited {
  readonly bytes: Buffer
  readonly replacements: number
  /** The line of the first replacement. */
  readonly line: number
}

const LINES = 10

/**
 * Replaces a piece of text in the bytes of a file in UTF-8. Nothing is built that has more than `most` bytes, and others work in between. Throws EDIT_NO_MATCH,
 * EDIT_MANY_MATCHES, FILE_TOO_LARGE.
 */
export async function editBytes(bytes: Buffer, edit: Edit, most: number, signal: AbortSignal): Promise<Edited> {
  const { path, oldText, all } = edit
  const breath = createYielder(signal)
  const pieces = { text: bytes.toString('latin1'), old: Buffer.from(oldText).toString('latin1'), by: Buffer.from(edit.newText) }
  const { count, lines } = await countPlaces(pieces, breath)
  if (count === 0) throw noMatch(path, await nearby(bytes, oldText, breath))
  if (count > 1 && !all) throw manyMatches(path, count, wordsOf(lines, count))
  const size = bytes.length + count * (pieces.by.length - pieces.old.length)
  if (size > most) throw tooLarge(path, size, most)
  return { bytes: await replaced(bytes, pieces, size, breath), replacements: count, line: lines[0]! }
}

/** A file and what is sought in it as one character for each byte, by which places are found fast; and what takes the place. */
interface Pieces {
  readonly text: string
  readonly old: string
  readonly by: Buffer
}

/** How often it is there, and in which lines the first ones are. */
async function countPlaces({ text, old }: Pieces, breath: Yielder): Promise<{ count: number; lines: number[] }> {
  const lines: number[] = []
  let [count, line, seen] = [0, 1, 0]
  const find = finder(text, old)
  for (let at = find(0); at !== -1; at = find(at + old.length)) {
    if (breath.isDue()) await breath.take()
    if (++count > LINES) continue
    for (; seen < at; seen++) if (text.charCodeAt(seen) === NEWLINE) line++
    lines.push(line)
  }
  return { count, lines }
}

const NEWLINE = 10

async function replaced(bytes: Buffer, { text, old, by }: Pieces, size: number, breath: Yielder): Promise<Buffer> {
  const room = Buffer.allocUnsafe(size)
  let [from, to] = [0, 0]
  const find = finder(text, old)
  for (let at = find(0); at !== -1; at = find(from)) {
    if (breath.isDue()) await breath.take()
    to += bytes.copy(room, to, from, at)
    to += by.copy(room, to)
    from = at + old.length
  }
  bytes.copy(room, to, from)
  return room
}

const wordsOf = (lines: readonly number[], count: number) =>
  `${lines.length === 1 ? 'line' : 'lines'} ${lines.join(', ')}${count > lines.length ? ', …' : ''}`
