import type { CacheArea } from '@svc/core/contracts'
import { expect } from 'chai'
import { MemoryEntries } from '../src/memory.ts'

/** Entries with a clock that the test sets, and a cache of them. */
function entriesOf(limits: Partial<CacheArea>, maxBytes = 1_000_000) {
  const clock = { now: 1 }
  const entries = new MemoryEntries({ maxBytes, now: () => clock.now })
  const areaOf = (name: string) => {
    const item = { description: name, ttlMs: 1_000, maxEntries: 100, maxBytes: 1_000_000, ...limits }
    return { ...item, name, id: name, item }
  }
  const area = areaOf('a')
  return {
    clock,
    entries,
    areaOf,
    put: (key: string, text: string) => entries.put(area, key, text),
    get: (key: string) => entries.get(area, key),
    size: async () => (await entries.stats(area)).entries,
  }
}

describe('the entries in memory', () => {
  it('expire by a monotonic clock, however often they are read', async () => {
    const { put, get, size, clock } = entriesOf({ ttlMs: 1_000 })
    await put('k', 'text')
    clock.now = 501
    await put('new', 'text')
    clock.now = 1_001
    expect(await get('k')).to.equal('text')
    clock.now = 1_002
    expect(await size()).to.equal(1)
    expect(await get('k')).to.equal(undefined)
  })

  it('are limited in number: the one that was read longest ago goes', async () => {
    const { put, get } = entriesOf({ maxEntries: 2 })
    for (const key of ['a', 'b']) await put(key, key)
    await get('a')
    await put('c', 'c')
    expect(await Promise.all(['a', 'b', 'c'].map(get))).to.deep.equal(['a', undefined, 'c'])
  })

  it('are limited in bytes, and one that alone is more replaces the earlier value by none', async () => {
    const { put, get, size } = entriesOf({ maxBytes: 3_000 })
    for (const key of ['a', 'b', 'c']) expect(await put(key, 'x'.repeat(1_000))).to.equal(true)
    expect(await size()).to.equal(2)
    expect(await put('c', 'é'.repeat(1_500))).to.equal(false)
    expect([await get('c'), await size()]).to.deep.equal([undefined, 1])
  })

  it('take no more room when they are written again', async () => {
    const { put, get } = entriesOf({ maxBytes: 3_000 })
    await put('b', 'x'.repeat(1_000))
    for (let at = 0; at < 10; at++) await put('a', 'x'.repeat(1_000))
    expect(await get('b')).to.have.lengthOf(1_000)
  })

  it('are limited over all caches: the largest one gives room, and freed room counts', async () => {
    const { entries, areaOf } = entriesOf({}, 6_000)
    const [small, large] = [areaOf('small'), areaOf('large')]
    await entries.put(small, 'k', 'x'.repeat(1_000))
    for (let at = 0; at < 20; at++) await entries.put(large, `k${at}`, 'x'.repeat(1_000))
    const bytes = async () => (await entries.stats(small)).bytes + (await entries.stats(large)).bytes
    expect(await entries.get(small, 'k')).to.have.lengthOf(1_000)
    expect(await bytes()).to.be.within(4_000, 6_000)
    entries.forget(['large'])
    await entries.clear(small)
    for (let at = 0; at < 4; at++) await entries.put(small, `k${at}`, 'x'.repeat(1_000))
    expect((await entries.stats(small)).entries).to.equal(4)
  })

  it('are gone when the plugin adds the cache again', async () => {
    const { entries, areaOf } = entriesOf({})
    await entries.put(areaOf('a'), 'k', '1')
    const again = areaOf('a')
    expect(await entries.get(again, 'k')).to.equal(undefined)
    await entries.put(again, 'k', '2')
    expect(await entries.get(again, 'k')).to.equal('2')
  })
})
