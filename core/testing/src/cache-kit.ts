import assert from 'node:assert/strict'
import { codeOf } from '@svc/core'
import type { Cache, CacheArea, Json } from '@svc/core/contracts'
import { abortable, becomes, caseMaker, type KitCase } from './kit-case.ts'

const area = (limits: Partial<CacheArea>): CacheArea => ({
  description: 'A cache of the kit',
  ttlMs: 60_000,
  maxEntries: 1_000,
  maxBytes: 10_000_000,
  ...limits,
})

/** The caches that the kit uses. The subject adds them to the slot `CacheAreas` under these names. */
export const KIT_CACHES: Readonly<Record<string, CacheArea>> = {
  kit: area({}),
  kit_other: area({}),
  kit_brief: area({ ttlMs: 150 }),
  kit_few: area({ maxEntries: 16 }),
  kit_small: area({ maxBytes: 20_000 }),
  kit_broken: area({ maxEntries: 0 }),
}

/** A cache to test, without entries. */
export interface CacheSubject {
  readonly cache: Cache
  /** The same cache in another process. */
  readonly other: Cache
  close?(): unknown
}

const { ctx } = abortable('cache kit')
/** What an implementation can have more than a limit, for each of the two processes. */
const MORE = 1 / 16

/**
 * Cases for every cache: `for (const one of cacheKit(open)) it(one.title, one.run)`. `open` returns a cache with the areas
 * `KIT_CACHES` each time, as seen by two processes.
 */
export function cacheKit(open: () => CacheSubject | Promise<CacheSubject>): KitCase[] {
  const make = caseMaker(open)
  return [...keeping(make), ...sharing(make), ...limiting(make), ...refusing(make)]
}

type Make = ReturnType<typeof caseMaker<CacheSubject>>

async function refused(work: Promise<unknown>, code: string, what: string): Promise<void> {
  const error: unknown = await work.then(
    () => assert.fail(`expected ${code} for ${what}`),
    (thrown: unknown) => thrown
  )
  assert.equal(codeOf(error), code, `${what}: ${String(error)}`)
  assert.ok((error as Error).message.length < 1_000, 'the error repeats its input')
}

const VALUES: readonly Json[] = [
  null,
  false,
  0,
  '',
  'a\u0000b',
  'half \ud83d',
  [1, [2, [3]]],
  { a: { b: null }, constructor: 1, 'é😀': '' },
  JSON.parse('{"__proto__": {"x": 1}}') as Json,
]
const KEYS = ['a', 'A', 'a ', '__proto__', 'constructor', '../a', 'é', 'e\u0301', 'x'.repeat(1024), '😀'.repeat(256)]

const keeping = (make: Make): KitCase[] => [
  make('returns what was put, until it is deleted', async ({ cache }) => {
    for (const [at, value] of VALUES.entries()) {
      assert.equal(await cache.get('kit', `v${at}`, ctx), undefined)
      assert.equal(await cache.put('kit', `v${at}`, value, ctx), true)
      assert.equal(JSON.stringify(await cache.get('kit', `v${at}`, ctx)), JSON.stringify(value))
    }
    await cache.put('kit', 'v0', 'new', ctx)
    assert.equal(await cache.get('kit', 'v0', ctx), 'new')
    await cache.delete('kit', 'v0', ctx)
    await cache.delete('kit', 'never', ctx)
    assert.equal(await cache.get('kit', 'v0', ctx), undefined)
    assert.equal((await cache.stats('kit', ctx)).entries, VALUES.length - 1)
  }),
  make('keeps keys and caches apart', async ({ cache }) => {
    for (const name of ['kit', 'kit_other']) for (const key of KEYS) await cache.put(name, key, `${name} ${key}`, ctx)
    for (const name of ['kit', 'kit_other'])
      for (const key of KEYS) assert.equal(await cache.get(name, key, ctx), `${name} ${key}`)
    await cache.clear('kit', ctx)
    for (const key of KEYS) assert.equal(await cache.get('kit', key, ctx), undefined)
    assert.deepEqual([(await cache.stats('kit', ctx)).entries, (await cache.stats('kit_other', ctx)).entries], [0, KEYS.length])
  }),
  make('protects values from changes of the caller', async ({ cache }) => {
    const value = { list: [1] }
    await cache.put('kit', 'a', value, ctx)
    value.list.push(2)
    const found = (await cache.get('kit', 'a', ctx)) as { list: number[] }
    assert.deepEqual(found.list, [1])
    if (!Object.isFrozen(found.list)) found.list.push(3)
    assert.deepEqual(((await cache.get('kit', 'a', ctx)) as { list: number[] }).list, [1])
  }),
  make('forgets an entry when its time is over, although it is read', async ({ cache }) => {
    await cache.put('kit_brief', 'a', 1, ctx)
    await becomes('the end of the entry', async () => (await cache.get('kit_brief', 'a', ctx)) === undefined)
    assert.equal((await cache.stats('kit_brief', ctx)).entries, 0)
    const put = performance.now()
    await cache.put('kit_brief', 'a', 2, ctx)
    const found = await cache.get('kit_brief', 'a', ctx)
    assert.ok(found === 2 || performance.now() - put >= 150, 'an entry that is written again lives its full time')
  }),
]

const sharing = (make: Make): KitCase[] => [
  make('shows other processes its entries where it is shared', async ({ cache, other }) => {
    const { scope } = await cache.stats('kit', ctx)
    assert.equal((await other.stats('kit', ctx)).scope, scope)
    await cache.put('kit', 'a', 1, ctx)
    const seen = await other.get('kit', 'a', ctx)
    if (scope === 'process' && seen === undefined) return // in the memory of another process
    assert.equal(seen, 1)
    await other.put('kit', 'a', 2, ctx)
    assert.equal(await cache.get('kit', 'a', ctx), 2)
    await other.delete('kit', 'a', ctx)
    assert.equal(await cache.get('kit', 'a', ctx), undefined)
    await cache.put('kit', 'b', 1, ctx)
    await other.clear('kit', ctx)
    assert.equal(await cache.get('kit', 'b', ctx), undefined)
  }),
  make('takes concurrent writes of both processes', async ({ cache, other }) => {
    const puts = Array.from({ length: 100 }, (_, at) => (at % 2 ? cache : other).put('kit', `k${at % 10}`, at, ctx))
    assert.deepEqual([...new Set(await Promise.all(puts))], [true])
    for (let at = 0; at < 10; at++) {
      const value = await (at % 2 ? cache : other).get('kit', `k${at}`, ctx)
      assert.equal(Number(value) % 10, at)
    }
  }),
]

const limiting = (make: Make): KitCase[] => [
  make('keeps no more entries than its limit, and the newest of them', async ({ cache, other }) => {
    for (let at = 0; at < 60; at++) await (at % 3 ? cache : other).put('kit_few', `k${at}`, at, ctx)
    for (const one of [cache, other]) {
      const { entries } = await one.stats('kit_few', ctx)
      assert.ok(entries >= 8 && entries <= 16 * (1 + 2 * MORE), `${entries} entries`)
    }
    assert.equal(await cache.get('kit_few', 'k59', ctx), 59)
    assert.equal(await cache.get('kit_few', 'k1', ctx), undefined)
  }),
  make('keeps no more bytes than its limit, and no value that alone is more', async ({ cache }) => {
    for (let at = 0; at < 60; at++) await cache.put('kit_small', `k${at}`, 'x'.repeat(1_500), ctx)
    const { bytes, entries } = await cache.stats('kit_small', ctx)
    assert.ok(bytes >= 10_000 && bytes <= 20_000 * (1 + 2 * MORE), `${bytes} bytes`)
    assert.ok(entries * 1_500 <= bytes)
    assert.equal(await cache.put('kit_small', 'k59', 'é'.repeat(10_000), ctx), false)
    assert.equal(await cache.get('kit_small', 'k59', ctx), undefined, 'the earlier value is gone')
    assert.equal(await cache.put('kit_small', 'new', 1, ctx), true)
  }),
]

const BAD_KEYS: readonly unknown[] = ['', 'nul\u0000', 'half \ud83d', 'x'.repeat(1025), '😀'.repeat(257), 7, null, undefined, {}]
const BAD_NAMES: readonly unknown[] = ['none', '', '__proto__', 'constructor', 'Kit', 'kit/..', 'x'.repeat(10_000), 7, null]

const refusing = (make: Make): KitCase[] => [
  make('refuses odd keys, values that are not JSON, and unknown or broken caches', async ({ cache }) => {
    for (const key of BAD_KEYS) {
      const what = `the key ${String(key).slice(0, 20)}`
      await refused(cache.get('kit', key as string, ctx), 'CACHE_INVALID', what)
      await refused(cache.put('kit', key as string, 1, ctx), 'CACHE_INVALID', what)
      await refused(cache.delete('kit', key as string, ctx), 'CACHE_INVALID', what)
    }
    await refused(cache.put('kit', 'a', undefined as unknown as Json, ctx), 'CACHE_INVALID', 'undefined')
    for (const name of BAD_NAMES) {
      const what = `the name ${String(name).slice(0, 20)}`
      await refused(cache.get(name as string, 'a', ctx), 'CACHE_UNKNOWN', what)
      await refused(cache.clear(name as string, ctx), 'CACHE_UNKNOWN', what)
    }
    await refused(cache.put('kit_broken', 'a', 1, ctx), 'CACHE_INVALID', 'a broken cache')
  }),
]
