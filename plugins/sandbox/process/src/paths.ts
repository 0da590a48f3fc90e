import { realpath, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, isAbsolute, join, resolve, sep } from 'node:path'
import { codeOf } from '@svc/core'
import { pathRefused, showsHome, unavailable } from './errors.ts'

/** Whether one path is the other, or lies in it. */
export const isWithin = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep)

/** Where the kernel and the system live: no folder that holds one of them is shown anew, and nothing of the first three. */
const KERNEL = ['/proc', '/sys', '/dev']
const SYSTEM = [...KERNEL, '/usr', '/etc', '/bin', '/sbin', '/lib', '/lib64']

/** Code of installed plugins: all of the home that may be shown, and for reading only. */
const SETS = ['plugins', 'sets']

/** A path that may be shown for reading, with its links followed. Throws SANDBOX_PATH. */
export async function readable(path: string, home: string): Promise<string> {
  const real = await realpath(path).catch(() => path)
  const sets = join(home, ...SETS)
  return real !== sets && isWithin(real, sets) ? real : visible(path, home)
}

/** A path that may be shown, for writing too, with its links followed. Throws SANDBOX_PATH. */
export async function visible(path: string, home: string): Promise<string> {
  if (!isAbsolute(path)) throw pathRefused(path, 'it is no absolute path', 'write it from the root of the machine')
  const real = await realOf(path)
  if (SYSTEM.some(one => isWithin(one, real)) || KERNEL.some(one => isWithin(real, one)))
    throw pathRefused(path, 'it belongs to the system', 'name a folder of your own')
  // Sockets of servers lie there, ours too: whoever sees such a file can talk to it.
  if (isWithin('/tmp', real) || isWithin(await realpath(tmpdir()).catch(() => '/tmp'), real))
    throw pathRefused(
      path,
      'all programs of this machine keep things there',
      'name a folder within it: the sandbox has a /tmp of its own anyway'
    )
  if (isWithin(real, home) || isWithin(home, real)) throw showsHome(path)
  return real
}

async function realOf(path: string): Promise<string> {
  try {
    return await realpath(resolve(path))
  } catch (error) {
    throw pathRefused(
      path,
      codeOf(error) === 'ENOENT' ? 'it is not there' : 'it cannot be looked at',
      'create it, or take it out of the list'
    )
  }
}

/** Where a path would lie that may not be there yet: with the links of what there is of it followed. */
export async function realPlace(path: string): Promise<string> {
  const real = await realpath(path).catch(() => undefined)
  return real ?? (path === dirname(path) ? path : join(await realPlace(dirname(path)), basename(path)))
}

/** The home where it lies in what every sandbox sees: something must be put over it. Throws SANDBOX_UNAVAILABLE where that cannot be, yet. */
export async function hiddenIn(folders: readonly string[], home: string): Promise<readonly string[]> {
  if (!folders.some(folder => isWithin(home, folder))) return []
  if (!(await isThere(home))) throw unavailable('the svc home lies in a folder of the system and is not there yet')
  return [home]
}

/** Whether there is such a file or folder. */
export const isThere = async (path: string): Promise<boolean> => (await stat(path).catch(() => undefined)) !== undefined

/** What is shown of the machine for one process. */
export interface Shown {
  readonly read: readonly string[]
  readonly write: readonly string[]
}

/** Without what is shown already by a folder that holds it; what may be written is not covered by what may only be read. */
export function leastOf({ read, write }: Shown): Shown {
  const least = (paths: readonly string[], others: readonly string[]) =>
    [...new Set(paths)].filter((one, _, all) => ![...all, ...others].some(other => other !== one && isWithin(one, other)))
  const writable = least(write, [])
  return {
    write: writable,
    read: least(
      read.filter(one => !writable.includes(one)),
      writable
    ),
  }
}
