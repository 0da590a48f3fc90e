import { lookup } from 'node:dns/promises'
import { codeOf, withTimeout } from '@svc/core'
import type { AddressGuard } from './addresses.ts'
import { addressForbidden, dnsTimeout, hostUnknown } from './errors.ts'

/** Resolves a name to its addresses. */
export type Resolve = (host: string) => Promise<readonly string[]>

/** Resolves a name to the addresses that can be reached at a port. Throws ADDRESS_FORBIDDEN, HOST_UNKNOWN. */
export type GuardedResolve = (host: string, port: number) => Promise<readonly string[]>

/** Creates the resolver of the connector. */
export function createGuardedResolve(guard: AddressGuard, ms: number, resolve: Resolve = fromSystem): GuardedResolve {
  return async (host, port) => {
    const all = await withTimeout(ms, () => resolve(host), { late: () => dnsTimeout(host, ms) }).catch((error: unknown) => {
      throw /^(ENOTFOUND|EAI_|ENODATA|ESERVFAIL)/.test(codeOf(error) ?? '') ? hostUnknown(host) : error
    })
    if (all.length === 0) throw hostUnknown(host)
    guard.saw?.(host, all)
    const open = all.filter(address => guard.permits(host, address, port))
    if (open.length === 0) throw addressForbidden(host)
    return open
  }
}

/** Concurrent system lookups. Each blocks one of the four threads that files and compression need too, as long as the name server takes. */
const MAX_LOOKUPS = 2
let asking = 0
const waiting: (() => void)[] = []

async function fromSystem(host: string): Promise<readonly string[]> {
  if (asking === MAX_LOOKUPS) await new Promise<void>(resolve => waiting.push(resolve))
  else asking++
  try {
    const found = await lookup(host, { all: true, order: 'verbatim' })
    return found.map(item => item.address)
  } finally {
    const next = waiting.shift()
    if (next) next()
    else asking--
  }
}
