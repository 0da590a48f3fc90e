import { randomUUID } from 'node:crypto'
import { constants, type Stats } from 'node:fs'
import { type FileHandle, link, lstat, mkdir, open, readlink, realpath, rename, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from '@svc/core'
import { fromSystem, isDirectory, isNoDirectory, isPathError, isSpecial, notSafeHere, outside } from './errors.ts'
import type { ResolvedPath, Roots, Target } from './roots.ts'

/** An open file or directory whose kind and location were checked. */
export interface Opened extends AsyncDisposable {
  readonly handle: FileHandle
  readonly stats: Stats
}

/** An open directory. Its entries are accessed through its descriptor, even if another program changes its path. */
export interface Folder extends Opened {
  readonly shown: string
  /** The path of an entry for node:fs, through the descriptor if the system supports such paths. */
  at(name: string): string
  /** Whether `at` uses the descriptor. */
  readonly solid: boolean
  readonly roots: Roots
}

type Kind = 'file' | 'directory'

// Do not block on a pipe or terminal, and do not follow a link in the last step.
const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW | constants.O_NOCTTY

/** Opens a resolved path. The open file is within the roots and of this kind, even if the path changes meanwhile. */
export async function openPlace(roots: Roots, place: ResolvedPath, kind: Kind): Promise<Opened> {
  return openSafely(place.real, place.shown, kind, async (handle, stats) => {
    if (!roots.holds(await whereIs(handle, stats, place.real))) throw outside(place.shown)
  })
}

/** Opens a directory. */
export async function openFolder(roots: Roots, place: ResolvedPath): Promise<Folder> {
  return asFolder(roots, await openPlace(roots, place, 'directory'), place)
}

/**
 * Opens a directory to change `inner` in it, if no swapped folder can lead elsewhere and the path is not protected. Throws
 * PATH_UNSAFE, PATH_PROTECTED.
 */
export async function openToChange(roots: Roots, place: ResolvedPath, inner: string): Promise<Folder> {
  const folder = await openFolder(roots, place)
  try {
    if (!folder.solid) throw notSafeHere(place.shown)
    await refuseChangeIn(folder, inner, place.shown)
    return folder
  } catch (error) {
    await folder.handle.close()
    throw error
  }
}

/** Refuses protected paths, using the current location of the open directory. */
async function refuseChangeIn(folder: Folder, inner: string, shown: string): Promise<void> {
  await folder.roots.refuseChange(join(await readlink(folder.at('.')), inner), shown)
}

/** Opens a file in an open directory; `shown` is its displayed path. */
export async function openFileIn(folder: Folder, name: string, shown: string): Promise<Opened> {
  return openSafely(folder.at(name), shown, 'file', stays(folder, name, shown))
}

/** Opens a directory in an open directory. */
export async function openFolderIn(folder: Folder, name: string, shown: string): Promise<Folder> {
  const opened = await openSafely(folder.at(name), shown, 'directory', stays(folder, name, shown))
  return asFolder(folder.roots, opened, { real: folder.at(name), shown })
}

// Nothing leads out of a checked directory through its descriptor, because the last step is no link.
const stays = (folder: Folder, name: string, shown: string) => async (handle: FileHandle, stats: Stats) => {
  if (!folder.solid && !folder.roots.holds(await whereIs(handle, stats, folder.at(name)))) throw outside(shown)
}

async function asFolder(roots: Roots, opened: Opened, place: ResolvedPath): Promise<Folder> {
  const byDescriptor = `/proc/self/fd/${opened.handle.fd}`
  const solid = (await readlink(byDescriptor).catch(() => undefined)) !== undefined
  const anchor = solid ? byDescriptor : place.real
  return { ...opened, roots, shown: place.shown, solid, at: name => (name === '.' ? anchor : `${anchor}/${name}`) }
}

async function openSafely(
  path: string,
  shown: string,
  kind: Kind,
  check: (handle: FileHandle, stats: Stats) => Promise<void>
): Promise<Opened> {
  try {
    // check before opening, because opening a device can have effects
    checkKind(await lstat(path), kind, shown)
    const handle = await open(path, FLAGS)
    try {
      const stats = await handle.stat()
      checkKind(stats, kind, shown)
      await check(handle, stats)
      return { handle, stats, [Symbol.asyncDispose]: () => handle.close() }
    } catch (error) {
      await handle.close()
      throw error
    }
  } catch (error) {
    throw isPathError(error) ? error : fromSystem(shown, error)
  }
}

function checkKind(stats: Stats, kind: Kind, shown: string): void {
  if (stats.isDirectory()) {
    if (kind === 'file') throw isDirectory(shown)
  } else if (stats.isSymbolicLink()) throw outside(shown)
  else if (!stats.isFile()) throw isSpecial(shown)
  else if (kind === 'directory') throw isNoDirectory(shown)
}

/** The current path of an open file. A folder on its path can have become a link before it was opened. */
async function whereIs(handle: FileHandle, stats: Stats, real: string): Promise<string> {
  const link = await readlink(`/proc/self/fd/${handle.fd}`).catch(() => undefined)
  if (link !== undefined) return link
  // without /proc, the path must still lead to the same file
  const again = await realpath(real)
  const { dev, ino } = await stat(again)
  return dev === stats.dev && ino === stats.ino ? again : ''
}

const CHUNK = 65_536

/** Reads an open file completely; `undefined` if it has more than `most` bytes, even if it grows. */
export async function readWhole({ handle, stats }: Opened, most: number, signal: AbortSignal): Promise<Buffer | undefined> {
  if (stats.size > most) return undefined
  // A buffer with an extra byte detects a file that grows. Files in /proc report a size of 0.
  let room = Buffer.allocUnsafe(stats.size === 0 ? CHUNK : stats.size + 1)
  for (let size = 0; size <= most; ) {
    signal.throwIfAborted()
    if (size === room.length) room = Buffer.concat([room], Math.min(most + 1, room.length * 2))
    const { bytesRead } = await handle.read(room, size, Math.min(CHUNK * 16, room.length - size), size)
    if (bytesRead === 0) return room.subarray(0, size)
    size += bytesRead
  }
  return undefined
}

/** Content of a file to write. */
export interface Content {
  readonly bytes: Uint8Array
  /** The file to replace. Without it, the file must not exist. */
  readonly instead?: { readonly mode: number; readonly uid: number; readonly gid: number }
  /** Called after writing, just before renaming. Throws to leave everything unchanged. */
  check?(): Promise<void>
}

const NEW_MODE = 0o666
const PERMISSIONS = 0o777

/**
 * Writes a temporary file, syncs it and renames it, so that readers see the old or the new file. Replaces a link without
 * following it. Throws EEXIST if the file exists.
 */
export async function putFile(folder: Folder, name: string, content: Content, signal: AbortSignal): Promise<void> {
  const temporary = folder.at(`.svc-${randomUUID()}.tmp`)
  try {
    await writeNew(temporary, content, signal)
    signal.throwIfAborted()
    await content.check?.()
    await (content.instead ? rename(temporary, folder.at(name)) : claim(temporary, folder.at(name)))
  } catch (error) {
    await unlink(temporary).catch(() => {})
    throw error
  }
  await folder.handle.sync()
}

async function writeNew(path: string, { bytes, instead }: Content, signal: AbortSignal): Promise<void> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW
  const handle = await open(path, flags, instead ? 0o600 : NEW_MODE)
  try {
    await handle.writeFile(bytes, { signal })
    if (instead) {
      // only root can change the owner; otherwise the writer owns the new file
      await handle.chown(instead.uid, instead.gid).catch(() => {})
      await handle.chmod(instead.mode & PERMISSIONS)
    }
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Renames a file or link without replacing anything. Throws EEXIST. */
export async function claim(from: string, to: string): Promise<void> {
  try {
    await link(from, to)
  } catch (error) {
    if (!/^(EPERM|ENOTSUP|EOPNOTSUPP|ENOSYS|EMLINK)$/.test(codeOf(error) ?? '')) throw error
    // without hard links, another file can appear between the check and the rename
    if (await lstat(to).catch(() => undefined)) throw Object.assign(new Error('it exists'), { code: 'EEXIST' })
    return await rename(from, to)
  }
  await unlink(from)
}

/** Opens the folder of a target for changes, and creates missing folders. Throws PATH_PROTECTED before it creates any. */
export async function openForTarget(roots: Roots, { folder, steps, name, shown }: Target, signal: AbortSignal): Promise<Folder> {
  let at = await openToChange(roots, { ...folder, shown }, [...steps, name].join('/'))
  for (const step of steps) {
    const above = at
    try {
      signal.throwIfAborted()
      await mkdir(above.at(step)).catch((error: unknown) => {
        if (codeOf(error) !== 'EEXIST') throw error
      })
      at = await openFolderIn(above, step, shown)
    } finally {
      await above.handle.close()
    }
  }
  // another program can have created a folder on the path meanwhile
  if (steps.length > 0) await refuseChangeIn(at, name, shown)
  return at
}

/** Runs operations with the same key one after the other, so that concurrent edits of a file are not lost. */
export function createLocks() {
  const last = new Map<string, Promise<unknown>>()
  return async function alone<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = last.get(key)
    const mine = (async () => {
      await before?.catch(() => {})
      return work()
    })()
    last.set(key, mine)
    try {
      return await mine
    } finally {
      if (last.get(key) === mine) last.delete(key)
    }
  }
}

export type KeyedLock = ReturnType<typeof createLocks>
