import { expect } from 'chai'
import { svcError, systemContext } from '@svc/core'
import type { Fence, Lease } from '@svc/core/contracts'
import { acquireHold, keepLease, storeFenced } from '../src/index.ts'

const ctx = systemContext(new AbortController().signal)
const request = (ttlMs: number) => ({ holder: 'worker/test', ttlMs, waitMs: 0 })
const codeOf = (error: unknown) => (error as { code?: string }).code

/** A store of one lease; `answer` decides about each renewal. */
function leaseStore(answer: (times: number) => Promise<void> = async () => {}) {
  const calls = { renewed: 0, released: 0 }
  // the wall clock of the store is of no use to its holder
  const lease = (ttlMs: number): Lease => ({ lease: 'l', fence: 7, expiresAt: 0, validMs: ttlMs })
  return {
    calls,
    acquire: async (_lease: string, { ttlMs }: { ttlMs: number }) => lease(ttlMs),
    async renew(_fence: Fence, ttlMs: number) {
      await answer(++calls.renewed)
      return lease(ttlMs)
    },
    async release() {
      calls.released++
    },
  }
}

const aborted = (signal: AbortSignal) =>
  new Promise<unknown>(resolve => signal.addEventListener('abort', () => resolve(signal.reason), { once: true }))

describe('a lease in the hands of its holder', () => {
  it('is held until shortly before it expires, whatever the clock of the machine says', async () => {
    const { now } = Date
    const hold = await acquireHold(leaseStore(), 'l', request(1000), ctx)
    try {
      Date.now = () => now() + 3_600_000
      expect(hold.leftMs).to.be.within(500, 900)
    } finally {
      Date.now = now
    }
  })

  it('counts from the moment of asking, not of the answer', async () => {
    const slow = {
      ...leaseStore(),
      acquire: () =>
        new Promise<Lease>(resolve => setTimeout(resolve, 200, { lease: 'l', fence: 7, expiresAt: 0, validMs: 1000 })),
    }
    expect((await acquireHold(slow, 'l', request(1000), ctx)).leftMs).to.be.at.most(702)
  })

  it('stays held after a renewal that failed, and is lost when none succeeds in time, a hanging one included', async () => {
    const down = leaseStore(() => Promise.reject(svcError('STORE_UNAVAILABLE', 'down')))
    const hold = await acquireHold(down, 'l', request(200), ctx)
    expect(codeOf(await hold.renew(ctx).catch(error => error))).to.equal('STORE_UNAVAILABLE')
    expect(hold.leftMs).to.be.above(0)
    const hanging = await acquireHold(
      leaseStore(() => new Promise(() => {})),
      'l',
      request(1000),
      ctx
    )
    const began = performance.now()
    expect(codeOf(await hanging.renew(ctx).catch(error => error))).to.equal('STORE_FENCED')
    expect(performance.now() - began).to.be.below(1000)
    expect(hanging.leftMs).to.equal(0)
    expect(codeOf(await hanging.renew(ctx).catch(error => error))).to.equal('STORE_FENCED')
  })
})

describe('a kept lease', () => {
  it('renews itself while its work runs, and is released at the end', async () => {
    const store = leaseStore()
    {
      await using kept = await keepLease(store, 'l', request(900), ctx)
      while (store.calls.renewed < 3 && !kept.ctx.signal.aborted) await new Promise(resolve => setTimeout(resolve, 10))
      expect(kept.ctx.signal.aborted).to.equal(false)
    }
    const { renewed, released } = store.calls
    expect(released).to.equal(1)
    await new Promise(resolve => setTimeout(resolve, 400))
    expect(store.calls.renewed).to.equal(renewed)
  })

  it('aborts its work when another holder has it, and when the store stays away', async () => {
    for (const answer of [
      () => Promise.reject(storeFenced('l', 7)),
      () => Promise.reject(svcError('STORE_UNAVAILABLE', 'down')),
      () => new Promise<void>(() => {}),
    ]) {
      await using kept = await keepLease(leaseStore(answer), 'l', request(150), ctx)
      expect(codeOf(await aborted(kept.ctx.signal))).to.equal('STORE_FENCED')
    }
  })

  it('survives a store that is away for a moment', async () => {
    const away = leaseStore(times => (times === 1 ? Promise.reject(svcError('STORE_UNAVAILABLE', 'down')) : Promise.resolve()))
    await using kept = await keepLease(away, 'l', request(300), ctx)
    await new Promise(resolve => setTimeout(resolve, 400))
    expect(kept.ctx.signal.aborted).to.equal(false)
    expect(away.calls.renewed).to.be.at.least(2)
  })
})
