import { lstat, opendir } from 'node:fs/promises'
import {
  withPathErrors,
  isDirectory,
  isSpecial,
  openFolder,
  openForTarget,
  openPlace,
  openRoots,
  type ProtectedView,
  putFile,
  readWhole,
  type Roots,
} from '@svc/safe-fs'
import { refused } from './errors.ts'
import { MOST_CHARACTERS } from './messages.ts'

/** File access of guests, within their folders. */
export interface GuestFiles {
  read(path: string, signal: AbortSignal): Promise<string>
  /** Replaces an existing file. */
  write(path: string, content: string, signal: AbortSignal): Promise<null>
  list(path: string, signal: AbortSignal): Promise<readonly { readonly name: string; readonly type: string }[]>
}

const MOST_ENTRIES = 10_000

/** Opens folders for guests. Throws CONFIG_INVALID for a path that is not a folder. */
export async function openGuestFiles(paths: readonly string[], protectedPaths?: ProtectedView): Promise<GuestFiles> {
  const roots = await openRoots(paths, 'allowed_paths', protectedPaths ? { protectedPaths } : {})
  return {
    read: (path, signal) => readText(roots, path, signal),
    write: (path, content, signal) => writeText(roots, path, content, signal),
    list: (path, signal) => listEntries(roots, path, signal),
  }
}

async function readText(roots: Roots, path: string, signal: AbortSignal): Promise<string> {
  const place = await roots.find(path)
  await using opened = await openPlace(roots, place, 'file')
  const bytes = await withPathErrors(place.shown, signal, () => readWhole(opened, MOST_CHARACTERS, signal))
  if (!bytes) throw refused(`"${place.shown}" has more than ${MOST_CHARACTERS} bytes`)
  return new TextDecoder().decode(bytes)
}

async function writeText(roots: Roots, path: string, content: string, signal: AbortSignal): Promise<null> {
  const target = await roots.target(path)
  return withPathErrors(target.shown, signal, async () => {
    await using folder = await openForTarget(roots, target, signal)
    const there = await lstat(folder.at(target.name)).catch(() => undefined)
    if (there?.isDirectory()) throw isDirectory(target.shown)
    if (there && !there.isFile()) throw isSpecial(target.shown)
    await putFile(folder, target.name, { bytes: Buffer.from(content), ...(there ? { instead: there } : {}) }, signal)
    return null
  })
}

async function listEntries(roots: Roots, path: string, signal: AbortSignal) {
  if (roots.isAll(path)) return roots.labels.map(name => ({ name, type: 'directory' }))
  const place = await roots.find(path)
  await using folder = await openFolder(roots, place)
  return await withPathErrors(place.shown, signal, async () => {
    const found: { name: string; type: string }[] = []
    for await (const entry of await opendir(folder.at('.'))) {
      signal.throwIfAborted()
      if (found.length === MOST_ENTRIES) throw refused(`"${place.shown}" has more than ${MOST_ENTRIES} entries`)
      const type = entry.isDirectory() ? 'directory' : entry.isFile() ? 'file' : entry.isSymbolicLink() ? 'link' : 'other'
      found.push({ name: entry.name, type })
    }
    return found.sort((a, b) => (a.name < b.name ? -1 : 1))
  })
}
