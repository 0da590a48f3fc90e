import { createHash } from 'node:crypto'
import { isIPv4, isIPv6, SocketAddress } from 'node:net'
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

/**
 * What one client has of the network: its IPv4 address, also where it comes as IPv6, or its /64, for that is the least that a client is given
 * (`2001:db8::1` is `2001:db8:0:0::/64`). All that is no address counts as one client, so that nobody makes up new ones.
 */
export function networkOf(address: string | undefined): string {
  if (address === undefined) return 'none'
  if (isIPv4(address)) return address
  const bare = address.split('%', 1)[0]!
  return isIPv6(bare) ? networkOfIPv6(bare) : 'none'
}

const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/
const GROUPS = 8

function networkOfIPv6(address: string): string {
  const shortest = new SocketAddress({ family: 'ipv6', address }).address
  const mapped = MAPPED.exec(shortest)?.[1]
  if (mapped) return mapped
  const [head, tail] = shortest.split('::').map(side => (side === '' ? [] : side.split(':')))
  const left = Array<string>(GROUPS - head!.length - (tail?.length ?? 0)).fill('0')
  return `${[...head!, ...left, ...(tail ?? [])].slice(0, GROUPS / 2).join(':')}::/64`
}
