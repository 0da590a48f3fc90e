import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { codeOf, definePlugin, registerSecret, svcError, systemContext } from '@svc/core'
import { Cache, CacheAreas, Store } from '@svc/core/contracts'
import { cacheKit, type CacheSubject, item, KIT_CACHES, testHost } from '@svc/testing'
import { expect } from 'chai'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'
import { SPACE, StoredEntries } from '../src/stored.ts'

const PLUGIN = { name: '@svc/plugin-cache', use: new URL('..', import.meta.url) }
const ctx = systemContext(new AbortController().signal, 'test')

const openStore = (name: string, config = {}) =>
  testHost([{ name: `@svc/plugin-${name}`, use: pluginFolder(name) }], { config, strict: false })
const given = (store: Store) => ({ name: 'test:store', use: definePlugin({ provides: Store, setup: () => store }) })
const AREAS = Object.entries(KIT_CACHES).map(([name, area]) => item(CacheAreas, name, area))
const IN_STORE = { config: { cache: { in: 'store' } } }

async function openTwo(stores: readonly Store[], close: () => Promise<unknown>): Promise<CacheSubject> {
  const open = (store: Store) => testHost([PLUGIN], { give: [given(store), ...AREAS], ...IN_STORE })
  const [one, two] = [await open(stores[0]!), await open(stores[1]!)]
  return {
    cache: one.service(Cache),
    other: two.service(Cache),
    async close() {
      await Promise.all([one.close(), two.close()])
      await close()
    },
  }
}

describe('a cache', () => {
  describe('in the memory of a worker', () => {
    const open = async () => {
      const [one, two] = [await testHost([PLUGIN], { give: AREAS }), await testHost([PLUGIN], { give: AREAS })]
      const close = () => Promise.all([one.close(), two.close()])
      return { cache: one.service(Cache), other: two.service(Cache), close }
    }
    for (const testCase of cacheKit(open)) it(testCase.title, testCase.run)
  })

  describe('in a store in memory', () => {
    const open = async () => {
      const host = await openStore('store-memory')
      return openTwo([host.service(Store), host.service(Store)], () => host.close())
    }
    for (const testCase of cacheKit(open)) it(testCase.title, testCase.run)
  })

  describe('in a store in a file', () => {
    const open = async () => {
      const folder = await mkdtemp(join(tmpdir(), 'svc-cache-'))
      const config = { store: { path: join(folder, 'svc.db') } }
      const hosts = [await openStore('store-sqlite', config), await openStore('store-sqlite', config)]
      return openTwo(
        hosts.map(host => host.service(Store)),
        async () => {
          await Promise.all(hosts.map(host => host.close()))
          await rm(folder, { recursive: true, force: true })
        }
      )
    }
    for (const testCase of cacheKit(open)) it(testCase.title, testCase.run)
  })

  it('finds and keeps nothing while its store fails, but does not hide that an entry may still be there', async () => {
    await using memory = await openStore('store-memory')
    const store = memory.service(Store)
    let isDown = false
    const down = () => svcError('STORE_UNAVAILABLE', 'the store is down', { details: { retryable: true }, hint: 'Wait' })
    const guarded =
      <T extends unknown[], R>(work: (...args: T) => Promise<R>) =>
      async (...args: T): Promise<R> => {
        if (isDown) throw down()
        return work(...args)
      }
    const failing: Store = {
      ...store,
      get: guarded((...args) => store.get(...args)),
      range: guarded((...args) => store.range(...args)),
      batch: guarded((...args) => store.batch(...args)),
      open: (...args) => store.open(...args),
      probe: (...args) => store.probe(...args),
    }
    await using host = await testHost([PLUGIN], { give: [given(failing), ...AREAS], ...IN_STORE, strict: false })
    const cache = host.service(Cache)
    await cache.put('kit', 'a', 1, ctx)
    isDown = true
    expect(await cache.get('kit', 'a', ctx)).to.equal(undefined)
    expect(await cache.put('kit', 'b', 1, ctx)).to.equal(false)
    expect(await cache.delete('kit', 'a', ctx).catch(codeOf)).to.equal('STORE_UNAVAILABLE')
    expect(await cache.clear('kit', ctx).catch(codeOf)).to.equal('STORE_UNAVAILABLE')
    isDown = false
    expect(await cache.get('kit', 'a', ctx)).to.equal(1)
  })

  it('deletes expired entries from the store, also those of plugins that are gone', async () => {
    await using memory = await openStore('store-memory')
    const store = memory.service(Store)
    let opened: StoredEntries | undefined
    const use = definePlugin({
      setup({ log, signal }) {
        opened = new StoredEntries({ store, log, lasting: systemContext(signal) })
      },
    })
    await store.open(SPACE, ctx)
    await using _host = await testHost([], { give: [{ name: 'test:entries', use }] })
    const entries = opened!
    const area = { name: 'gone', id: 'gone', item: KIT_CACHES.kit!, ttlMs: 30, maxEntries: 9_999, maxBytes: 1e9 }
    for (let at = 0; at < 30; at++) await entries.put(area, `k${at}`, '1', ctx)
    await entries.put({ ...area, id: 'alive', ttlMs: 60_000 }, 'k', '1', ctx)
    entries.begin(20)
    const left = async (collection: string) => (await store.range(collection, { limit: 100 }, ctx)).records.length
    for (const collection of ['cache_entries', 'cache_values']) while ((await left(collection)) > 1) await setTimeout(5)
    expect(await Promise.all(['cache_entries', 'cache_values'].map(left))).to.deep.equal([1, 1])
  })

  it('keeps no secret in the store in clear', async () => {
    await using memory = await openStore('store-memory')
    const store = memory.service(Store)
    await using host = await testHost([PLUGIN], { give: [given(store), ...AREAS], ...IN_STORE })
    const cache = host.service(Cache)
    const secret = 'canary-of-the-cache-7f3a91c0'
    const forget = registerSecret(secret)
    try {
      await cache.put('kit', 'a', 1, ctx)
      expect(await cache.put('kit', 'a', { token: secret }, ctx)).to.equal(false)
      expect(await cache.get('kit', 'a', ctx)).to.equal(undefined)
      expect(JSON.stringify(await store.range('cache_values', { limit: 9 }, ctx))).to.not.include(secret)
    } finally {
      forget()
    }
  })

  it('needs a store where the configuration says so', async () => {
    const failed = await testHost([PLUGIN], IN_STORE).then(
      host => host.close(),
      (error: Error) => error.message
    )
    expect(failed).to.match(/cache\.in is "store"/)
  })
})

describe('the cache of a plugin', () => {
  it('is not used by another plugin, and does not pass to one that takes its name later', async () => {
    await using memory = await openStore('store-memory')
    const user = (plugin: string, area?: string) => {
      let cache: Cache | undefined
      const use = definePlugin({
        requires: { cache: Cache },
        setup(scope, services) {
          ;({ cache } = services)
          if (area) scope.add(CacheAreas, area, { description: 'A', ttlMs: 60_000, maxEntries: 9, maxBytes: 9_000 })
        },
      })
      return { entry: { name: plugin, use }, of: () => cache! }
    }
    const [one, two] = [user('svc-one', 'one'), user('svc-two')]
    {
      await using _host = await testHost([PLUGIN, one.entry, two.entry], { give: [given(memory.service(Store))], ...IN_STORE })
      await one.of().put('one', 'a', 'mine', ctx)
      for (const name of ['one', 'gone', '__proto__']) {
        expect(await two.of().get(name, 'a', ctx).catch(codeOf), name).to.equal('NOT_PERMITTED')
        expect(await two.of().put(name, 'a', 1, ctx).catch(codeOf)).to.equal('NOT_PERMITTED')
        expect(await two.of().delete(name, 'a', ctx).catch(codeOf)).to.equal('NOT_PERMITTED')
        expect(await two.of().clear(name, ctx).catch(codeOf)).to.equal('NOT_PERMITTED')
        expect(await two.of().stats(name, ctx).catch(codeOf)).to.equal('NOT_PERMITTED')
      }
    }
    const thief = user('svc-thief', 'one')
    await using _host = await testHost([PLUGIN, thief.entry], { give: [given(memory.service(Store))], ...IN_STORE })
    expect(await thief.of().get('one', 'a', ctx)).to.equal(undefined)
  })
})
