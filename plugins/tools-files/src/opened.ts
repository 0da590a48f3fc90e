import { constants, type Stats } from 'node:fs'
import { type FileHandle, lstat, open, readlink, realpath, stat } from 'node:fs/promises'
import { codeOf } from '@svc/core'
import { fromSystem, isDirectory, isNoDirectory, isSpecial, outside } from './errors.ts'
import type { Place, Roots } from './roots.ts'

/** An open file or directory that is what and where it should be. */
export interface Opened extends AsyncDisposable {
  readonly handle: FileHandle
  readonly stats: Stats
}

// A pipe or terminal must not hold the call up, and the last step must be no link any more.
const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW | constants.O_NOCTTY

/** Opens what was found. Whatever others do to the path meanwhile, what is open lies within the roots and is of that kind. */
export async function openPlace(roots: Roots, place: Place, kind: 'file' | 'directory'): Promise<Opened> {
  const { real, shown } = place
  try {
    // To open a device may do something: look first.
    checkKind(await lstat(real), kind, shown)
    const handle = await open(real, FLAGS)
    try {
      const stats = await handle.stat()
      checkKind(stats, kind, shown)
      if (!roots.holds(await whereIs(handle, stats, real))) throw outside(shown)
      return { handle, stats, [Symbol.asyncDispose]: () => handle.close() }
    } catch (error) {
      await handle.close()
      throw error
    }
  } catch (error) {
    throw isOurs(error) ? error : fromSystem(shown, error)
  }
}

const isOurs = (error: unknown) => /^(PATH|FILE)_/.test(codeOf(error) ?? '')

function checkKind(stats: Stats, kind: 'file' | 'directory', shown: string): void {
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

/** A path to what is open that nobody can bend any more, where the system has one. */
export async function pathOf(opened: Opened, place: Place): Promise<string> {
  const path = `/proc/self/fd/${opened.handle.fd}`
  return (await readlink(path).catch(() => undefined)) === undefined ? place.real : path
}
