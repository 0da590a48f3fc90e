import type { Dirent } from 'node:fs'
import { lstat, opendir, readdir, rmdir, unlink } from 'node:fs/promises'
import { codeOf } from '@svc/core'
import type { Tool } from '@svc/core/contracts'
import {
  realOf,
  type Folder,
  withPathErrors,
  missing,
  isGitFolder,
  isProtected,
  openFolderIn,
  openToChange,
  refuseName,
  type Roots,
} from '@svc/safe-fs'
import { answerOf, objectOf, toolOf } from '@svc/plugin-kit'
import { notEmpty, tooMany } from './errors.ts'
import { counted, pathOf, refuseRoots } from './paths.ts'

/** Creates `delete_file`. It deletes a file, a link or a folder within the roots; folder contents only if asked, and at most `most` entries. */
export function createDeleteFile(roots: Roots, most: number): Tool {
  return toolOf<{ readonly path: string; readonly recursive?: boolean }>({
    description: `Deletes a file, a link (never its target) or an empty folder. With recursive: true, deletes a folder and its contents. ${roots.words}`,
    category: 'files',
    effects: ['write'],
    workplace: true,
    parameters: {
      type: 'object',
      properties: {
        path: pathOf('path to delete'),
        recursive: { type: 'boolean', description: 'whether to delete the contents of a folder, too; default false' },
      },
      required: ['path'],
      additionalProperties: false,
    },
    result: objectOf({
      path: { type: 'string' },
      type: { enum: ['file', 'directory', 'link', 'other'] },
      deleted: { type: 'integer', description: 'number of deleted entries' },
    }),
    async call({ path, recursive = false }, { signal }) {
      const target = await roots.target(path)
      if (target.steps.length > 0) throw missing(target.shown)
      refuseRoots(roots, realOf(target), target.shown)
      return withPathErrors(target.shown, signal, async () => {
        await using folder = await openToChange(roots, { ...target.folder, shown: target.shown }, target.name)
        const { type, deleted } = await remove({ folder, name: target.name, shown: target.shown }, recursive ? most : 1, signal)
        await folder.handle.sync()
        const words = `Deleted ${target.shown}${deleted > 1 ? `: ${counted(deleted, 'entry', 'entries')}` : ''}.`
        return answerOf(words, { path: target.shown, type, deleted })
      })
    },
  })
}

interface Entry {
  readonly folder: Folder
  readonly name: string
  readonly shown: string
}

async function remove(entry: Entry, most: number, signal: AbortSignal) {
  const stats = await lstat(entry.folder.at(entry.name))
  if (!stats.isDirectory()) {
    await unlink(entry.folder.at(entry.name))
    const type = stats.isFile() ? 'file' : stats.isSymbolicLink() ? 'link' : 'other'
    return { type, deleted: 1 }
  }
  const recursive = most > 1
  // Count first, so that nothing is deleted if there are too many entries or a repository.
  const found = recursive ? await count(entry, most, signal) : 1
  if (found > most) throw tooMany(entry.shown, most)
  const deleted = recursive ? await clear(entry, signal) : 0
  await rmdir(entry.folder.at(entry.name)).catch((error: unknown) => {
    throw /^(ENOTEMPTY|EEXIST)$/.test(codeOf(error) ?? '') ? notEmpty(entry.shown) : error
  })
  return { type: 'directory', deleted: deleted + 1 }
}

/** Counts the entries of a folder, including itself. Stops beyond `most`. */
async function count(entry: Entry, most: number, signal: AbortSignal): Promise<number> {
  await using folder = await openFolderIn(entry.folder, entry.name, entry.shown)
  let found = 1
  if (isGitFolder(await readdir(folder.at('.')))) throw isProtected(entry.shown, 'belongs to git and is read-only')
  for await (const item of await opendir(folder.at('.'))) {
    signal.throwIfAborted()
    const shown = `${entry.shown}/${item.name}`
    refuseName(shown, shown)
    // check before going deeper, because each folder on the path stays open
    if (found >= most) return most + 1
    found += item.isDirectory() ? await count({ folder, name: item.name, shown }, most - found, signal) : 1
  }
  return found
}

/** Deletes the contents of a folder through its descriptor. Links are deleted, not followed. */
async function clear(entry: Entry, signal: AbortSignal): Promise<number> {
  await using folder = await openFolderIn(entry.folder, entry.name, entry.shown)
  const entries: Dirent[] = []
  for await (const item of await opendir(folder.at('.'))) entries.push(item)
  let deleted = 0
  for (const item of entries) {
    signal.throwIfAborted()
    const inner = { folder, name: item.name, shown: `${entry.shown}/${item.name}` }
    if (item.isDirectory()) {
      deleted += await clear(inner, signal)
      await rmdir(folder.at(item.name))
    } else await unlink(folder.at(item.name))
    deleted++
  }
  return deleted
}
