import type { WorkerMetrics, Peers } from '@svc/core/contracts'
import { testContext } from '@svc/testing'
import { expect } from 'chai'
import { createCacheCounts } from '../src/cache.ts'

type Counts = ReturnType<typeof createCacheCounts>

/** Workers that tell each other their figures; those that ended as well. */
function workers(...kept: number[]) {
  const all: Counts[] = []
  const ended = new Set<Counts>()
  const metrics = async () =>
    all.map((counts): WorkerMetrics => ({ ...counts.own({}), ...(ended.has(counts) ? { ended: true } : {}) }))
  const peers: Pick<Peers, 'metrics'> = { metrics }
  all.push(...kept.map(size => createCacheCounts(() => size, peers)))
  return { all, ended }
}

describe('the figures of the cache', () => {
  it('are those of all workers', async () => {
    const [first, two] = workers(5, 6).all
    first?.asked(true)
    two?.asked(true)
    two?.asked(false)
    expect(await first?.read(testContext())).to.deep.equal({ hits: 2, misses: 1, size: 11 })
  })

  it('keep what a worker that ended has counted, but not what it kept', async () => {
    const { all, ended } = workers(5, 6)
    const [first, two] = all
    two?.asked(true)
    if (two) ended.add(two)
    expect(await first?.read(testContext())).to.deep.equal({ hits: 1, misses: 0, size: 5 })
    first?.inherit(two?.own({}) ?? {})
    all.pop()
    expect(await first?.read(testContext())).to.deep.equal({ hits: 1, misses: 0, size: 5 })
  })

  it('leave what was inherited out of the metrics, which inherit by themselves', () => {
    const [first, two] = workers(5, 6).all
    two?.asked(true)
    first?.inherit(two?.own({}) ?? {})
    const [hits] = first?.families() ?? []
    expect(hits?.values[0]?.value).to.equal(0)
  })
})
