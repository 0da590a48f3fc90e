import { networkOf } from '@svc/address'
import type { Use } from '@svc/core'
import type { Peers } from '@svc/core/contracts'
import type { ServerConfig } from './config.ts'
import { crowded } from './errors.ts'
import type { Exchange, Gate } from './exchange.ts'

/** So many that have nothing open are remembered: who comes again and again costs no new entry each time. */
const REMEMBERED = 1_000

interface Present {
  requests: number
  streams: number
}

/** What one principal may have open at a time: requests, and streams among them. Without a name it is the address that counts. */
export interface Crowd {
  /**
   * Asks once, before the server opens, how many workers there are. Connections are dealt out to them in turn, so each takes an even part of what is allowed:
   * together they never hold more, and none has to ask the others.
   */
  prepare(use: Use): Promise<void>
  /** The gate. Throws RATE_LIMITED. */
  readonly gate: Gate
}

export function createCrowd(config: CrowdConfig, peers: Pick<Peers, 'size'> | undefined): Crowd {
  let workers = 1
  const partOf = (limit: number) => Math.max(1, Math.floor(limit / workers))
  return {
    async prepare(use) {
      workers = (await peers?.size(use)) ?? 1
    },
    gate: createGate(config, partOf),
  }
}

type CrowdConfig = Pick<ServerConfig, 'max_requests_per_principal' | 'max_streams_per_principal'>

function createGate(config: CrowdConfig, partOf: (limit: number) => number): Gate {
  const named = new Map<string, Present>()
  const unnamed = new Map<string, Present>()
  return x => {
    if (x.gone || x.route?.route.uncounted) return // whoever has left already will not leave again
    const isNamed = x.principal.id !== 'anonymous'
    const all = isNamed ? named : unnamed
    const key = isNamed ? x.principal.id : networkOf(x.address)
    const known = all.get(key)
    const present = known ?? { requests: 0, streams: 0 }
    const streams = x.route?.route.stream === undefined ? 0 : 1
    if (present.requests >= partOf(config.max_requests_per_principal))
      throw crowded('requests', config.max_requests_per_principal)
    if (streams > 0 && present.streams >= partOf(config.max_streams_per_principal))
      throw crowded('streams', config.max_streams_per_principal)
    if (!known) all.set(key, present)
    enter(x, present, streams, () => void (all.size > REMEMBERED && all.delete(key)))
  }
}

function enter(x: Exchange, present: Present, streams: number, empty: () => void) {
  present.requests++
  present.streams += streams
  x.left = () => {
    present.streams -= streams
    if (--present.requests === 0) empty()
  }
}
