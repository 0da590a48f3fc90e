import type { WorkerMetrics, Peers } from '@svc/core/contracts'
import { testContext } from '@svc/testing'
import { expect } from 'chai'
import { createCacheCounts } from '../src/cache.ts'

type Counts = ReturnType<typeof createCacheCounts>

/** Workers that tell each other their figures; those that ended as well. */
function workers(kept: number[], isShared = false) {
  const all: Counts[] = []
  const ended = new Set<Counts>()
  const own = async (counts: Counts): Promise<WorkerMetrics> => ({
    ...(await counts.own({}, testContext())),
    ...(ended.has(counts) ? { ended: true } : {}),
  })
  const peers: Pick<Peers, 'metrics'> = { metrics: () => Promise.all(all.map(own)) }
  all.push(...kept.map(size => createCacheCounts(async () => ({ size, isShared }), peers)))
  return { all, ended }
}

describe('the figures of the cache', () => {
  it('are those of all workers', async () => {
    const [first, two] = workers([5, 6]).all
    first?.asked(true)
    two?.asked(true)
    two?.asked(false)
    expect(await first?.read(testContext())).to.deep.equal({ hits: 2, misses: 1, size: 11, isShared: false })
  })

  it('keep what a worker that ended has counted, but not what it kept', async () => {
    const { all, ended } = workers([5, 6])
    const [first, two] = all
    two?.asked(true)
    if (two) ended.add(two)
    expect(await first?.read(testContext())).to.deep.equal({ hits: 1, misses: 0, size: 5, isShared: false })
    first?.inherit((await two?.own({}, testContext())) ?? {})
    all.pop()
    expect(await first?.read(testContext())).to.deep.equal({ hits: 1, misses: 0, size: 5, isShared: false })
  })

  it('count the entries once that all workers share', async () => {
    const [first] = workers([7, 7], true).all
    expect((await first?.read(testContext()))?.size).to.equal(7)
    const entries = (await first?.families(testContext()))?.find(({ name }) => name === 'svc_cache_entries')
    expect(entries).to.include({ aggregator: 'max' })
  })

  it('leave what was inherited out of the metrics, which inherit by themselves', async () => {
    const [first, two] = workers([5, 6]).all
    two?.asked(true)
    first?.inherit((await two?.own({}, testContext())) ?? {})
    const [hits] = (await first?.families(testContext())) ?? []
    expect(hits?.values[0]?.value).to.equal(0)
  })
})
