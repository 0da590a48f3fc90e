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
  type Roots,
} from '@svc/safe-fs'
import { answerOf, objectOf, toolOf } from '@svc/plugin-kit'
import { editBytes, type Edit } from './edit.ts'
import { changedMeanwhile, halfCharacter, isBinary, isNotUtf8, sameText, tooLarge } from './errors.ts'
import { counted, pathOf } from './words.ts'

/** What the schema lets through. */
interface Arguments {
  readonly path: string
  readonly old_text: string
  readonly new_text: string
  readonly all?: boolean
}

/** Makes `edit_file`: replaces text that is told exactly in a file within the roots, of at most `maxBytes`. */
export function createEditFile(roots: Roots, maxBytes: number, alone: Alone): Tool {
  return toolOf<Arguments>({
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
    result: objectOf({
      path: { type: 'string' },
      replacements: { type: 'integer' },
      line: { type: 'integer', description: 'the line of the first one' },
      bytes: { type: 'integer', description: 'of the whole file now' },
    }),
    async call({ path, old_text, new_text, all = false }, { signal }) {
      if (old_text === '' || old_text === new_text) throw sameText(path)
      if (!old_text.isWellFormed() || !new_text.isWellFormed()) throw halfCharacter(path)
      const place = await roots.find(path)
      return alone(place.real, () =>
        inWords(place.shown, signal, async () => {
          const edit = { path: place.shown, oldText: old_text, newText: new_text, all }
          const { replacements, line, bytes } = await replace(roots, place, edit, maxBytes, signal)
          const words = `Edited ${place.shown}: ${counted(replacements, 'replacement')}, the first in line ${line}.`
          return answerOf(words, { path: place.shown, replacements, line, bytes: bytes.length })
        })
      )
    },
  })
}

async function replace(roots: Roots, place: Place, edit: Edit, most: number, signal: AbortSignal) {
  await using folder = await openToChange(roots, { real: dirname(place.real), shown: place.shown }, basename(place.real))
  const name = basename(place.real)
  await using opened = await openFileIn(folder, name, place.shown)
  const before = await opened.handle.stat({ bigint: true })
  const edited = await editBytes(await textOf(opened, place.shown, most, signal), edit, most, signal)
  const check = () => unchanged(folder, name, before, place.shown)
  await putFile(folder, name, { bytes: edited.bytes, instead: opened.stats, check }, signal)
  return edited
}

/** The text of a file, as bytes; a byte order mark stays in it. */
async function textOf(opened: Opened, shown: string, most: number, signal: AbortSignal): Promise<Buffer> {
  const bytes = await readWhole(opened, most, signal)
  if (!bytes) throw tooLarge(shown, (await opened.handle.stat()).size, most)
  if (bytes.includes(0)) throw isBinary(shown, bytes.length)
  if (!isUtf8(bytes)) throw isNotUtf8(shown)
  return bytes
}

/** Somebody else may have written the file while the edit was made: theirs must not be lost. */
async function unchanged(folder: Folder, name: string, before: BigIntStats, shown: string): Promise<void> {
  const now = await lstat(folder.at(name), { bigint: true })
  const same = (['dev', 'ino', 'size', 'mtimeNs', 'ctimeNs'] as const).every(key => now[key] === before[key])
  if (!same) throw changedMeanwhile(shown)
}
