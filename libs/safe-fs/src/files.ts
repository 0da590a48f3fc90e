import { randomUUID } from 'node:crypto'
import { constants, type Stats } from 'node:fs'
import { type FileHandle, link, lstat, mkdir, open, readlink, realpath, rename, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from '@svc/core'
import { fromSystem, isDirectory, isNoDirectory, isOurs, isSpecial, notSafeHere, outside } from './errors.ts'
import type { Place, Roots, Target } from './roots.ts'

/** An open file or directory that is what and where it should be. */
export interface Opened extends AsyncDisposable {
  readonly handle: FileHandle
  readonly stats: Stats
}

/** An open directory: what lies in it is reached through it, whatever others do to the path that led there. */
export interface Folder extends Opened {
  readonly shown: string
  /** The path of an entry, for the calls of node:fs: it goes by the descriptor where the system has such paths. */
  at(name: string): string
  /** Whether `at` goes by the descriptor. */
  readonly solid: boolean
  readonly roots: Roots
}

type Kind = 'file' | 'directory'

// A pipe or terminal must not hold the call up, and the last step must be no link any more.
const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW | constants.O_NOCTTY

/** Opens what was found. Whatever others do to the path meanwhile, what is open lies within the roots and is of that kind. */
export async function openPlace(roots: Roots, place: Place, kind: Kind): Promise<Opened> {
  return openSafely(place.real, place.shown, kind, async (handle, stats) => {
    if (!roots.holds(await whereIs(handle, stats, place.real))) throw outside(place.shown)
  })
}

/** Opens a directory to work in it. */
export async function openFolder(roots: Roots, place: Place): Promise<Folder> {
  return asFolder(roots, await openPlace(roots, place, 'directory'), place)
}

/**
 * Opens a directory to change what lies in it at `inner`: only where no swap of a folder can lead elsewhere, and where nothing protected would change.
 * Throws PATH_UNSAFE, PATH_PROTECTED.
 */
export async function openToChange(roots: Roots, place: Place, inner: string): Promise<Folder> {
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

/** The same question about a directory that is open: it is asked where the directory really is now. */
async function refuseChangeIn(folder: Folder, inner: string, shown: string): Promise<void> {
  await folder.roots.refuseChange(join(await readlink(folder.at('.')), inner), shown)
}

/** Opens a file that lies in an open directory; `shown` is how it is told. */
export async function openFileIn(folder: Folder, name: string, shown: string): Promise<Opened> {
  return openSafely(folder.at(name), shown, 'file', stays(folder, name, shown))
}

/** Opens a directory that lies in an open directory. */
export async function openFolderIn(folder: Folder, name: string, shown: string): Promise<Folder> {
  const opened = await openSafely(folder.at(name), shown, 'directory', stays(folder, name, shown))
  return asFolder(folder.roots, opened, { real: folder.at(name), shown })
}

// By the descriptor of a directory that was checked there is no way out: its last step is no link.
const stays = (folder: Folder, name: string, shown: string) => async (handle: FileHandle, stats: Stats) => {
  if (!folder.solid && !folder.roots.holds(await whereIs(handle, stats, folder.at(name)))) throw outside(shown)
}

async function asFolder(roots: Roots, opened: Opened, place: Place): Promise<Folder> {
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
    // To open a device may do something: look first.
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
    throw isOurs(error) ? error : fromSystem(shown, error)
  }
}

function checkKind(stats: Stats, kind: Kind, shown: string): void {
  if (stats.isDirectory()) {
    if (kind === 'file') throw isDirectory(shown)
  } else if (stats.isSymbolicLink()) throw outside(shown)
  else if (!stats.isFile()) throw isSpecial(shown)
  else if (kind === 'directory') throw isNoDirectory(shown)
}

/** Where an open file lies now: a folder on its way may have become a link between the look and the opening. */
async function whereIs(handle: FileHandle, stats: Stats, real: string): Promise<string> {
  const link = await readlink(`/proc/self/fd/${handle.fd}`).catch(() => undefined)
  if (link !== undefined) return link
  // Without /proc: the path must still lead to the very same file.
  const again = await realpath(real)
  const { dev, ino } = await stat(again)
  return dev === stats.dev && ino === stats.ino ? again : ''
}

const CHUNK = 65_536

/** Reads an open file whole; `undefined` where it has more than `most` bytes, however fast it grows. */
export async function readWhole({ handle, stats }: Opened, most: number, signal: AbortSignal): Promise<Buffer | undefined> {
  if (stats.size > most) return undefined
  // One byte more than there should be: a file that is longer than it said tells so. Those of the system (/proc) say 0.
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

/** What a file shall be. */
export interface Content {
  readonly bytes: Uint8Array
  /** The file that it takes the place of; without it there must be none. */
  readonly instead?: { readonly mode: number; readonly uid: number; readonly gid: number }
  /** Asked when all is written, just before the name is taken; throws to leave everything as it was. */
  check?(): Promise<void>
}

const NEW_MODE = 0o666
const PERMISSIONS = 0o777

/**
 * Writes a file beside its place, brings it to the disk and gives it its name in one step: who reads sees the old or the new one, whole.
 * A link at its place is replaced, never followed. Throws EEXIST where there is something already.
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
      // Only root may give a file away; the new one is the writer's own then.
      await handle.chown(instead.uid, instead.gid).catch(() => {})
      await handle.chmod(instead.mode & PERMISSIONS)
    }
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Gives a file or link another name that must be free: nothing is ever replaced. Throws EEXIST. */
export async function claim(from: string, to: string): Promise<void> {
  try {
    await link(from, to)
  } catch (error) {
    if (!/^(EPERM|ENOTSUP|EOPNOTSUPP|ENOSYS|EMLINK)$/.test(codeOf(error) ?? '')) throw error
    // A file system without hard links: between the look and the step another one may come.
    if (await lstat(to).catch(() => undefined)) throw Object.assign(new Error('it exists'), { code: 'EEXIST' })
    return await rename(from, to)
  }
  await unlink(from)
}

/** Opens the folder of a target to change what lies in it; makes the folders on the way that are missing. Throws PATH_PROTECTED before it makes any. */
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
  // a folder on the way may have been put there by another program meanwhile
  if (steps.length > 0) await refuseChangeIn(at, name, shown)
  return at
}

/** Does works of one key one after the other: two edits of one file must both count. */
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

export type Alone = ReturnType<typeof createLocks>
