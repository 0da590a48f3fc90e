import type { Json } from '@svc/core/contracts'
import { type Refused, UNASKED } from './wire.ts'

/** A refusal inside the writer. */
export class FileRefusal extends Error {
  readonly refused: Refused

  constructor(code: Refused['code'], ...args: (string | number)[]) {
    super(code)
    this.refused = { code, args }
  }
}

const BUSY = 5
const LOCKED = 6

/** Reason and hint for SQLite's primary result codes. `{file}` is the file's base name, `{then}` the effect of the fix. */
const REASONS: Record<number, readonly [reason: string, hint: string]> = {
  3: ['{file} cannot be accessed: permission denied', 'Give the user of svc the right to read and write the file and its folder'],
  [BUSY]: ['{file} is locked by another program', 'End the program that holds it (a backup, a database browser); {then}'],
  [LOCKED]: ['{file} is locked', 'End the program that holds it; {then}'],
  7: ['there is not enough memory for {file}', 'Give the server more memory'],
  8: ['{file} or its folder is read-only', 'Make it writable, or set store.path to a writable location; {then}'],
  10: ['{file} cannot be read or written', 'Check the disk; {then}'],
  11: ['{file} is damaged', 'End the server and run `svc store restore <backup>`, or replace the file by a backup'],
  13: ['the disk of {file} is full', 'Free some space; {then}'],
  14: ['{file} cannot be opened', 'Make sure that its folder exists and is writable, or set store.path to another location'],
  23: [
    '{file} cannot be accessed: permission denied',
    'Give the user of svc the right to read and write the file and its folder',
  ],
  26: [
    '{file} is not a database',
    'End the server and run `svc store restore <backup>`, replace the file by a backup, or set store.path to another file',
  ],
}

/** When an error occurs: after a failed start, no later request can work. */
export type Moment = 'start' | 'running'

const THEN: Record<Moment, string> = { start: 'then start svc again', running: 'the next request works then' }

/** The primary code of an error of SQLite, 0 of any other. */
function primaryCode(error: unknown): number {
  const code = (error as { errcode?: unknown } | null)?.errcode
  return typeof code === 'number' ? code & 0xff : 0
}

/** SQLite could not open the file, and gives no reason. */
export const cannotOpen = (error: unknown): boolean => primaryCode(error) === 14

export const isBusy = (error: unknown): boolean => primaryCode(error) === BUSY || primaryCode(error) === LOCKED

/** Returns reason and hint for an error of the file, without its path. */
export function wordsFor(error: unknown, file: string, moment: Moment = 'running'): readonly [reason: string, hint: string] {
  const [reason, hint] = REASONS[primaryCode(error)] ?? SYSTEM[systemCode(error)] ?? OTHER
  return [reason.replace('{file}', file), hint.replace('{then}', THEN[moment])]
}

/** Whether an error comes from SQLite or the file system, not from svc's code. */
export const isFileError = (error: unknown): boolean => primaryCode(error) !== 0 || SYSTEM[systemCode(error)] !== undefined

const systemCode = (error: unknown) => String((error as { code?: unknown } | null)?.code)
const SYSTEM: Record<string, readonly [string, string]> = {
  EACCES: REASONS[3]!,
  EPERM: REASONS[3]!,
  EROFS: REASONS[8]!,
  ENOSPC: REASONS[13]!,
  EDQUOT: REASONS[13]!,
  ENOENT: REASONS[14]!,
  ENOTDIR: REASONS[14]!,
  EISDIR: REASONS[14]!,
  EEXIST: REASONS[14]!,
  EIO: REASONS[10]!,
}
const OTHER = ['{file} failed for an unknown reason', 'Read the log; {then}'] as const

/** The mark of an error of a file that can be read but not written. */
export const READ_ONLY = 'read_only'

/** SQLITE_IOERR_FSYNC: what was written may be on the disk or not. */
export const isSyncError = (error: unknown): boolean => (error as { errcode?: unknown } | null)?.errcode === 1034

/** A condition of the file that lasts until someone fixes it, even if small writes still work: `damaged`, `full`, `read_only`, or ''. */
export function lastingOf(error: unknown): string {
  if (error instanceof FileRefusal) return String(error.refused.args[3] ?? '')
  const code = primaryCode(error)
  if (code === 11 || code === 26) return 'damaged'
  if (code === 8 || systemCode(error) === 'EROFS') return READ_ONLY
  return code === 13 || systemCode(error) === 'ENOSPC' || systemCode(error) === 'EDQUOT' ? 'full' : ''
}

export const isDamage = (error: unknown): boolean => lastingOf(error) === 'damaged'

/** The file was deleted or emptied. */
export const gone = (): FileRefusal =>
  new FileRefusal('STORE_UNAVAILABLE', 'the store file is gone', 'Put it back, or restart the server to begin with an empty one')

/** Parses JSON in the file. svc wrote it, so invalid JSON means damage. */
export function parsed(text: unknown): Json {
  try {
    return JSON.parse(String(text)) as Json
  } catch (cause) {
    throw new FileRefusal('STORE_UNAVAILABLE', 'the store file is damaged', REASONS[11]![1], String(cause), 'damaged')
  }
}

/** Refuses an operation whose expected version differs. */
export function expect(op: number, expected: number, actual: number): void {
  if (expected !== UNASKED && expected !== actual) throw new FileRefusal('STORE_CONFLICT', op, expected, actual)
}
