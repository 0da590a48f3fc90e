import { networkOf } from '@svc/address'
import { isLoopback } from './address.ts'
import { tooMany } from './errors.ts'
import type { Gate } from './exchange.ts'
import { createTally } from './tally.ts'

const ADDRESSES = 10_000
const SECOND = 1_000

/**
 * The cheap gate before authentication: so many requests a second and address, counted in this process alone. It holds off a flood before that costs anything;
 * the limits that are documented are counted behind authentication, exactly and for all workers. This machine's own addresses pass. Throws RATE_LIMITED.
 */
export function createFlood(limit: number): Gate {
  const tally = createTally(SECOND, ADDRESSES)
  return ({ address }) => {
    if (limit === 0 || isLoopback(address)) return
    const key = networkOf(address)
    if (tally.add(key) > limit) throw tooMany(limit, 1, tally.secondsLeft(key))
  }
}
