import { basename } from 'node:path'
import type { SvcError } from '@svc/core'
import { storeConflict, storeFenced, storeInvalid, storeNewer, storeUnavailable, storeUnknown } from '@svc/space'
import { isTrouble, Refusal, wordsFor } from './trouble.ts'
import type { Refused } from './wire.ts'

type Args = readonly (string | number)[]
const text = (args: Args, at: number) => String(args[at] ?? '')
const number = (args: Args, at: number) => Number(args[at])

const builders: Record<Refused['code'], (args: Args) => SvcError> = {
  STORE_CONFLICT: args => storeConflict(number(args, 0), number(args, 1), number(args, 2)),
  STORE_FENCED: args => storeFenced(text(args, 0), number(args, 1)),
  STORE_NEWER: args => storeNewer(text(args, 0), number(args, 1), number(args, 2)),
  STORE_UNKNOWN: args => storeUnknown(text(args, 0), text(args, 1)),
  STORE_INVALID: args => storeInvalid(text(args, 0)),
  STORE_UNAVAILABLE: args => storeUnavailable(text(args, 0), text(args, 1), args[2]),
}

/** What the writer refused, as the contract says it. */
export const refusedError = ({ code, args }: Refused): SvcError => builders[code](args)

/** What a read threw, as the contract says it. */
export function readError(error: unknown, path: string): unknown {
  if (error instanceof Refusal) return refusedError(error.refused)
  if (!isTrouble(error)) return error
  return storeUnavailable(...wordsFor(error, basename(path)), error)
}

export const fileGone = (): SvcError =>
  storeUnavailable('the store file is gone', 'put it back; or start the server again to begin with an empty one')

export const writerGone = (cause: unknown): SvcError =>
  storeUnavailable('the thread that writes the store ended', 'the next request starts it anew; the log has the cause', cause)

export const tooManyWrites = (): SvcError =>
  storeUnavailable('too many writes wait for the disk', 'try again in a moment; a disk that stays this slow needs looking after')

export const fellBehind = (): SvcError =>
  storeUnavailable('this watcher fell too far behind', 'read what is there and watch again')
