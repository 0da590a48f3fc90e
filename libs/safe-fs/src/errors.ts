import { codeOf, type SvcError, svcError } from '@svc/core'

// These errors go to models. They contain the path of the request, never a path of this machine, and no `cause` that reveals it.

/** An error about a path, followed by `words`. */
export const pathError = (code: string, path: string, words: string): SvcError =>
  svcError(code, `"${shorten(path)}" ${words}`, { details: { path: shorten(path) } })

const LONGEST = 500
const shorten = (path: string) => (path.length > LONGEST ? `${path.slice(0, LONGEST)}…` : path).replaceAll('\0', '\\0')

export const outside = (path: string): SvcError =>
  pathError('PATH_OUTSIDE', path, 'is or leads outside the folders that tools can use')
export const missing = (path: string): SvcError =>
  pathError('PATH_MISSING', path, 'does not exist; list_directory shows existing paths')
export const invalidPath = (path: string, why: string): SvcError => pathError('PATH_INVALID', path, `is not a valid path: ${why}`)
export const isDirectory = (path: string): SvcError => pathError('PATH_KIND', path, 'is a directory; use list_directory')
export const isNoDirectory = (path: string): SvcError => pathError('PATH_KIND', path, 'is not a directory; use read_file')
export const isSpecial = (path: string): SvcError =>
  pathError('PATH_KIND', path, 'is neither a file nor a directory (a device, pipe or socket)')
export const exists = (path: string, hint: string): SvcError => pathError('PATH_EXISTS', path, `already exists; ${hint}`)
export const isProtected = (path: string, why: string): SvcError => pathError('PATH_PROTECTED', path, why)
export const notSafeHere = (path: string): SvcError =>
  pathError('PATH_UNSAFE', path, 'cannot be changed: this system has no /proc/self/fd, which is needed to detect swapped folders')
export const globInvalid = (pattern: string, why: string): SvcError =>
  svcError('GLOB_INVALID', `"${shorten(pattern)}" is not a valid pattern: ${why}`, {
    hint: 'Write * for a part of a name, ** for any folders, ? for a character, {a,b} for alternatives',
  })

const WORDS: Readonly<Record<string, string>> = {
  EACCES: 'cannot be used: permission denied',
  EPERM: 'cannot be used: permission denied',
  EROFS: 'is on a read-only file system',
  ENOSPC: 'cannot be written: the disk is full',
  EDQUOT: 'cannot be written: the quota is exceeded',
  EFBIG: 'cannot be written: the file would be too large',
  ENAMETOOLONG: 'is too long',
  EMFILE: 'cannot be opened: too many open files',
  ENFILE: 'cannot be opened: too many open files',
  ENOTEMPTY: 'is a directory that is not empty',
  EXDEV: 'is on another file system',
  EBUSY: 'is in use by the system',
  EEXIST: 'already exists',
}

/** Converts an error of the file system to an error without paths of this machine. */
export function fromSystem(path: string, error: unknown): SvcError {
  const code = codeOf(error) ?? 'unknown'
  if (code === 'ENOENT' || code === 'ENOTDIR') return missing(path)
  if (code === 'ELOOP') return outside(path)
  return pathError('PATH_UNUSABLE', path, WORDS[code] ?? `cannot be used (${code})`)
}

/** Whether an error is already converted. */
export const isPathError = (error: unknown): boolean => error instanceof Error && error.name === 'SvcError'

/** Runs an operation on a path and converts errors of the file system. */
export async function withPathErrors<T>(path: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  try {
    signal.throwIfAborted()
    return await work()
  } catch (error) {
    signal.throwIfAborted()
    throw isPathError(error) ? error : fromSystem(path, error)
  }
}

/** An unusable root in the configuration. */
export const rootUnusable = (root: string, why: string, where: string): SvcError =>
  svcError('CONFIG_INVALID', `${where}: "${root}" ${why}`, {
    where,
    hint: 'Create the folder, or remove it from the list',
  })
