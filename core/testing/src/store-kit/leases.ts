import assert from 'node:assert/strict'
import { type LeaseRequest, Store } from '@svc/core/contracts'
import { abortable, fails, type Rig, type StoreCase, withClockAhead } from './rig.ts'

const request = (holder: string, parts: Partial<LeaseRequest> = {}): LeaseRequest => ({
  holder,
  ttlMs: 20_000,
  waitMs: 0,
  ...parts,
})
const take = ({ ctx }: Rig, store: Store, lease: string, holder: string, parts?: Partial<LeaseRequest>) =>
  store.acquire(lease, request(holder, parts), ctx)
const write = (store: Store, fence: { lease: string; fence: number }, { ctx }: Rig, value = 1) =>
  store.batch([{ op: 'put', collection: 'plain', key: 'a', value }], { fence: { lease: fence.lease, fence: fence.fence } }, ctx)

/** Leases and fences. */
export const leaseCases: readonly StoreCase[] = [
  [
    'gives a lease to one holder at a time, on both handles',
    async rig => {
      const other = await rig.second()
      const lease = await take(rig, rig.store, 'l', 'a')
      assert.equal(lease.lease, 'l')
      assert.ok(Number.isSafeInteger(lease.fence) && lease.fence > 0)
      assert.ok(lease.validMs >= 20_000 && lease.validMs < 30_000, `valid for ${lease.validMs} ms`)
      assert.ok(Number.isSafeInteger(lease.expiresAt) && lease.expiresAt > 0)
      await fails(take(rig, rig.store, 'l', 'b'), 'LEASE_BUSY')
      await fails(take(rig, other, 'l', 'b'), 'LEASE_BUSY')
      await fails(take(rig, rig.store, 'l', 'a'), 'LEASE_BUSY')
      await take(rig, other, 'm', 'b')
      await rig.store.release(lease, rig.ctx)
      await take(rig, other, 'l', 'b')
    },
  ],
  [
    'raises the fence with each holder, on both handles',
    async rig => {
      const handles = [rig.store, await rig.second()]
      let last = 0
      for (let round = 0; round < 20; round++) {
        const lease = await take(rig, handles[round % 2]!, 'l', `h${round}`)
        assert.ok(lease.fence > last, `fence ${lease.fence} after ${last}`)
        last = lease.fence
        await handles[round % 2]!.release(lease, rig.ctx)
      }
    },
  ],
  [
    'serves the waiting callers of one process in the order of their calls',
    async rig => {
      const first = await take(rig, rig.store, 'l', 'first')
      const order: number[] = []
      const waiting = Array.from({ length: 10 }, async (_, i) => {
        const lease = await take(rig, rig.store, 'l', `h${i}`, { waitMs: 20_000 })
        order.push(i)
        await rig.store.release(lease, rig.ctx)
      })
      await rig.store.release(first, rig.ctx)
      await Promise.all(waiting)
      assert.deepEqual(order, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    },
  ],
  [
    'lets the other handle wait for a release',
    async rig => {
      const other = await rig.second()
      const lease = await take(rig, rig.store, 'l', 'a')
      const next = take(rig, other, 'l', 'b', { waitMs: 20_000 })
      await rig.store.release(lease, rig.ctx)
      assert.ok((await next).fence > lease.fence)
    },
  ],
  [
    'stops waiting after waitMs',
    async rig => {
      const other = await rig.second()
      const lease = await take(rig, rig.store, 'l', 'a')
      await fails(take(rig, rig.store, 'l', 'b', { waitMs: 30 }), 'LEASE_BUSY')
      await fails(take(rig, other, 'l', 'b', { waitMs: 30 }), 'LEASE_BUSY')
      await rig.store.release(lease, rig.ctx)
      await take(rig, rig.store, 'l', 'c')
    },
  ],
  [
    'stops waiting when the caller aborts, and serves the next caller',
    async rig => {
      const lease = await take(rig, rig.store, 'l', 'a')
      const gone = abortable(rig.ctx)
      const abandoned = rig.store.acquire('l', request('b', { waitMs: 20_000 }), gone.ctx)
      const next = take(rig, rig.store, 'l', 'c', { waitMs: 20_000 })
      gone.abort()
      await assert.rejects(abandoned)
      await rig.store.release(lease, rig.ctx)
      assert.ok((await next).fence > lease.fence)
    },
  ],
  [
    'gives an expired lease to the next holder with a higher fence, and rejects the former holder',
    async rig => {
      const other = await rig.second()
      const late = await take(rig, rig.store, 'l', 'a', { ttlMs: 40 })
      const next = await take(rig, other, 'l', 'b', { waitMs: 20_000 })
      assert.ok(next.fence > late.fence)
      await fails(write(rig.store, late, rig), 'STORE_FENCED')
      await fails(rig.store.renew(late, 1000, rig.ctx), 'STORE_FENCED')
      await write(other, next, rig)
      await rig.store.release(late, rig.ctx)
      await write(other, next, rig)
      await fails(take(rig, rig.store, 'l', 'c'), 'LEASE_BUSY')
    },
  ],
  [
    'keeps a lease that is renewed in time',
    async rig => {
      const other = await rig.second()
      const lease = await take(rig, rig.store, 'l', 'a', { ttlMs: 2_000 })
      const longer = await rig.store.renew(lease, 20_000, rig.ctx)
      assert.equal(longer.fence, lease.fence)
      assert.ok(longer.expiresAt > lease.expiresAt)
      assert.ok(longer.validMs > lease.validMs)
      await fails(take(rig, other, 'l', 'b', { waitMs: 30 }), 'LEASE_BUSY')
      await write(rig.store, longer, rig)
    },
  ],
  [
    'checks the fence for every operation of a batch that has one',
    async rig => {
      const other = await rig.second()
      const former = await take(rig, rig.store, 'l', 'a')
      await write(rig.store, former, rig, 1)
      await rig.store.release(former, rig.ctx)
      await fails(write(rig.store, former, rig, 2), 'STORE_FENCED')
      const lease = await take(rig, other, 'l', 'b')
      await fails(write(rig.store, former, rig, 2), 'STORE_FENCED', { lease: 'l', fence: former.fence })
      await fails(write(other, former, rig, 2), 'STORE_FENCED')
      assert.equal((await rig.store.get('plain', 'a', rig.ctx))?.value, 1)
      await write(other, lease, rig, 3)
      await rig.put('plain', 'a', 4)
      assert.equal((await rig.store.get('plain', 'a', rig.ctx))?.value, 4)
    },
  ],
  [
    'never lets a former holder write after the next holder has written',
    async rig => {
      const handles = [rig.store, await rig.second()]
      let last: { lease: string; fence: number } | undefined
      for (let round = 1; round <= 10; round++) {
        const lease = await take(rig, handles[round % 2]!, 'l', `h${round}`)
        const [mine, ...late] = await Promise.allSettled([
          write(handles[round % 2]!, lease, rig, round),
          ...(last ? [write(handles[0]!, last, rig, -1), write(handles[1]!, last, rig, -1)] : []),
        ])
        assert.equal(mine.status, 'fulfilled')
        assert.ok(late.every(item => item.status === 'rejected'))
        assert.equal((await rig.store.get('plain', 'a', rig.ctx))?.value, round)
        await handles[round % 2]!.release(lease, rig.ctx)
        last = lease
      }
    },
  ],
  [
    'never reports a longer validity of a lease than others respect, including the waiting time',
    async rig => {
      const other = await rig.second()
      await take(rig, rig.store, 'l', 'a', { ttlMs: 300 })
      const asked = performance.now()
      const lease = await take(rig, other, 'l', 'b', { ttlMs: 500, waitMs: 20_000 })
      const next = take(rig, rig.store, 'l', 'c', { waitMs: 20_000 }).then(() => performance.now())
      const waitedMs = performance.now() - asked
      assert.ok(lease.validMs <= waitedMs + 500, `valid for ${lease.validMs} ms, ${waitedMs} ms after it was asked for`)
      assert.ok(asked + lease.validMs <= (await next) + 5, 'the next holder came while the lease was valid')
    },
  ],
  [
    'does not give away a lease because the clock of a process differs',
    async rig => {
      const ahead = withClockAhead(Store, await rig.second(), 5 * 60_000)
      const lease = await take(rig, rig.store, 'l', 'a')
      await fails(take(rig, ahead, 'l', 'b'), 'LEASE_BUSY')
      await fails(take(rig, ahead, 'l', 'b', { waitMs: 100 }), 'LEASE_BUSY')
      await write(rig.store, await rig.store.renew(lease, 20_000, rig.ctx), rig)
      await rig.store.release(lease, rig.ctx)
      const next = await take(rig, ahead, 'l', 'b', { ttlMs: 30_000 })
      assert.ok(Math.abs(next.expiresAt - lease.expiresAt - 10_000) < 15_000, 'the clock of the caller sets the time')
      await fails(take(rig, rig.store, 'l', 'c'), 'LEASE_BUSY')
      await write(ahead, await ahead.renew(next, 20_000, rig.ctx), rig)
      await ahead.release(next, rig.ctx)
      const short = await take(rig, ahead, 'l', 'd', { ttlMs: 50 })
      assert.ok((await take(rig, rig.store, 'l', 'e', { waitMs: 20_000 })).fence > short.fence)
    },
  ],
  [
    'reports how far its clock is from the clock of a process',
    async rig => {
      const { clockOffsetMs } = await withClockAhead(Store, await rig.second(), 5 * 60_000).probe(rig.ctx)
      const expected = rig.hasOtherClock ? 0 : -5 * 60_000
      assert.ok(Math.abs(clockOffsetMs - expected) < 1000, `the clock is off by ${clockOffsetMs} ms, not by ${expected} ms`)
    },
  ],
  [
    'ignores the release of a lease that was lost or never held',
    async rig => {
      const lease = await take(rig, rig.store, 'l', 'a')
      await rig.store.release({ lease: 'l', fence: lease.fence + 1 }, rig.ctx)
      await rig.store.release({ lease: 'never', fence: 1 }, rig.ctx)
      await rig.store.release(lease, rig.ctx)
      await rig.store.release(lease, rig.ctx)
      await fails(rig.store.renew({ lease: 'never', fence: 1 }, 1000, rig.ctx), 'STORE_FENCED')
    },
  ],
  [
    'releases all leases of a dead process by the prefix of their holder, and no others',
    async rig => {
      const other = await rig.second()
      const dead = await Promise.all(['a', 'b', 'c'].map(name => take(rig, rig.store, name, `worker_1:${name}`)))
      await take(rig, rig.store, 'd', 'worker_10:d')
      await take(rig, rig.store, 'e', 'workerx1:e')
      const waiting = take(rig, other, 'a', 'worker-2:a', { waitMs: 20_000 })
      await other.releaseHolder('worker_1:', rig.ctx)
      assert.ok((await waiting).fence > dead[0]!.fence)
      await take(rig, rig.store, 'b', 'worker-2:b')
      await take(rig, rig.store, 'c', 'worker-2:c')
      await fails(take(rig, rig.store, 'd', 'x'), 'LEASE_BUSY')
      await fails(take(rig, rig.store, 'e', 'x'), 'LEASE_BUSY')
      await fails(write(rig.store, dead[0]!, rig), 'STORE_FENCED')
    },
  ],
  [
    'protects a critical section: loses none of 40 increments under the lease, on two handles',
    async rig => {
      const handles = [rig.store, await rig.second()]
      await rig.put('plain', 'n', 0)
      const increment = async (worker: number) => {
        const handle = handles[worker % 2]!
        const { lease, fence } = await take(rig, handle, 'l', `w${worker}`, { waitMs: 20_000 })
        const there = await handle.get('plain', 'n', rig.ctx)
        await handle.batch(
          [{ op: 'put', collection: 'plain', key: 'n', value: Number(there?.value) + 1 }],
          { fence: { lease, fence } },
          rig.ctx
        )
        await handle.release({ lease, fence }, rig.ctx)
      }
      await Promise.all(Array.from({ length: 40 }, (_, worker) => increment(worker)))
      assert.equal((await rig.store.get('plain', 'n', rig.ctx))?.value, 40)
    },
  ],
  [
    'continues with higher fences when it is reopened',
    async rig => {
      if (!rig.reopen) return { missing: 'reopen' }
      let last = 0
      for (let round = 0; round < 3; round++) last = Math.max(last, (await take(rig, rig.store, `l${round}`, 'a')).fence)
      const again = await rig.reopen()
      assert.ok((await take(rig, again, 'fresh', 'a')).fence > last)
      await again.releaseHolder('a', rig.ctx)
      assert.ok((await take(rig, again, 'l0', 'b')).fence > last)
    },
  ],
  [
    'rejects invalid requests',
    async rig => {
      for (const parts of [{ ttlMs: 0 }, { ttlMs: Number.NaN }, { waitMs: -1 }, { holder: '' }]) {
        await fails(take(rig, rig.store, 'l', 'a', parts), 'STORE_INVALID')
      }
      await fails(take(rig, rig.store, '', 'a'), 'STORE_INVALID')
    },
  ],
]
