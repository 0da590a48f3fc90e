import { checkLease, createLeaseQueue, storeFenced } from '@svc/storage-kit'

/** Delay between two checks of a lease that another process holds. */
const LONGEST_LOOK_MS = 50

/**
 * Holders of leases. SQLite assigns each fence only once, also after a restart.
 * @param {ReturnType<typeof import('./drawers.js').openDrawers>} drawers
 * @param {(ctx: import('@svc/core').CallContext) => void} enter Throws if the store is closed or the call is aborted.
 */
export function createLeases({ db, atOnce, clock }, enter) {
  const held = db.prepare('SELECT expires FROM leases WHERE lease = ? AND expires > ?')
  const take = db.prepare('INSERT OR REPLACE INTO leases (lease, holder, expires) VALUES (?, ?, ?)')
  const there = db.prepare('SELECT 1 FROM leases WHERE lease = ? AND fence = ?')
  const extend = db.prepare('UPDATE leases SET expires = ? WHERE lease = ? AND fence = ? AND expires > ?')
  const free = db.prepare('DELETE FROM leases WHERE lease = ? AND fence = ?')
  const freeAll = db.prepare('DELETE FROM leases WHERE substr(holder, 1, length(?1)) = ?1')

  const release = ({ lease, fence }) => {
    atOnce(() => free.run(lease, fence))
    queue.freed(lease)
  }
  const queue = createLeaseQueue({
    attempt: async (lease, { holder, ttlMs }) =>
      atOnce(() => {
        const now = clock()
        const busy = held.get(lease, now)
        if (busy) return { busyMs: busy.expires - now }
        const expiresAt = now + ttlMs
        return { lease, fence: Number(take.run(lease, holder, expiresAt).lastInsertRowid), expiresAt }
      }),
    release: async lease => release(lease),
    lookAgain: looks => Math.min(LONGEST_LOOK_MS, 2 ** looks),
  })
  return {
    close: () => queue.close(),
    /** @param {import('@svc/core/contracts').Fence} fence Throws STORE_FENCED if another holder has the lease. */
    check({ lease, fence }) {
      if (!there.get(lease, fence)) throw storeFenced(lease, fence)
    },
    /** @type {Pick<import('@svc/core/contracts').Store, 'acquire' | 'renew' | 'release' | 'releaseHolder'>} */
    contract: {
      async acquire(lease, request, ctx) {
        enter(ctx)
        checkLease(lease, request.ttlMs, request.waitMs, request.holder)
        return queue.acquire(lease, request, ctx)
      },
      async renew({ lease, fence }, ttlMs, ctx) {
        enter(ctx)
        checkLease(lease, ttlMs)
        const now = clock()
        const { changes } = atOnce(() => extend.run(now + ttlMs, lease, fence, now))
        if (Number(changes) === 0) throw storeFenced(lease, fence)
        return { lease, fence, expiresAt: now + ttlMs, validMs: ttlMs }
      },
      async release(lease, ctx) {
        enter(ctx)
        release(lease)
      },
      async releaseHolder(prefix, ctx) {
        enter(ctx)
        atOnce(() => freeAll.run(prefix))
        queue.freed()
      },
    },
  }
}
