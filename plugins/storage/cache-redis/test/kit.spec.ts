import { setTimeout as sleep } from 'node:timers/promises'
import { registerSecret, systemContext } from '@svc/core'
import { Cache, CacheAreas } from '@svc/core/contracts'
import { cacheKit, type CacheSubject, item, KIT_CACHES, testHost } from '@svc/testing'
import { type Redis, startRedis } from '@svc/testing/engines'
import { expect } from 'chai'
import { describeWith } from '../../../../test/support/needs.ts'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'

const ctx = systemContext(new AbortController().signal, 'test')
const AREAS = Object.entries(KIT_CACHES).map(([name, area]) => item(CacheAreas, name, area))
let clusters = 0

const openCache = (clusterId: string, url: string, more: object = {}) =>
  testHost(
    ['redis', 'cache-redis'].map(name => ({ name: `@svc/plugin-${name}`, use: pluginFolder(name) })),
    { clusterId, config: { redis: { url, ...more } }, give: AREAS }
  )

describeWith('redis', 'a cache in Redis', () => {
  const stack = new AsyncDisposableStack()
  let redis: Redis
  before(async () => (redis = stack.use(await startRedis())))
  after(() => stack.disposeAsync())

  async function open(): Promise<CacheSubject> {
    const cluster = `cache${++clusters}`
    const [one, two] = [await openCache(cluster, redis.url), await openCache(cluster, redis.url)]
    return { cache: one.service(Cache), other: two.service(Cache), close: () => Promise.all([one.close(), two.close()]) }
  }
  for (const testCase of cacheKit(open)) it(testCase.title, testCase.run)

  it('keeps no secret in clear', async () => {
    await using host = await openCache(`cache${++clusters}`, redis.url)
    const cache = host.service(Cache)
    const secret = 'canary-of-the-cache-5c1d09ab'
    const forget = registerSecret(secret)
    try {
      await cache.put('kit', 'a', 1, ctx)
      expect(await cache.put('kit', 'a', { token: secret }, ctx)).to.equal(false)
      expect(await cache.get('kit', 'a', ctx)).to.equal(undefined)
    } finally {
      forget()
    }
  })

  it('starts anew when Redis has evicted a part of a cache', async () => {
    for (const part of ['values', 'ends', 'bytes']) {
      const cluster = `cache${++clusters}`
      await using host = await openCache(cluster, redis.url)
      const cache = host.service(Cache)
      for (let at = 0; at < 5; at++) await cache.put('kit', `k${at}`, at, ctx)
      const [key] = (await redis.command('KEYS', `svc:${cluster}:cache:*:${part}`)) as string[]
      await redis.command('DEL', key!)
      expect(await cache.put('kit', 'new', 7, ctx)).to.equal(true)
      expect([await cache.get('kit', 'new', ctx), (await cache.stats('kit', ctx)).entries]).to.deep.equal([7, 1])
      expect((await cache.stats('kit', ctx)).bytes).to.be.above(0)
    }
  })

  it('limits the bytes of each cache by the configuration, and lets entries of unused caches expire', async () => {
    const cluster = `cache${++clusters}`
    await using host = await openCache(cluster, redis.url, { cache: { max_bytes: 2_000 } })
    const cache = host.service(Cache)
    for (let at = 0; at < 20; at++) await cache.put('kit', `k${at}`, 'x'.repeat(300), ctx)
    expect((await cache.stats('kit', ctx)).bytes).to.be.within(1_000, 2_000)
    expect(await cache.put('kit', 'large', 'x'.repeat(3_000), ctx)).to.equal(false)
    for (const key of (await redis.command('KEYS', `svc:${cluster}:*`)) as string[])
      expect(await redis.command('PTTL', key), key).to.be.within(1, 60_000)
  })

  it('finds and keeps nothing while Redis is away, and does not hide that an entry may still be there', async () => {
    await using own = await startRedis({ persistent: true })
    await using host = await openCache(`cache${++clusters}`, own.url)
    const cache = host.service(Cache)
    await cache.put('kit', 'a', 1, ctx)
    await own.kill()
    expect([await cache.get('kit', 'a', ctx), await cache.put('kit', 'b', 1, ctx)]).to.deep.equal([undefined, false])
    const codes = await Promise.all(
      [cache.delete('kit', 'a', ctx), cache.clear('kit', ctx)].map(work => work.catch((error: { code: string }) => error.code))
    )
    for (const code of codes) expect(code).to.match(/^STORE_UN/)
    await own.start()
    for (const end = Date.now() + 10_000; (await cache.get('kit', 'a', ctx)) !== 1; await sleep(20))
      if (Date.now() > end) throw new Error('the cache did not come back')
  })
})
