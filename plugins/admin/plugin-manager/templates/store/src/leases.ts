import type { Fence, Lease } from '@svc/core/contracts'
import { createLeaseQueue, steadyNow, storeFenced } from '@svc/storage-kit'

//js: /** @typedef {{ holder: string, fence: number, expiresAt: number }} Holding */
interface Holding {
  readonly holder: string
  readonly fence: number
  expiresAt: number
}

/** The holders of leases. The fence increases with each new holder. */
export const createLeases = () => {
  //js: /** @type {Map<string, Holding>} */
  const held = new Map<string, Holding>()
  // higher than any fence of an earlier process: it starts from the clock, which is faster than any caller
  let last = Date.now() * 1000

  //js: /** @type {(fence: import('@svc/core/contracts').Fence) => Holding} */
  const check = ({ lease, fence }: Fence): Holding => {
    const there = held.get(lease)
    if (there === undefined || there.fence !== fence) throw storeFenced(lease, fence)
    return there
  }
  //js: /** @type {(fence: import('@svc/core/contracts').Fence) => void} */
  const release = ({ lease, fence }: Fence): void => {
    if (held.get(lease)?.fence !== fence) return
    held.delete(lease)
    queue.freed(lease)
  }
  const queue = createLeaseQueue({
    async attempt(lease, { holder, ttlMs }) {
      const there = held.get(lease)
      const now = steadyNow()
      if (there && there.expiresAt > now) return { busyMs: there.expiresAt - now }
      const holding = { holder, fence: ++last, expiresAt: now + ttlMs }
      held.set(lease, holding)
      return { lease, fence: holding.fence, expiresAt: holding.expiresAt }
    },
    release: async lease => release(lease),
    // no other process can release them
    lookAgain: () => Number.POSITIVE_INFINITY,
  })
  return {
    queue,
    check,
    release,
    //js: /** @param {import('@svc/core/contracts').Fence} lease @param {number} ttlMs @returns {import('@svc/core/contracts').Lease} */
    renew(lease: Fence, ttlMs: number): Lease {
      const there = check(lease)
      const now = steadyNow()
      if (there.expiresAt <= now) throw storeFenced(lease.lease, lease.fence)
      there.expiresAt = now + ttlMs
      return { lease: lease.lease, fence: lease.fence, expiresAt: there.expiresAt, validMs: ttlMs }
    },
    //js: /** @param {string} prefix */
    releaseHolder(prefix: string): void {
      for (const [name, { holder }] of held) if (holder.startsWith(prefix)) held.delete(name)
      queue.freed()
    },
  }
}
