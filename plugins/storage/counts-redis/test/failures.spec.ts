import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf, definePlugin, systemContext } from '@svc/core'
import { Counts, StoreCounts } from '@svc/core/contracts'
import { testHost } from '@svc/testing'
import { type Redis, startRedis } from '@svc/testing/engines'
import { expect } from 'chai'
import { describeWith } from '../../../../test/support/needs.ts'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'

const ctx = systemContext(new AbortController().signal, 'test')
const hour = (limit: number) => [{ ms: 3_600_000, limit }]
let clusters = 0

/** A server with counts in Redis, and those of a store: three of each key are counted there already. */
async function openCounts(redis: Redis, counts: object = {}) {
  const inStore: string[] = []
  const store = definePlugin({
    provides: StoreCounts,
    setup: () => ({
      async count(key: string) {
        inStore.push(key)
        return { counted: true, windows: [{ count: 4, endsAt: 0, leftMs: 1 }] }
      },
    }),
  })
  const clusterId = `failing${++clusters}`
  const host = await testHost(
    ['redis', 'counts-redis'].map(name => ({ name: `@svc/plugin-${name}`, use: pluginFolder(name) })),
    { clusterId, config: { redis: { url: redis.url, wait_ms: 100, counts } }, give: [{ name: 'test:store', use: store }] }
  )
  const service = host.service(Counts)
  const count = async (key = 'k', limit = 5) => {
    const { counted, windows } = await service.count(key, hour(limit), ctx)
    return [counted, windows[0]!.count] as const
  }
  return { count, inStore, clusterId, [Symbol.asyncDispose]: () => host.close() }
}

describeWith('redis', 'counts in a Redis that fails', () => {
  it('fail while it is away, never count on their own, and count on after its return', async () => {
    await using redis = await startRedis({ persistent: true })
    await using counts = await openCounts(redis)
    expect(await counts.count()).to.deep.equal([true, 1])
    await redis.kill()
    for (let times = 0; times < 5; times++) expect(await counts.count().catch(codeOf)).to.match(/^STORE_UN(AVAILABLE|SURE)$/)
    await redis.start()
    const end = performance.now() + 5_000
    let found: unknown
    while (!Array.isArray((found = await counts.count().catch(codeOf)))) {
      expect(performance.now()).to.be.below(end)
      await sleep(20)
    }
    expect(found).to.deep.equal([true, 2])
    expect(counts.inStore).to.deep.equal([])
  })

  it('are those of the store meanwhile, if the configuration says so', async () => {
    await using redis = await startRedis()
    await using counts = await openCounts(redis, { fallback: 'store' })
    expect(await counts.count()).to.deep.equal([true, 1])
    expect(counts.inStore).to.deep.equal([])
    await redis.kill()
    expect([await counts.count(), await counts.count('other')]).to.deep.equal([
      [true, 4],
      [true, 4],
    ])
    expect(counts.inStore).to.deep.equal(['k', 'other'])
    expect(await counts.count('', 5).catch(codeOf), 'a wrong call is not counted anywhere').to.equal('STORE_INVALID')
    await redis.start()
    const end = performance.now() + 5_000
    while ((await counts.count('back'))[1] === 4) {
      expect(performance.now()).to.be.below(end)
      await sleep(20)
    }
  })

  it('fail while its memory is full, although windows run, and count on when there is some', async () => {
    await using redis = await startRedis({ maxMemory: '100mb' })
    await using counts = await openCounts(redis)
    expect(await counts.count()).to.deep.equal([true, 1])
    for (let at = 0; at < 30; at++) await redis.command('SET', `filler${at}`, 'x'.repeat(100_000))
    await redis.command('CONFIG', 'SET', 'maxmemory', '2mb')
    expect(await counts.count().catch(codeOf)).to.equal('STORE_UNAVAILABLE')
    await redis.command('CONFIG', 'SET', 'maxmemory', '100mb')
    expect(await counts.count()).to.deep.equal([true, 2])
  })

  it('begin new windows after a flush, and reject what another program has written', async () => {
    await using redis = await startRedis()
    await using counts = await openCounts(redis)
    expect(await counts.count()).to.deep.equal([true, 1])
    const key = `svc:${counts.clusterId}:counts:k`
    expect(await redis.command('PTTL', key), 'it expires with its window').to.be.within(3_500_000, 3_600_000)
    await redis.flush()
    expect(await counts.count()).to.deep.equal([true, 1])
    for (const text of ['{', '7', '[[1]]', '[["a","b","c"]]', '[[null]]']) {
      await redis.command('SET', key, text)
      expect(await counts.count().catch(codeOf), text).to.equal('STORE_UNAVAILABLE')
    }
    await redis.command('DEL', key)
    await redis.command('RPUSH', key, 'a list')
    expect(await counts.count().catch(codeOf)).to.equal('STORE_UNAVAILABLE')
  })
})
