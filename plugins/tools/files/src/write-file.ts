import { lstat } from 'node:fs/promises'
import type { Tool } from '@svc/core/contracts'
import {
  realOf,
  type KeyedLock,
  exists,
  type Folder,
  withPathErrors,
  invalidPath,
  isDirectory,
  isSpecial,
  openForTarget,
  outside,
  putFile,
  type Roots,
  type Target,
} from '@svc/safe-fs'
import { answerOf, objectOf, toolOf } from '@svc/plugin-kit'
import { tooLarge } from './errors.ts'
import { counted, pathOf } from './paths.ts'

/** Arguments as the schema allows them. */
interface Arguments {
  readonly path: string
  readonly content: string
  readonly overwrite?: boolean
}

/** Creates `write_file`, which writes a text file within the roots, of at most `maxBytes`. */
export function createWriteFile(roots: Roots, maxBytes: number, alone: KeyedLock): Tool {
  return toolOf<Arguments>({
    description: `Writes a text file, and creates missing folders. Replaces an existing file only with overwrite: true. ${roots.words}`,
    category: 'files',
    effects: ['write'],
    workplace: true,
    parameters: {
      type: 'object',
      properties: {
        path: pathOf('file to write'),
        content: { type: 'string', description: 'complete content of the file' },
        overwrite: { type: 'boolean', description: 'whether to replace an existing file; default false' },
      },
      required: ['path', 'content'],
      additionalProperties: false,
    },
    result: objectOf({ path: { type: 'string' }, bytes: { type: 'integer' }, created: { type: 'boolean' } }),
    async call({ path, content, overwrite = false }, { signal }) {
      const bytes = Buffer.from(content)
      if (bytes.length > maxBytes) throw tooLarge(path, bytes.length, maxBytes)
      const target = await whereTo(roots, path)
      return alone(target.real, () =>
        withPathErrors(target.shown, signal, async () => {
          await using folder = await openForTarget(roots, target, signal)
          const instead = await whatIsThere(folder, target)
          if (instead && !overwrite) throw alreadyThere(target.shown)
          await putFile(folder, target.name, { bytes, ...(instead ? { instead } : {}) }, signal).catch((error: unknown) => {
            throw (error as { code?: unknown }).code === 'EEXIST' ? alreadyThere(target.shown) : error
          })
          const words = `${instead ? 'Replaced' : 'Created'} ${target.shown}: ${counted(bytes.length, 'byte')}.`
          return answerOf(words, { path: target.shown, bytes: bytes.length, created: !instead })
        })
      )
    },
  })
}

const alreadyThere = (shown: string) => exists(shown, 'set overwrite to true to replace it, or use edit_file')

/** The target of a write. A link within the roots is followed to its file. */
async function whereTo(roots: Roots, path: string): Promise<Target & { readonly real: string }> {
  if (/[/\\]$/.test(path)) throw invalidPath(path, 'it ends with a slash, like a folder')
  const target = await targetOf(roots, path)
  return { ...target, real: realOf(target) }
}

async function targetOf(roots: Roots, path: string): Promise<Target> {
  const target = await roots.target(path)
  const isLink = target.steps.length === 0 && (await lstat(`${target.folder.real}/${target.name}`).catch(() => undefined))
  if (!isLink || !isLink.isSymbolicLink()) return target
  const { real } = await roots.find(path)
  const behind = await roots.target(real)
  return { ...behind, shown: target.shown }
}

async function whatIsThere(folder: Folder, { name, shown }: Target) {
  const stats = await lstat(folder.at(name)).catch(() => undefined)
  if (!stats || stats.isFile()) return stats
  throw stats.isDirectory() ? isDirectory(shown) : stats.isSymbolicLink() ? outside(shown) : isSpecial(shown)
}
