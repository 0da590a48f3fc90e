import { basename } from 'node:path'
import { type SvcError, shownPath, svcError } from '@svc/core'
import { storeConflict, storeFenced, storeInvalid, storeNewer, storeUnavailable, storeUnknown } from '@svc/storage-kit'
import { gone, isTrouble, lastingOf, type Moment, Refusal, wordsFor } from './trouble.ts'
import type { Refused } from './wire.ts'

type Args = readonly (string | number)[]
const text = (args: Args, at: number) => String(args[at] ?? '')
const number = (args: Args, at: number) => Number(args[at])

const builders: Record<Refused['code'], (args: Args, path: string) => SvcError> = {
  STORE_CONFLICT: args => storeConflict(number(args, 0), number(args, 1), number(args, 2)),
  STORE_FENCED: args => storeFenced(text(args, 0), number(args, 1)),
  STORE_NEWER: (args, path) => placed(storeNewer(text(args, 0), number(args, 1), number(args, 2)), path),
  STORE_UNKNOWN: args => storeUnknown(text(args, 0), text(args, 1)),
  STORE_INVALID: args => storeInvalid(text(args, 0)),
  STORE_UNAVAILABLE: (args, path) => fileTrouble(path, [text(args, 0), text(args, 1)], args[2], text(args, 3)),
}

/** What the writer refused, as the contract says it. */
export const refusedError = ({ code, args }: Refused, path: string): SvcError => builders[code](args, path)

/** What work on the file threw, as the contract says it. */
export function readError(error: unknown, path: string, moment: Moment = 'running'): unknown {
  if (error instanceof Refusal) return refusedError(error.refused, path)
  if (!isTrouble(error)) return error
  return fileTrouble(path, wordsFor(error, basename(path), moment), error, lastingOf(error))
}

export const fileGone = (path: string): SvcError => refusedError(gone().refused, path)

/** Trouble with the file; where it lies is for the terminal and the log, the message goes to others. `lasting`: see `lastingOf`. */
function fileTrouble(path: string, [reason, hint]: readonly [string, string], cause: unknown, lasting: string): SvcError {
  const details = { retryable: true, ...(lasting === '' ? {} : { lasting }) }
  return svcError('STORE_UNAVAILABLE', reason, { details, hint, cause, where: shownPath(path) })
}

const placed = ({ code, message, details, hint = '' }: SvcError, path: string): SvcError =>
  svcError(code, message, { details, hint, where: shownPath(path) })

export const writerGone = (cause: unknown): SvcError =>
  storeUnavailable('the thread that writes the store ended', 'the next request starts it anew; the log has the cause', cause)

export const tooManyWrites = (): SvcError =>
  storeUnavailable('too many writes wait for the disk', 'try again in a moment; a disk that stays this slow needs looking after')

export const fellBehind = (): SvcError =>
  storeUnavailable('this watcher fell too far behind', 'read what is there and watch again')

export const noAnswer = (seconds: number): SvcError =>
  storeUnavailable(
    `the store has not answered for ${seconds} s: another program has locked it, or the disk hangs`,
    'end the program that holds the file (a backup, a database browser), or look after the disk; the next request works then'
  )
