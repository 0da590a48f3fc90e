import assert from 'node:assert/strict'
import type { Space } from '@svc/core/contracts'
import { fails, KIT, keysOf, plain, type StoreCase } from './rig.ts'

const tasks = (version: number, indexes: Record<string, string[]> = {}): Space => ({
  name: 'tasks',
  version,
  collections: { tasks: { indexes } },
  logs: ['task_log'],
})

/** Cases for spaces, versions and durability. */
export const spaceCases: readonly StoreCase[] = [
  [
    'returns 0 for an unknown space, then its version',
    async ({ store, ctx }) => {
      assert.deepEqual(plain(await store.open(tasks(3), ctx)), { version: 0 })
      assert.deepEqual(plain(await store.open(tasks(3), ctx)), { version: 3 })
      assert.deepEqual(plain(await store.open(KIT, ctx)), { version: 1 })
    },
  ],
  [
    'returns the older version until the data is migrated',
    async ({ store, ctx, batch }) => {
      await store.open(tasks(1), ctx)
      await batch({ op: 'put', collection: 'tasks', key: 'a', value: { title: 'old' } })
      assert.deepEqual(plain(await store.open(tasks(3), ctx)), { version: 1 })
      assert.deepEqual(plain(await store.open(tasks(3), ctx)), { version: 1 })
      const results = await batch(
        { op: 'put', collection: 'tasks', key: 'a', value: { name: 'new' }, ifVersion: 1 },
        { op: 'migrated', space: 'tasks', version: 2 }
      )
      assert.deepEqual(results, [2, 0])
      assert.deepEqual(plain(await store.open(tasks(3), ctx)), { version: 2 })
      await batch({ op: 'migrated', space: 'tasks', version: 3 })
      assert.deepEqual(plain(await store.open(tasks(3), ctx)), { version: 3 })
    },
  ],
  [
    'stores no new version with a failed batch',
    async ({ store, ctx, batch }) => {
      await store.open(tasks(1), ctx)
      await store.open(tasks(2), ctx)
      await assert.rejects(
        batch({ op: 'migrated', space: 'tasks', version: 2 }, { op: 'delete', collection: 'tasks', key: 'a', ifVersion: 9 })
      )
      assert.deepEqual(plain(await store.open(tasks(2), ctx)), { version: 1 })
    },
  ],
  [
    'rejects a space whose data is newer than the program',
    async ({ store, ctx, second }) => {
      await store.open(tasks(2), ctx)
      const other = await second()
      await fails(other.open(tasks(1), ctx), 'STORE_NEWER', { stored: 2, known: 1 })
      assert.deepEqual(plain(await other.open(tasks(2), ctx)), { version: 2 })
    },
  ],
  [
    'builds a new index over existing records, and maintains it',
    async ({ store, ctx, batch }) => {
      await store.open(tasks(1), ctx)
      await batch(...['c', 'a', 'b'].map((key, i) => ({ op: 'put', collection: 'tasks', key, value: { rank: i } }) as const))
      await fails(store.range('tasks', { index: 'by_rank', limit: 9 }, ctx), 'STORE_UNKNOWN')
      await store.open(tasks(1, { by_rank: ['rank'] }), ctx)
      const ask = async () => keysOf((await store.range('tasks', { index: 'by_rank', limit: 9 }, ctx)).records)
      assert.deepEqual(await ask(), ['c', 'a', 'b'])
      await batch(
        { op: 'put', collection: 'tasks', key: 'c', value: { rank: 9 } },
        { op: 'delete', collection: 'tasks', key: 'a' }
      )
      assert.deepEqual(await ask(), ['b', 'c'])
    },
  ],
  [
    'uses the current paths of an index, even if they changed under the same name',
    async ({ store, ctx, batch }) => {
      await store.open(tasks(1, { by_it: ['a'] }), ctx)
      await batch(
        { op: 'put', collection: 'tasks', key: 'x', value: { a: 1, b: 2 } },
        { op: 'put', collection: 'tasks', key: 'y', value: { a: 2, b: 1 } }
      )
      await store.open(tasks(1, { by_it: ['b'] }), ctx)
      assert.deepEqual(keysOf((await store.range('tasks', { index: 'by_it', limit: 9 }, ctx)).records), ['y', 'x'])
    },
  ],
  [
    'maintains indexes that only the other handle declares',
    async ({ store, ctx, second, batch }) => {
      await store.open(tasks(1), ctx)
      const other = await second()
      await other.open(tasks(1, { by_rank: ['rank'] }), ctx)
      await batch(
        { op: 'put', collection: 'tasks', key: 'a', value: { rank: 2 } },
        { op: 'put', collection: 'tasks', key: 'b', value: { rank: 1 } }
      )
      await batch({ op: 'put', collection: 'tasks', key: 'a', value: { rank: 0 } })
      await other.open(tasks(1, { by_rank: ['rank'] }), ctx)
      assert.deepEqual(keysOf((await other.range('tasks', { index: 'by_rank', limit: 9 }, ctx)).records), ['a', 'b'])
    },
  ],
  [
    'rejects a space that uses a name of another one, and malformed spaces',
    async ({ store, ctx }) => {
      await store.open(tasks(1), ctx)
      await fails(store.open({ name: 'thief', version: 1, collections: { tasks: {} } }, ctx), 'STORE_INVALID')
      await fails(store.open({ name: 'thief', version: 1, logs: ['lines'] }, ctx), 'STORE_INVALID')
      for (const name of ['', 'A', '1a', 'a-b', '__proto__', 'x'.repeat(80)]) {
        await fails(store.open({ name, version: 1 }, ctx), 'STORE_INVALID')
        await fails(store.open({ name: 'odd', version: 1, collections: { [name]: {} } }, ctx), 'STORE_INVALID').catch(error => {
          // In an object literal, `__proto__` is not a key.
          if (name !== '__proto__') throw error
        })
      }
      for (const version of [0, -1, 1.5, Number.NaN]) await fails(store.open({ name: 'odd', version }, ctx), 'STORE_INVALID')
    },
  ],
  [
    'keeps everything when it is reopened',
    async ({ store, ctx, batch, reopen }) => {
      if (!reopen) return { missing: 'reopen' }
      await store.open(tasks(2, { by_rank: ['rank'] }), ctx)
      await batch(
        { op: 'put', collection: 'tasks', key: 'a', value: { rank: 2 } },
        { op: 'put', collection: 'tasks', key: 'b', value: { rank: 1, text: '😀' } },
        { op: 'put', collection: 'tasks', key: 'b', value: { rank: 3, text: '😀' } },
        { op: 'append', log: 'task_log', id: 'a', values: [1, 'two', null] },
        { op: 'put', collection: 'plain', key: 'gone', value: 1 },
        { op: 'delete', collection: 'plain', key: 'gone' }
      )
      const again = await reopen()
      await fails(again.open(tasks(1), ctx), 'STORE_NEWER')
      assert.deepEqual(plain(await again.open(tasks(2, { by_rank: ['rank'] }), ctx)), { version: 2 })
      assert.deepEqual(keysOf((await again.range('tasks', { index: 'by_rank', limit: 9 }, ctx)).records), ['a', 'b'])
      assert.deepEqual(plain(await again.get('tasks', 'b', ctx)), { key: 'b', version: 2, value: { rank: 3, text: '😀' } })
      assert.deepEqual(
        (await again.read('task_log', 'a', { limit: 9 }, ctx)).map(entry => entry.value),
        [1, 'two', null]
      )
      assert.equal(await again.get('plain', 'gone', ctx), undefined)
      assert.deepEqual(
        (await again.batch([{ op: 'append', log: 'task_log', id: 'a', values: [4], ifLength: 3 }], {}, ctx)).results,
        [4]
      )
    },
  ],
  [
    'rejects calls after it is closed, and answers earlier calls',
    async ({ store, ctx, reopen }) => {
      if (!reopen) return { missing: 'reopen' }
      const asked = Array.from({ length: 50 }, (_, i) =>
        store.batch([{ op: 'put', collection: 'plain', key: `k${i}`, value: i }], {}, ctx)
      )
      const waiting = store
        .acquire('l', { holder: 'a', ttlMs: 20_000, waitMs: 0 }, ctx)
        .then(() => store.acquire('l', { holder: 'b', ttlMs: 20_000, waitMs: 20_000 }, ctx))
      const refused = fails(waiting, 'STORE_UNAVAILABLE')
      const [first] = asked
      await first
      const again = await reopen()
      await Promise.all(asked)
      await refused
      await fails(store.get('plain', 'k0', ctx), 'STORE_UNAVAILABLE')
      await fails(store.batch([], {}, ctx), 'STORE_UNAVAILABLE')
      for (let i = 0; i < 50; i++) assert.equal((await again.get('plain', `k${i}`, ctx))?.value, i)
    },
  ],
]
