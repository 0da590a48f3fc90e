import { codeOf, type SvcError, svcError } from '@svc/core'

// What these say goes to a model: the path as it was asked for, never where it lies on this machine, and no `cause` that says it.

/** An error about a path: the words come after it. */
export const pathError = (code: string, path: string, words: string): SvcError =>
  svcError(code, `"${shorten(path)}" ${words}`, { details: { path: shorten(path) } })

const LONGEST = 500
const shorten = (path: string) => (path.length > LONGEST ? `${path.slice(0, LONGEST)}…` : path).replaceAll('\0', '\\0')

export const outside = (path: string): SvcError =>
  pathError('PATH_OUTSIDE', path, 'is, or leads, outside the folders that tools may use')
export const missing = (path: string): SvcError =>
  pathError('PATH_MISSING', path, 'does not exist; list_directory shows what does')
export const invalidPath = (path: string, why: string): SvcError => pathError('PATH_INVALID', path, `is no path: ${why}`)
export const isDirectory = (path: string): SvcError => pathError('PATH_KIND', path, 'is a directory: use list_directory')
export const isNoDirectory = (path: string): SvcError => pathError('PATH_KIND', path, 'is no directory: use read_file')
export const isSpecial = (path: string): SvcError =>
  pathError('PATH_KIND', path, 'is neither a file nor a directory (a device, pipe or socket)')
export const exists = (path: string, hint: string): SvcError => pathError('PATH_EXISTS', path, `exists already; ${hint}`)
export const isProtected = (path: string, why: string): SvcError => pathError('PATH_PROTECTED', path, why)
export const notSafeHere = (path: string): SvcError =>
  pathError('PATH_UNSAFE', path, 'cannot be changed: this system has no /proc/self/fd, without which a folder could be swapped')
export const globInvalid = (pattern: string, why: string): SvcError =>
  svcError('GLOB_INVALID', `"${shorten(pattern)}" is no pattern: ${why}`, {
    hint: 'write * for a part of a name, ** for any folders, ? for one character, {a,b} for one of some',
  })

const WORDS: Readonly<Record<string, string>> = {
  EACCES: 'may not be used so: permission denied',
  EPERM: 'may not be used so: permission denied',
  EROFS: 'lies on a file system that cannot be written',
  ENOSPC: 'cannot be written: the disk is full',
  EDQUOT: 'cannot be written: the quota is used up',
  EFBIG: 'cannot be written: it would be too large',
  ENAMETOOLONG: 'is too long a path',
  EMFILE: 'cannot be opened now: too many files are open',
  ENFILE: 'cannot be opened now: too many files are open',
  ENOTEMPTY: 'is a directory that is not empty',
  EXDEV: 'lies on another file system',
  EBUSY: 'is in use by the system',
  EEXIST: 'exists already',
}

/** What the file system said, in our words. */
export function fromSystem(path: string, error: unknown): SvcError {
  const code = codeOf(error) ?? 'unknown'
  if (code === 'ENOENT' || code === 'ENOTDIR') return missing(path)
  if (code === 'ELOOP') return outside(path)
  return pathError('PATH_UNUSABLE', path, WORDS[code] ?? `cannot be used (${code})`)
}

/** Whether an error is in our words already. */
export const isOurs = (error: unknown): boolean => error instanceof Error && error.name === 'SvcError'

/** Does something with a path; what the file system says of it is told in our words. */
export async function inWords<T>(path: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  try {
    signal.throwIfAborted()
    return await work()
  } catch (error) {
    signal.throwIfAborted()
    throw isOurs(error) ? error : fromSystem(path, error)
  }
}

/** A root of the configuration that is not there. */
export const rootUnusable = (root: string, why: string, where: string): SvcError =>
  svcError('CONFIG_INVALID', `${where}: "${root}" ${why}`, {
    where,
    hint: 'create the folder, or take it out of the list',
  })
