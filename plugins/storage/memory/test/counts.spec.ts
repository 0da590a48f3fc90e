import { setTimeout } from 'node:timers/promises'
import { expect } from 'chai'
import { createCounts } from '../src/store.ts'

const hit = (counts: ReturnType<typeof createCounts>, key: string, ms = 3_600_000) =>
  counts.count(key, [{ ms, limit: 1_000_000 }]).windows[0]!
const hitAll = (counts: ReturnType<typeof createCounts>, name: string, count: number, ms?: number) => {
  for (let at = 0; at < count; at++) hit(counts, `${name}${at}`, ms)
}

describe('what the store in memory counts', () => {
  it('is bounded: the keys that began first are forgotten', () => {
    const counts = createCounts(100)
    hitAll(counts, 'k', 100)
    hit(counts, 'k0')
    hitAll(counts, 'more', 10)
    expect(counts.size).to.equal(100)
    expect(hit(counts, 'k10').count).to.equal(2)
    expect(hit(counts, 'k0').count).to.equal(1)
  })

  it('gives up what is over before anything else', async () => {
    const counts = createCounts(100)
    hit(counts, 'kept')
    hitAll(counts, 'short', 90, 1)
    const { endsAt } = hit(counts, 'short', 1)
    while (Date.now() <= endsAt) await setTimeout(1)
    hitAll(counts, 'long', 60)
    expect(hit(counts, 'kept').count).to.equal(2)
    expect(counts.size).to.be.below(75)
  })
})
