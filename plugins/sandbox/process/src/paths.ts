import { realpath, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, isAbsolute, join, resolve, sep } from 'node:path'
import { codeOf } from '@svc/core'
import { pathRefused, showsHome, unavailable } from './errors.ts'

/** Whether a path is a folder or lies within it. */
export const isWithin = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep)

/** Folders of the kernel: nothing within them is shown. */
const KERNEL = ['/proc', '/sys', '/dev']
/** No folder that holds one of these is shown. */
const SYSTEM = [...KERNEL, '/usr', '/etc', '/bin', '/sbin', '/lib', '/lib64']

/** The code of installed plugins: the only part of the home that can be shown, read-only. */
const SETS = ['plugins', 'sets']

/** Resolves the links of a path to show read-only. Throws SANDBOX_PATH. */
export async function readable(path: string, home: string): Promise<string> {
  const real = await realpath(path).catch(() => path)
  const sets = join(home, ...SETS)
  return real !== sets && isWithin(real, sets) ? real : visible(path, home)
}

/** Resolves the links of a path to show, read-only or writable. Throws SANDBOX_PATH. */
export async function visible(path: string, home: string): Promise<string> {
  if (!isAbsolute(path)) throw pathRefused(path, 'it is not an absolute path', 'Use an absolute path')
  const real = await realOf(path)
  if (SYSTEM.some(item => isWithin(item, real)) || KERNEL.some(item => isWithin(real, item)))
    throw pathRefused(path, 'it belongs to the system', 'Use a folder of your own')
  // servers keep their sockets there, svc too: a process that sees a socket can connect to it
  if (isWithin('/tmp', real) || isWithin(await realpath(tmpdir()).catch(() => '/tmp'), real))
    throw pathRefused(
      path,
      'all programs of this machine keep files there',
      'Use a folder within it. The sandbox has its own /tmp anyway'
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
      codeOf(error) === 'ENOENT' ? 'it does not exist' : 'it cannot be read',
      'Create it, or remove it from the list'
    )
  }
}

/** Resolves the links of a path that can be missing, as far as it exists. */
export async function realPathOf(path: string): Promise<string> {
  const real = await realpath(path).catch(() => undefined)
  return real ?? (path === dirname(path) ? path : join(await realPathOf(dirname(path)), basename(path)))
}

/** Returns the home if it lies in a folder that every sandbox sees: the sandbox must cover it. Throws SANDBOX_UNAVAILABLE if it does not exist yet. */
export async function hiddenIn(folders: readonly string[], home: string): Promise<readonly string[]> {
  if (!folders.some(folder => isWithin(home, folder))) return []
  if (!(await isThere(home))) throw unavailable('the svc home lies in a folder of the system and does not exist yet')
  return [home]
}

/** Whether a file or folder exists. */
export const isThere = async (path: string): Promise<boolean> => (await stat(path).catch(() => undefined)) !== undefined

/** The files of the machine that one process sees. */
export interface Shown {
  readonly read: readonly string[]
  readonly write: readonly string[]
}

/** Removes paths that lie in another shown folder. A read-only folder does not cover a writable one within it. */
export function leastOf({ read, write }: Shown): Shown {
  const least = (paths: readonly string[], others: readonly string[]) =>
    [...new Set(paths)].filter((path, _, all) => ![...all, ...others].some(other => other !== path && isWithin(path, other)))
  const writable = least(write, [])
  return {
    write: writable,
    read: least(
      read.filter(item => !writable.includes(item)),
      writable
    ),
  }
}
