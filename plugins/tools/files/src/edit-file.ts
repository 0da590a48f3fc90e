import { isUtf8 } from 'node:buffer'
import type { BigIntStats } from 'node:fs'
import { lstat } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { createYielder, type Yielder } from '@svc/core'
import type { Tool } from '@svc/core/contracts'
import { answerOf, objectOf, toolOf } from '@svc/plugin-kit'
import {
  type KeyedLock,
  type Folder,
  withPathErrors,
  type Opened,
  openFileIn,
  openToChange,
  type ResolvedPath,
  putFile,
  readWhole,
  type Roots,
} from '@svc/safe-fs'
import { changedMeanwhile, halfCharacter, isBinary, isNotUtf8, manyMatches, noMatch, sameText, tooLarge } from './errors.ts'
import { counted, pathOf } from './paths.ts'

/** Arguments as the schema allows them. */
interface Arguments {
  readonly path: string
  readonly old_text: string
  readonly new_text: string
  readonly all?: boolean
}

/** Creates `edit_file`, which replaces an exact text in a file within the roots, of at most `maxBytes`. */
export function createEditFile(roots: Roots, maxBytes: number, alone: KeyedLock): Tool {
  return toolOf<Arguments>({
    description: `Replaces text in a text file. The file must contain old_text exactly once, including blanks and line ends. With all: true, replaces every occurrence. ${roots.words}`,
    category: 'files',
    effects: ['read', 'write'],
    workplace: true,
    parameters: {
      type: 'object',
      properties: {
        path: pathOf('file to edit'),
        old_text: { type: 'string', minLength: 1, description: 'the text to replace, as read_file shows it' },
        new_text: { type: 'string', description: 'the new text; empty to remove old_text' },
        all: { type: 'boolean', description: 'whether to replace every occurrence; default false' },
      },
      required: ['path', 'old_text', 'new_text'],
      additionalProperties: false,
    },
    result: objectOf({
      path: { type: 'string' },
      replacements: { type: 'integer' },
      line: { type: 'integer', description: 'line of the first replacement' },
      bytes: { type: 'integer', description: 'new size of the file' },
    }),
    async call({ path, old_text, new_text, all = false }, { signal }) {
      if (old_text === '' || old_text === new_text) throw sameText(path)
      if (!old_text.isWellFormed() || !new_text.isWellFormed()) throw halfCharacter(path)
      const place = await roots.find(path)
      return alone(place.real, () =>
        withPathErrors(place.shown, signal, async () => {
          const edit = { path: place.shown, oldText: old_text, newText: new_text, all }
          const { replacements, line, bytes } = await replace(roots, place, edit, maxBytes, signal)
          const words = `Edited ${place.shown}: ${counted(replacements, 'replacement')}, the first in line ${line}.`
          return answerOf(words, { path: place.shown, replacements, line, bytes: bytes.length })
        })
      )
    },
  })
}

async function replace(roots: Roots, place: ResolvedPath, edit: Edit, most: number, signal: AbortSignal) {
  await using folder = await openToChange(roots, { real: dirname(place.real), shown: place.shown }, basename(place.real))
  const name = basename(place.real)
  await using opened = await openFileIn(folder, name, place.shown)
  const before = await opened.handle.stat({ bigint: true })
  const edited = await editBytes(await textOf(opened, place.shown, most, signal), edit, most, signal)
  const check = () => unchanged(folder, name, before, place.shown)
  await putFile(folder, name, { bytes: edited.bytes, instead: opened.stats, check }, signal)
  return edited
}

/** The bytes of a text file, including a byte order mark. */
async function textOf(opened: Opened, shown: string, most: number, signal: AbortSignal): Promise<Buffer> {
  const bytes = await readWhole(opened, most, signal)
  if (!bytes) throw tooLarge(shown, (await opened.handle.stat()).size, most)
  if (bytes.includes(0)) throw isBinary(shown, bytes.length)
  if (!isUtf8(bytes)) throw isNotUtf8(shown)
  return bytes
}

/** Throws FILE_CHANGED if another program changed the file during the edit. */
async function unchanged(folder: Folder, name: string, before: BigIntStats, shown: string): Promise<void> {
  const now = await lstat(folder.at(name), { bigint: true })
  const same = (['dev', 'ino', 'size', 'mtimeNs', 'ctimeNs'] as const).every(key => now[key] === before[key])
  if (!same) throw changedMeanwhile(shown)
}

/** An edit. Both texts contain only complete characters. */
interface Edit {
  /** The reported path of the file. */
  readonly path: string
  readonly oldText: string
  readonly newText: string
  /** Whether to replace every occurrence. */
  readonly all: boolean
}

/** The result of an edit. */
interface Edited {
  readonly bytes: Buffer
  readonly replacements: number
  /** The line of the first replacement. */
  readonly line: number
}

const LINES = 10

/**
 * Replaces text in the bytes of a UTF-8 file. Allocates at most `most` bytes, and yields to other work. Throws EDIT_NO_MATCH,
 * EDIT_MANY_MATCHES, FILE_TOO_LARGE.
 */
export async function editBytes(bytes: Buffer, edit: Edit, most: number, signal: AbortSignal): Promise<Edited> {
  const { path, oldText, all } = edit
  const yielder = createYielder(signal)
  const pieces = { text: bytes.toString('latin1'), old: Buffer.from(oldText).toString('latin1'), by: Buffer.from(edit.newText) }
  const { count, lines } = await countPlaces(pieces, yielder)
  if (count === 0) throw noMatch(path, await nearby(bytes, oldText, yielder))
  if (count > 1 && !all) throw manyMatches(path, count, wordsOf(lines, count))
  const size = bytes.length + count * (pieces.by.length - pieces.old.length)
  if (size > most) throw tooLarge(path, size, most)
  return { bytes: await replaced(bytes, pieces, size, yielder), replacements: count, line: lines[0]! }
}

/** The file and the search text as Latin-1, with a character for each byte, which makes searching fast; and the replacement. */
interface Pieces {
  readonly text: string
  readonly old: string
  readonly by: Buffer
}

/** The number of occurrences, and the lines of the first ones. */
async function countPlaces({ text, old }: Pieces, yielder: Yielder): Promise<{ count: number; lines: number[] }> {
  const lines: number[] = []
  let [count, line, seen] = [0, 1, 0]
  const find = finder(text, old)
  for (let at = find(0); at !== -1; at = find(at + old.length)) {
    if (yielder.isDue()) await yielder.take()
    if (++count > LINES) continue
    for (; seen < at; seen++) if (text.charCodeAt(seen) === NEWLINE) line++
    lines.push(line)
  }
  return { count, lines }
}

const NEWLINE = 10

async function replaced(bytes: Buffer, { text, old, by }: Pieces, size: number, yielder: Yielder): Promise<Buffer> {
  const room = Buffer.allocUnsafe(size)
  let [from, to] = [0, 0]
  const find = finder(text, old)
  for (let at = find(0); at !== -1; at = find(from)) {
    if (yielder.isDue()) await yielder.take()
    to += bytes.copy(room, to, from, at)
    to += by.copy(room, to)
    from = at + old.length
  }
  bytes.copy(room, to, from)
  return room
}

const wordsOf = (lines: readonly number[], count: number) =>
  `${lines.length === 1 ? 'line' : 'lines'} ${lines.join(', ')}${count > lines.length ? ', …' : ''}`

/** For shorter texts, `indexOf` is fastest and never slow. */
const SHORT = 32

/**
 * Finds occurrences of a part in linear time (Knuth, Morris, Pratt). `indexOf` takes the product of both lengths for hostile
 * texts. Returns -1 if there is none.
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

/** For each prefix of a part, the length of its longest proper border. */
function bordersOf(part: string): Int32Array {
  const borders = new Int32Array(part.length)
  for (let at = 1, fit = 0; at < part.length; at++) {
    while (fit > 0 && part.charCodeAt(at) !== part.charCodeAt(fit)) fit = borders[fit - 1]!
    if (part.charCodeAt(at) === part.charCodeAt(fit)) fit++
    borders[at] = fit
  }
  return borders
}

const NEAR = 3
const SHOWN = 160
/** Number of compared characters of a line and of the search text. */
const COMPARED = 2000
/** Maximum number of non-empty lines to compare. */
const LOOKED_AT = 200_000

/** Lines that nearly match a text: they differ only in blanks, or contain its first line. Bounded, and yields to other work. */
async function nearby(bytes: Buffer, oldText: string, yielder: Yielder): Promise<string> {
  const wanted = oldText.slice(0, COMPARED).split('\n').map(plain).find(Boolean)
  if (wanted === undefined) return ''
  const ends = bytes.includes('\r\n') && !oldText.includes('\r\n') ? ' Lines of this file end with \\r\\n.' : ''
  const found: string[] = []
  let [line, looked] = [0, 0]
  for (let at = 0; at < bytes.length && found.length < NEAR && looked < LOOKED_AT; ) {
    if (yielder.isDue()) await yielder.take()
    line++
    const newline = bytes[at] === NEWLINE ? at : bytes.indexOf(NEWLINE, at)
    const end = newline === -1 ? bytes.length : newline
    if (end > at) {
      looked++
      const text = bytes.toString('utf8', at, Math.min(end, at + COMPARED))
      if (isNear(plain(text), wanted)) found.push(`${line}: ${cut(text)}`)
    }
    at = end + 1
  }
  return found.length === 0 ? ends : `${ends} Similar lines, by line number:\n${found.join('\n')}`
}

const plain = (line: string) => line.replace(/\s+/g, ' ').trim()
const cut = (line: string) => (line.length > SHOWN ? `${line.slice(0, SHOWN)}…` : line)
const isNear = (line: string, wanted: string) =>
  line === wanted || (wanted.length > 3 && line.includes(wanted)) || line.toLowerCase() === wanted.toLowerCase()
