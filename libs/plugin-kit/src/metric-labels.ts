import { isIPv4, isIPv6, SocketAddress } from 'node:net'
import type { ModelRef } from '@svc/core/contracts'

/**
 * Returns the network of a client: its IPv4 address, also from an IPv4-mapped IPv6 address, or its IPv6 /64, which is the smallest network that a client gets
 * (`2001:db8::1` is in `2001:db8:0:0::/64`). All other texts count as one client, so that a caller cannot invent clients.
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

/** Returns the name of a model for metric labels. */
export type ModelNames = (ref: ModelRef) => ModelRef

/** Limit of distinct model names. */
const MODELS = 200

/** Creates names for metric labels: the first 200 models keep their names, further ones of a provider become `other`, because callers can invent names. */
export function createModelNames(): ModelNames {
  const known = new Set<string>()
  return ({ provider, model }) => {
    const key = `${provider}\n${model}`
    if (known.size < MODELS) known.add(key)
    return { provider, model: known.has(key) ? model : 'other' }
  }
}
