import { codeOf, type SvcError, svcError } from '@svc/core'

// What these say goes to a model: the path as it was asked for, never where it lies on this machine, and no `cause` that says it.

const pathError = (code: string, path: string, words: string) => svcError(code, `"${path}" ${words}`, { details: { path } })

export const outside = (path: string): SvcError =>
  pathError('PATH_OUTSIDE', path, 'is, or leads, outside the folders that may be read')
export const missing = (path: string): SvcError =>
  pathError('PATH_MISSING', path, 'does not exist; list_directory shows what does')
export const invalidPath = (path: string): SvcError =>
  pathError('PATH_INVALID', path.replaceAll('\0', '\\0'), 'is no path: it holds a zero byte')
export const isDirectory = (path: string): SvcError => pathError('PATH_KIND', path, 'is a directory: use list_directory')
export const isNoDirectory = (path: string): SvcError => pathError('PATH_KIND', path, 'is no directory: use read_file')
export const isSpecial = (path: string): SvcError =>
  pathError('PATH_KIND', path, 'is neither a file nor a directory (a device, pipe or socket)')
export const isBinary = (path: string, size: number): SvcError =>
  pathError('FILE_BINARY', path, `is a binary file of ${size} bytes: only text can be read`)

const WORDS: Readonly<Record<string, string>> = {
  EACCES: 'may not be read: permission denied',
  EPERM: 'may not be read: permission denied',
  ENAMETOOLONG: 'is too long a path',
  EMFILE: 'cannot be opened now: too many files are open',
}

/** What the file system said, in our words. */
export function fromSystem(path: string, error: unknown): SvcError {
  const code = codeOf(error) ?? 'unknown'
  if (code === 'ENOENT' || code === 'ENOTDIR') return missing(path)
  if (code === 'ELOOP') return outside(path)
  return pathError('PATH_UNREADABLE', path, WORDS[code] ?? `cannot be read (${code})`)
}

/** A root of the configuration that is not there. */
export const rootUnusable = (root: string, why: string): SvcError =>
  svcError('CONFIG_INVALID', `tools.files.roots: "${root}" ${why}`, {
    where: 'tools.files.roots',
    mend: 'create the folder, or take it out of the list',
  })
