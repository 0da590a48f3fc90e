import { createYielder, type Yielder } from '@svc/core'
import { manyMatches, noMatch, tooLarge } from './errors.ts'
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

/** Up to here what the engine does is fastest, and never slow. */
const SHORT = 32

/**
 * Finds the places of a part in a text, from any place on: in linear time (Knuth, Morris, Pratt), where `indexOf` takes the product of both lengths for texts that
 * are made for it. Answers -1 where there is none.
 */
function finder(text: string, part: string): (from: number) => number {
  if (part.length <= SHORT) return from => text.indexOf(part, from)
  const borders = bordersOf(part)
  return from => {
    for (let at = from, fit = 0; at < text.length; at++) {
      const code = text.charCodeAt(at)
      while (fit > 0 && part.charCodeAt(fit) !== code) fit = borders[fit - 1]!
      if (part.charCodeAt(fit) === code) fit++
      if (fit === part.length) return at - part.length + 1
    }
    return -1
  }
}

/** Of each beginning of a part, how long the longest piece is that both begins and ends it. */
function bordersOf(part: string): Int32Array {
  const borders = new Int32Array(part.length)
  for (let at = 1, fit = 0; at < part.length; at++) {
    while (fit > 0 && part.charCodeAt(at) !== part.charCodeAt(fit)) fit = borders[fit - 1]!
    if (part.charCodeAt(at) === part.charCodeAt(fit)) fit++
    borders[at] = fit
  }
  return borders
}
