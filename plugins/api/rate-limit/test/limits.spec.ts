import { svcError, type CallContext } from '@svc/core'
import { testContext } from '@svc/testing'
import { expect } from 'chai'
import { createLimits } from '../src/limits.ts'
import { createClockedCounts } from './support/clocked-counts.ts'

const CONFIG = { enabled: true, requests_per_minute: 3, requests_per_day: 5, by: 'address' } as const
const MINUTE = 60_000

function clocked(config: Partial<Parameters<typeof createLimits>[0]['config']> = {}) {
  const counts = createClockedCounts()
  const limits = createLimits({ config: { ...CONFIG, ...config }, counts, now: () => counts.now })
  return { counts, limits }
}
const from = (address: string, id = 'anonymous'): CallContext => testContext({ principal: { id, scopes: ['*'], address } })
const times = async <T>(count: number, work: () => Promise<T>): Promise<T[]> => {
  const all: T[] = []
  while (all.length < count) all.push(await work())
  return all
}

describe('limits', () => {
  it('count down the minute, refuse what is one too many, and begin again when the minute has passed', async () => {
    const { counts, limits } = clocked()
    const began = counts.now
    const answers = await times(4, () => limits.take(from('192.0.2.1')))
    expect(answers.map(answer => answer.remaining)).to.deep.equal([2, 1, 0, 0])
    const reset = began / 1000 + 60
    expect(answers[0]).to.deep.equal({ allowed: true, limit: 3, window: 60, remaining: 2, reset, retryAfter: 0 })
    const shown = { limit: 3, remaining: 0, reset }
    expect(answers[3]).to.deep.equal({ allowed: false, limit: 3, window: 60, remaining: 0, reset, retryAfter: 60, shown })
    counts.now += MINUTE
    expect(await limits.take(from('192.0.2.1'))).to.include({ allowed: true, remaining: 2, reset: reset + 60 })
  })

  it('begin a window with the first request, not with the clock', async () => {
    const { counts, limits } = clocked()
    counts.now += 12_345
    const { reset } = await limits.take(from('192.0.2.1'))
    expect(reset).to.equal(Math.ceil((counts.now + MINUTE) / 1000))
    counts.now += MINUTE - 1
    expect(await limits.take(from('192.0.2.1'))).to.include({ remaining: 1, reset })
    counts.now += 1
    expect(await limits.take(from('192.0.2.1'))).to.include({ remaining: 2 })
  })

  it('report the day if the day refuses, and always show the minute', async () => {
    const { counts, limits } = clocked()
    const began = counts.now
    await times(3, () => limits.take(from('192.0.2.1')))
    counts.now += MINUTE
    const [, second, third] = await times(3, () => limits.take(from('192.0.2.1')))
    expect(second).to.include({ allowed: true, limit: 3, window: 60, remaining: 1 })
    expect(third).to.deep.equal({
      allowed: false,
      limit: 5,
      window: 86_400,
      remaining: 0,
      reset: began / 1000 + 86_400,
      retryAfter: 86_340,
      shown: { limit: 3, remaining: 1, reset: began / 1000 + 120 },
    })
    counts.now += MINUTE
    const later = await limits.take(from('192.0.2.1'))
    expect(later.shown, 'a minute of which nothing is used').to.deep.equal({ limit: 3, remaining: 3, reset: began / 1000 + 180 })
  })

  it('take nothing from the day with what the minute refuses', async () => {
    const { counts, limits } = clocked()
    await times(30, () => limits.take(from('192.0.2.1')))
    counts.now += MINUTE
    const later = await times(3, () => limits.take(from('192.0.2.1')))
    expect(later.map(time => time.allowed)).to.deep.equal([true, true, false])
  })

  it('report the longer wait if both windows are full', async () => {
    const { limits } = clocked({ requests_per_day: 3 })
    const answers = await times(4, () => limits.take(from('192.0.2.1')))
    expect(answers[3]).to.include({ allowed: false, limit: 3, window: 86_400, retryAfter: 86_400 })
  })

  it('never set a retry time before the window ends, and at least one second', async () => {
    const { counts, limits } = clocked()
    await times(3, () => limits.take(from('192.0.2.1')))
    counts.now += MINUTE - 1
    expect(await limits.take(from('192.0.2.1'))).to.include({ allowed: false, retryAfter: 1 })
    counts.now -= 1000
    expect(await limits.take(from('192.0.2.1'))).to.include({ allowed: false, retryAfter: 2 })
  })

  it('ask the store once a request, and not at all for a client that has nothing left', async () => {
    const { counts, limits } = clocked()
    await times(3, () => limits.take(from('192.0.2.1')))
    expect(counts.asked).to.equal(3)
    const refused = await times(100, () => limits.take(from('192.0.2.1')))
    expect(refused.some(time => time.allowed)).to.equal(false)
    expect(counts.asked).to.equal(3)
    counts.now += MINUTE
    await limits.take(from('192.0.2.1'))
    expect(counts.asked).to.equal(4)
  })

  it('learn from the store what another worker has used up', async () => {
    const { counts, limits } = clocked()
    const other = createLimits({ config: CONFIG, counts, now: () => counts.now })
    await times(3, () => other.take(from('192.0.2.1')))
    expect(await limits.take(from('192.0.2.1'))).to.include({ allowed: false, window: 60, retryAfter: 60 })
    expect(await limits.take(from('192.0.2.1'))).to.include({ allowed: false })
    expect(counts.asked).to.equal(4)
  })

  it('ask the store again where the clock was set back', async () => {
    const { counts, limits } = clocked()
    await times(4, () => limits.take(from('192.0.2.1')))
    counts.now -= 3_600_000
    await limits.take(from('192.0.2.1'))
    expect(counts.asked).to.equal(4)
  })

  it('remember no more than 10,000 clients of a flood, and still refuse all others', async () => {
    const { counts, limits } = clocked({ requests_per_minute: 1 })
    const addressOf = (n: number) => from(`10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`)
    const allowed = async (first: number, end: number) => {
      let count = 0
      for (let n = first; n < end; n++) if ((await limits.take(addressOf(n))).allowed) count++
      return count
    }
    const flood = 200_000
    expect(await allowed(0, flood)).to.equal(flood)
    counts.asked = 0
    expect(await allowed(flood - 10_000, flood)).to.equal(0)
    expect(counts.asked, 'the last 10,000 are known').to.equal(0)
    expect(await allowed(0, 1_000)).to.equal(0)
    expect(counts.asked, 'the first ones are asked for').to.equal(1_000)
  })

  it('count an IPv6 client by its /64', async () => {
    const { limits } = clocked()
    const answers = []
    for (const address of ['2001:db8::1', '2001:db8::ffff:0:0:2', '2001:0DB8:0000:0000::3', '2001:db8::4'])
      answers.push(await limits.take(from(address)))
    expect(answers.map(answer => answer.allowed)).to.deep.equal([true, true, true, false])
    expect(await limits.take(from('2001:db8:0:1::1'))).to.include({ allowed: true, remaining: 2 })
  })

  it('count an authenticated client by address, or by principal from any address', async () => {
    const byAddress = clocked().limits
    for (const id of ['ann', 'bob', 'cy']) await byAddress.take(from('192.0.2.1', id))
    expect(await byAddress.take(from('192.0.2.1', 'dee'))).to.include({ allowed: false })
    const byPrincipal = clocked({ by: 'principal' }).limits
    for (const last of [1, 2, 3]) await byPrincipal.take(from(`192.0.2.${last}`, 'ann'))
    expect(await byPrincipal.take(from('192.0.2.4', 'ann'))).to.include({ allowed: false })
    expect(await byPrincipal.take(from('192.0.2.4', 'bob'))).to.include({ allowed: true, remaining: 2 })
  })

  it('count an anonymous client by address, also if the limit is by principal', async () => {
    const { limits } = clocked({ by: 'principal' })
    await times(3, () => limits.take(from('192.0.2.1')))
    expect(await limits.take(from('192.0.2.1'))).to.include({ allowed: false })
    expect(await limits.take(from('192.0.2.2'))).to.include({ allowed: true })
  })

  it('refuse with UNAVAILABLE while nothing can be counted, and count again afterwards', async () => {
    const { counts, limits } = clocked()
    const { count } = counts
    counts.count = () => Promise.reject(svcError('STORE_UNAVAILABLE', '/var/lib/svc.db: disk I/O error'))
    const failure: unknown = await limits.take(from('192.0.2.1')).catch((error: unknown) => error)
    expect(failure).to.include({ code: 'UNAVAILABLE', message: 'the server cannot count requests at the moment' })
    counts.count = count
    expect(await limits.take(from('192.0.2.1'))).to.include({ allowed: true, remaining: 2 })
  })

  it('end with the caller’s own reason where the caller has left', async () => {
    const { counts, limits } = clocked()
    const left = new AbortController()
    counts.count = (_key, _windows, ctx) => {
      left.abort(new Error('left'))
      return Promise.reject(ctx.signal.reason)
    }
    const { principal } = from('192.0.2.1')
    const failure: unknown = await limits.take(testContext({ principal, signal: left.signal })).catch((error: unknown) => error)
    expect(failure).to.include({ message: 'left' })
  })
})
