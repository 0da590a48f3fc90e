import { isUtf8 } from 'node:buffer'
import { type BigIntStats } from 'node:fs'
import { lstat } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import type { Tool } from '@svc/core/contracts'
import {
  type Alone,
  type Folder,
  inWords,
  type Opened,
  openFileIn,
  openToChange,
  type Place,
  putFile,
  readWhole,
  refuseRun,
  type Roots,
} from '@svc/roots'
import { type Edited, editText } from './edit.ts'
import { changedMeanwhile, isBinary, isNotUtf8, sameText, tooLarge } from './errors.ts'
import { answer, counted, inOneLine, pathOf } from './words.ts'

/** What the schema lets through. */
interface Arguments {
  readonly path: string
  readonly old_text: string
  readonly new_text: string
  readonly all?: boolean
}

/** Makes `edit_file`: replaces text that is told exactly in a file within the roots, of at most `maxBytes`. */
export function createEditFile(roots: Roots, maxBytes: number, alone: Alone): Tool {
  return {
    description: `Replaces a piece of a text file. old_text must be in the file exactly once, blanks and line ends included; with all: true every occurrence is replaced. ${roots.words}`,
    category: 'files',
    effects: ['read', 'write'],
    parameters: {
      type: 'object',
      properties: {
        path: pathOf('the file to edit'),
        old_text: { type: 'string', minLength: 1, description: 'the text to replace, as read_file shows it' },
        new_text: { type: 'string', description: 'what stands there afterwards; empty to take it out' },
        all: { type: 'boolean', description: 'whether to replace it wherever it is; default false' },
      },
      required: ['path', 'old_text', 'new_text'],
      additionalProperties: false,
    },
    result: answer({
      path: { type: 'string' },
      replacements: { type: 'integer' },
      line: { type: 'integer', description: 'the line of the first one' },
      bytes: { type: 'integer', description: 'of the whole file now' },
    }),
    async call(args, { signal }) {
      signal.throwIfAborted()
      const { path, old_text, new_text, all = false } = args as unknown as Arguments
      if (old_text === '' || old_text === new_text) throw sameText(path)
      const place = await roots.find(path)
      refuseRun(place.real, place.shown)
      return alone(place.real, () =>
        inWords(place.shown, signal, async () => {
          const change = (text: string) => editText(place.shown, text, old_text, new_text, all)
          const { edited, bytes } = await replace(roots, place, maxBytes, change, signal)
          const words = `Edited ${place.shown}: ${counted(edited.replacements, 'replacement')}, the first in line ${edited.line}.`
          return inOneLine(words, { path: place.shown, replacements: edited.replacements, line: edited.line, bytes })
        })
      )
    },
  }
}

async function replace(roots: Roots, place: Place, most: number, change: (text: string) => Edited, signal: AbortSignal) {
  await using folder = await openToChange(roots, { real: dirname(place.real), shown: place.shown })
  const name = basename(place.real)
  await using opened = await openFileIn(folder, name, place.shown)
  const before = await opened.handle.stat({ bigint: true })
  const edited = change(await textOf(opened, place.shown, most, signal))
  const bytes = Buffer.from(edited.text)
  if (bytes.length > most) throw tooLarge(place.shown, bytes.length, most)
  const check = () => unchanged(folder, name, before, place.shown)
  await putFile(folder, name, { bytes, instead: opened.stats, check }, signal)
  return { edited, bytes: bytes.length }
}

/** The text of a file; a byte order mark stays in it. */
async function textOf(opened: Opened, shown: string, most: number, signal: AbortSignal): Promise<string> {
  const bytes = await readWhole(opened, most, signal)
  if (!bytes) throw tooLarge(shown, (await opened.handle.stat()).size, most)
  if (bytes.includes(0)) throw isBinary(shown, bytes.length)
  if (!isUtf8(bytes)) throw isNotUtf8(shown)
  return bytes.toString()
}

/** Somebody else may have written the file while the edit was made: theirs must not be lost. */
async function unchanged(folder: Folder, name: string, before: BigIntStats, shown: string): Promise<void> {
  const now = await lstat(folder.at(name), { bigint: true })
  const same = (['dev', 'ino', 'size', 'mtimeNs', 'ctimeNs'] as const).every(key => now[key] === before[key])
  if (!same) throw changedMeanwhile(shown)
}
