import { isIPv4, isIPv6, SocketAddress } from 'node:net'
import type { ModelRef } from '@svc/core/contracts'

/**
 * What one client has of the network: its IPv4 address, also where it comes as IPv6, or its /64, for that is the least that a client is given
 * (`2001:db8::1` is `2001:db8:0:0::/64`). Any other text counts as one client, so a caller cannot invent clients.
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

/** Names for labels of metrics: the first 200 models have their own, all others of a provider are `other`. Where a provider takes any name, callers invent them. */
export function createModelNames(): ModelNames {
  const known = new Set<string>()
  return ({ provider, model }) => {
    const key = `${provider}\n${model}`
    if (known.size < MODELS) known.add(key)
    return { provider, model: known.has(key) ? model : 'other' }
  }
}
