import { lstat, rename, unlink } from 'node:fs/promises'
import { codeOf } from '@svc/core'
import type { Tool } from '@svc/core/contracts'
import {
  realOf,
  claim,
  exists,
  type Folder,
  withPathErrors,
  isSpecial,
  missing,
  openForTarget,
  openToChange,
  refuseMoveOf,
  type Roots,
  type Target,
} from '@svc/safe-fs'
import { answerOf, objectOf, toolOf } from '@svc/plugin-kit'
import { elsewhere, intoItself } from './errors.ts'
import { pathOf, refuseRoots } from './paths.ts'

/** Arguments as the schema allows them. */
interface Arguments {
  readonly from: string
  readonly to: string
  readonly overwrite?: boolean
}

/** Creates `move_file`, which moves or renames a file, folder or link within the roots. */
export function createMoveFile(roots: Roots): Tool {
  return toolOf<Arguments>({
    description: `Moves or renames a file or folder, and creates missing folders. Moves links themselves. Replaces a file only with overwrite: true, and never a folder. ${roots.words}`,
    category: 'files',
    effects: ['write'],
    workplace: true,
    parameters: {
      type: 'object',
      properties: {
        from: pathOf('path to move'),
        to: pathOf('new path, including the name'),
        overwrite: { type: 'boolean', description: 'whether to replace an existing file; default false' },
      },
      required: ['from', 'to'],
      additionalProperties: false,
    },
    result: objectOf({
      from: { type: 'string' },
      to: { type: 'string' },
      type: { enum: ['file', 'directory', 'link'] },
      replaced: { type: 'boolean' },
    }),
    async call({ from, to, overwrite = false }, { signal }) {
      const [source, target] = [await roots.target(from), await roots.target(to)]
      check(roots, source, target)
      return withPathErrors(source.shown, signal, async () => {
        await using here = await openToChange(roots, { ...source.folder, shown: source.shown }, source.name)
        const type = await typeAt(here, source)
        if (type === 'directory') await refuseMoveOf(here.at(source.name), source.shown, target.shown, signal)
        await using there = await openForTarget(roots, target, signal)
        signal.throwIfAborted()
        const replaced = await move({ ...source, folder: here }, { ...target, folder: there }, type, overwrite)
        const words = `Moved ${source.shown} to ${target.shown}${replaced ? ', replacing an existing file' : ''}.`
        return answerOf(words, { from: source.shown, to: target.shown, type, replaced })
      })
    },
  })
}

function check(roots: Roots, source: Target, target: Target): void {
  if (source.steps.length > 0) throw missing(source.shown)
  const [from, to] = [realOf(source), realOf(target)]
  refuseRoots(roots, from, source.shown)
  if (to.startsWith(`${from}/`)) throw intoItself(source.shown)
}

async function typeAt(folder: Folder, { name, shown }: Target): Promise<'file' | 'directory' | 'link'> {
  const stats = await lstat(folder.at(name))
  if (stats.isSymbolicLink()) return 'link'
  if (stats.isDirectory()) return 'directory'
  if (!stats.isFile()) throw isSpecial(shown)
  return 'file'
}

type End = Omit<Target, 'folder'> & { readonly folder: Folder }

async function move(from: End, to: End, type: 'file' | 'directory' | 'link', overwrite: boolean): Promise<boolean> {
  const [here, there] = [from.folder.at(from.name), to.folder.at(to.name)]
  const old = await lstat(there).catch(() => undefined)
  if (old?.isDirectory()) throw exists(to.shown, 'as a directory; name the file in it')
  if (old && (!overwrite || type === 'directory')) throw exists(to.shown, 'set overwrite to true to replace a file')
  if (old && !old.isFile() && !old.isSymbolicLink()) throw isSpecial(to.shown)
  try {
    // the system refuses to replace a file or a non-empty folder with a folder
    await (old || type === 'directory' ? rename(here, there) : claim(here, there))
    // rename keeps both names if they are links to the same file
    if (old) await unlink(here).catch(() => {})
  } catch (error) {
    throw inTheirWords(error, from.shown, to.shown)
  }
  await to.folder.handle.sync()
  return old !== undefined
}

function inTheirWords(error: unknown, from: string, to: string): unknown {
  const code = codeOf(error)
  if (code === 'EXDEV') return elsewhere(to)
  if (code === 'EINVAL') return intoItself(from)
  return code === 'EEXIST' || code === 'ENOTEMPTY' ? exists(to, 'set overwrite to true to replace a file') : error
}
