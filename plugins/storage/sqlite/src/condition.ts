import { statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { asSvcError, type SvcError } from '@svc/core'
import { identityOf, isThere, type Identity } from './identity.ts'
import { inspect } from './inspect.ts'

/** What is wrong with the file for as long as nobody fixes it, although a small write, such as a probe makes, still works. */
export interface Condition {
  /** Takes note of what a call failed with, where it is such; gives it back. */
  note<T>(error: T): T
  /** Throws what was noted, unless it has been fixed since. */
  check(): Promise<void>
}

interface Noted {
  readonly error: SvcError
  readonly identity: Identity | undefined
}

/** A damaged file is looked through again at most so often. */
const LOOK_MS = 30_000
/** A disk with less room than this is still full. */
const ROOM = 256 * 1024

/** Makes the memory of what is wrong with a file; nothing is at first. */
export function createCondition(path: string): Condition {
  let noted: Noted | undefined
  let looked: { readonly at: number; readonly file: string | undefined } | undefined

  const isWhole = async () => {
    const file = identityOf(path)?.file
    // a call that failed late may have noted the file that is in the place of the damaged one by then
    if (looked && looked.file === file && performance.now() - looked.at < LOOK_MS) return false
    looked = { at: performance.now(), file }
    return (await inspect(path)).fault === undefined
  }
  const isFixed = async ({ error, identity }: Noted) => {
    if (identity && !isThere(identity, path)) return true
    return error.details.lasting === 'full' ? hasRoom(path) : isWhole()
  }
  return {
    note(error) {
      const told = asSvcError(error, 'STORE_UNAVAILABLE')
      if (told.details.lasting !== undefined) noted = { error: told, identity: identityOf(path) }
      return error
    },
    async check() {
      const then = noted
      if (!then) return
      if (!(await isFixed(then))) throw then.error
      if (noted === then) noted = undefined
    },
  }
}

function hasRoom(path: string): boolean {
  const { bavail, bfree, bsize } = statfsSync(dirname(path))
  return (process.getuid?.() === 0 ? bfree : bavail) * bsize >= ROOM
}
