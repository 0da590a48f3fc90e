import type { Json } from '@svc/core/contracts'
import { type Refused, UNASKED } from './wire.ts'

/** A refusal on its way up inside the writer. */
export class Refusal extends Error {
  readonly refused: Refused

  constructor(code: Refused['code'], ...args: (string | number)[]) {
    super(code)
    this.refused = { code, args }
  }
}

const BUSY = 5
const LOCKED = 6

/** SQLite's primary result codes, what they mean to a person, and what he does. `{file}` is the file's base name, `{then}` what works again once he has. */
const REASONS: Record<number, readonly [reason: string, hint: string]> = {
  3: ['{file} may not be opened', 'give the user that runs svc the right to read and write the file and its folder'],
  [BUSY]: ['{file} stays locked by another program', 'end the program that holds it (a backup, a database browser); {then}'],
  [LOCKED]: ['{file} stays locked', 'end the program that holds it; {then}'],
  7: ['there is not enough memory for {file}', 'give the server more memory'],
  8: ['{file} or its folder is read-only', 'make it writable, or set store.path to a place that is; {then}'],
  10: ['{file} cannot be read or written', 'look after the disk; {then}'],
  11: ['{file} is damaged', 'end the server and run `svc store restore <backup>`; or move a backup into its place'],
  13: ['the disk of {file} is full', 'free some space; {then}'],
  14: ['{file} cannot be opened', 'see that its folder exists and is writable, or set store.path to a place that is'],
  23: ['{file} may not be opened', 'give the user that runs svc the right to read and write the file and its folder'],
  26: [
    '{file} is no database',
    'end the server and run `svc store restore <backup>`; or move a backup into its place, or set store.path to another file',
  ],
}

/** When trouble is met: a server that could not start serves no request that would work later. */
export type Moment = 'start' | 'running'

const THEN: Record<Moment, string> = { start: 'then start svc again', running: 'the next request works then' }

/** The primary code of an error of SQLite, 0 of any other. */
function primaryCode(error: unknown): number {
  const code = (error as { errcode?: unknown } | null)?.errcode
  return typeof code === 'number' ? code & 0xff : 0
}

/** SQLite could not open the file, and does not say why. */
export const cannotOpen = (error: unknown): boolean => primaryCode(error) === 14

export const isBusy = (error: unknown): boolean => primaryCode(error) === BUSY || primaryCode(error) === LOCKED

/** Says in words what went wrong with the file, without its path: the reason, then the hint. */
export function wordsFor(error: unknown, file: string, moment: Moment = 'running'): readonly [reason: string, hint: string] {
  const [reason, hint] = REASONS[primaryCode(error)] ?? SYSTEM[systemCode(error)] ?? OTHER
  return [reason.replace('{file}', file), hint.replace('{then}', THEN[moment])]
}

/** Whether an error comes from SQLite or the file system rather than from our own code. */
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
const OTHER = ['{file} failed in a way that is not known', 'the log has the details; {then}'] as const

/** What is wrong with a file for as long as nobody fixes it, also where a small write still works: `damaged`, `full`, or nothing of the kind. */
export function lastingOf(error: unknown): string {
  if (error instanceof Refusal) return String(error.refused.args[3] ?? '')
  const code = primaryCode(error)
  if (code === 11 || code === 26) return 'damaged'
  return code === 13 || systemCode(error) === 'ENOSPC' || systemCode(error) === 'EDQUOT' ? 'full' : ''
}

export const isDamage = (error: unknown): boolean => lastingOf(error) === 'damaged'

/** The file was there and is no more, or there is nothing in it any more. */
export const gone = (): Refusal =>
  new Refusal('STORE_UNAVAILABLE', 'the store file is gone', 'put it back; or start the server again to begin with an empty one')

/** Reads JSON that the file holds: whatever is none, nobody of us has written. */
export function parsed(text: unknown): Json {
  try {
    return JSON.parse(String(text)) as Json
  } catch (cause) {
    throw new Refusal('STORE_UNAVAILABLE', 'the store file is damaged', REASONS[11]![1], String(cause), 'damaged')
  }
}

/** Refuses an operation whose expectation does not hold. */
export function expect(op: number, expected: number, actual: number): void {
  if (expected !== UNASKED && expected !== actual) throw new Refusal('STORE_CONFLICT', op, expected, actual)
}
