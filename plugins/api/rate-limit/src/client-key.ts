import { createHash } from 'node:crypto'
import { networkOf } from '@svc/plugin-kit'
import type { Principal } from '@svc/core'

/** Whom a request is counted for: the name of its count in the store. */
export function clientKey({ id, address }: Principal, by: 'address' | 'principal'): string {
  return by === 'principal' && id !== ANONYMOUS
    ? `rate_limit/principal/${nameOf(id)}`
    : `rate_limit/address/${networkOf(address)}`
}

/** The id of whoever has not logged in. */
const ANONYMOUS = 'anonymous'
const LONGEST = 512

/** An id as a key of the store can hold it: as it is, or as a digest after a mark that no other has. */
const nameOf = (id: string) => (isPlain(id) ? id : `~${digest(id)}`)
const isPlain = (id: string) => id.length <= LONGEST && id.isWellFormed() && !id.includes('\0') && !id.startsWith('~')
// utf16le keeps apart what is no well-formed text
const digest = (id: string) => createHash('sha256').update(id, 'utf16le').digest('base64url')
