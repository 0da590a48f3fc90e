import type { ModelCall, ModelEvent } from '@svc/core/contracts'
import { testContext } from '@svc/testing'
import { expect } from 'chai'
import { createCache, createLruCache } from '../src/cache.ts'

/** A cache with a clock that the test sets. */
function lruCacheOf(limits: Partial<Parameters<typeof createLruCache>[0]>) {
  const clock = { now: 0 }
  return { clock, lru: createLruCache({ ttlMs: 1_000, entries: 100, bytes: 1_000_000, ...limits }, () => clock.now) }
}

const CALL: ModelCall = {
  turn: 't',
  selected: {
    provider: 'p',
    model: 'm',
    source: { provider: 'profile', model: 'profile' },
    profile: { name: 'd' },
    mode: 'build',
    fallback: [],
  },
  request: { model: 'm', messages: [] },
  round: 1,
  attempt: 1,
  tried: [],
}

describe('what the cache keeps', () => {
  it('counts until its time is over, however often it is read', () => {
    const { lru, clock } = lruCacheOf({ ttlMs: 1_000 })
    lru.put('k', 'text')
    clock.now = 999
    expect(lru.get('k')).to.equal('text')
    clock.now = 1_000
    expect(lru.get('k')).to.equal(undefined)
  })

  it('does not become younger when it is given', () => {
    const { lru, clock } = lruCacheOf({ ttlMs: 1_000 })
    const cache = createCache({ lru, counts: { asked: () => undefined }, shared: false })
    const events: ModelEvent[] = [{ type: 'finish', reason: 'stop' }]
    const ended = { usage: { input: 0, output: 0 }, durationMs: 1, firstMs: 1, events }
    cache.done({ ...CALL, ...ended }, testContext())
    clock.now = 900
    expect(cache.called(CALL, testContext())).to.deep.equal({ events })
    cache.done({ ...CALL, ...ended, answered: true }, testContext())
    clock.now = 1_000
    expect(cache.called(CALL, testContext())).to.equal(undefined)
  })

  it('is not counted in once its time is over', () => {
    const { lru, clock } = lruCacheOf({ ttlMs: 1_000 })
    lru.put('old', 'text')
    clock.now = 500
    lru.put('new', 'text')
    expect(lru.size).to.equal(2)
    clock.now = 1_000
    expect(lru.size).to.equal(1)
  })

  it('is so many at most: the one that was read longest ago goes', () => {
    const { lru } = lruCacheOf({ entries: 2 })
    for (const key of ['a', 'b']) lru.put(key, key)
    lru.get('a')
    lru.put('c', 'c')
    expect(['a', 'b', 'c'].map(key => lru.get(key))).to.deep.equal(['a', undefined, 'c'])
  })

  it('is so many bytes at most, and what alone is more is not kept', () => {
    const { lru } = lruCacheOf({ bytes: 3_000 })
    for (const key of ['a', 'b', 'c']) lru.put(key, 'x'.repeat(1_000))
    expect(lru.size).to.equal(2)
    lru.put('big', 'é'.repeat(1_500))
    expect(lru.get('big')).to.equal(undefined)
    expect(lru.size).to.equal(2)
  })

  it('takes no more room when it is kept anew', () => {
    const { lru } = lruCacheOf({ bytes: 3_000 })
    lru.put('b', 'x'.repeat(1_000))
    for (let at = 0; at < 10; at++) lru.put('a', 'x'.repeat(1_000))
    expect(lru.get('b')).to.have.lengthOf(1_000)
  })
})
