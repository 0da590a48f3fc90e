import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { codeOf } from '@svc/core'

export interface SmallFile {
  readonly text: string
  /** Unix milliseconds. */
  readonly changedAt: number
  /** Whether all users of this machine can read it. */
  readonly isPublic: boolean
}

/**
 * Reads a text file of at most `limit` bytes. It follows symbolic links, because container platforms mount secrets as links; the
 * mode is that of the file. Reading a pipe or device does not block: they are no files. Throws an error without a path.
 */
export function readSmall(path: string, limit: number): SmallFile {
  const file = openFile(path)
  try {
    const stat = fstatSync(file)
    if (!stat.isFile()) throw new TypeError(`the path is ${stat.isDirectory() ? 'a directory' : 'not a file'}`)
    const bytes = Buffer.alloc(limit + 1)
    let length = 0
    for (let read = -1; read !== 0 && length < bytes.length; length += read)
      read = readSync(file, bytes, length, bytes.length - length, null)
    if (length > limit) throw new TypeError(`the file is larger than ${limit} bytes`)
    return { text: decoded(bytes.subarray(0, length)), changedAt: Math.round(stat.mtimeMs), isPublic: (stat.mode & 0o004) !== 0 }
  } finally {
    closeSync(file)
  }
}

function openFile(path: string): number {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch (error) {
    const code = codeOf(error)
    throw new TypeError(code === 'ENOENT' ? 'the file does not exist' : `the file cannot be read (${code})`)
  }
}

function decoded(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw new TypeError('the file is not UTF-8')
  }
}
