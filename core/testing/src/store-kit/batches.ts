import assert from 'node:assert/strict'
import { setTimeout } from 'node:timers/promises'
import type { StoreOp } from '@svc/core/contracts'
import { abortable, fails, plain, type StoreCase } from './rig.ts'

const put = (key: string, value: number, ifVersion?: number): StoreOp => ({
  op: 'put',
  collection: 'plain',
  key,
  value,
  ...(ifVersion === undefined ? {} : { ifVersion }),
})

/** Records and batches. */
export const batchCases: readonly StoreCase[] = [
  [
    'returns a stored value, with a version that grows by one',
    async ({ store, ctx, put }) => {
      assert.equal(await store.get('plain', 'a', ctx), undefined)
      assert.equal(await put('plain', 'a', { n: 1 }), 1)
      assert.deepEqual(plain(await store.get('plain', 'a', ctx)), { key: 'a', version: 1, value: { n: 1 } })
      assert.equal(await put('plain', 'a', { n: 2 }), 2)
      assert.deepEqual(plain(await store.get('plain', 'a', ctx)), { key: 'a', version: 2, value: { n: 2 } })
    },
  ],
  [
    'starts again with version 1 after a delete',
    async ({ store, ctx, batch, put }) => {
      await put('plain', 'a', 1)
      await put('plain', 'a', 2)
      assert.deepEqual(await batch({ op: 'delete', collection: 'plain', key: 'a' }), [0])
      assert.equal(await store.get('plain', 'a', ctx), undefined)
      assert.equal(await put('plain', 'a', 3), 1)
    },
  ],
  [
    'accepts the deletion of a missing record',
    async ({ batch }) => assert.deepEqual(await batch({ op: 'delete', collection: 'plain', key: 'none' }), [0]),
  ],
  [
    'distinguishes equal keys of different collections',
    async ({ store, ctx, put }) => {
      await put('plain', 'a', 'plain')
      await put('notes', 'a', 'notes')
      assert.equal((await store.get('plain', 'a', ctx))?.value, 'plain')
      assert.equal((await store.get('notes', 'a', ctx))?.value, 'notes')
    },
  ],
  [
    'replaces only the version in ifVersion, and reports the version that it found',
    async ({ store, ctx, batch }) => {
      await fails(batch(put('a', 1, 3)), 'STORE_CONFLICT', { op: 0, expected: 3, actual: 0 })
      assert.deepEqual(await batch(put('a', 1, 0)), [1])
      await fails(batch(put('a', 2, 0)), 'STORE_CONFLICT', { op: 0, expected: 0, actual: 1 })
      assert.deepEqual(await batch(put('a', 2, 1)), [2])
      await fails(batch(put('a', 3, 1)), 'STORE_CONFLICT', { op: 0, expected: 1, actual: 2 })
      assert.equal((await store.get('plain', 'a', ctx))?.value, 2)
    },
  ],
  [
    'deletes with ifVersion only that version',
    async ({ store, ctx, batch, put }) => {
      await put('plain', 'a', 1)
      await fails(batch({ op: 'delete', collection: 'plain', key: 'a', ifVersion: 2 }), 'STORE_CONFLICT', {
        op: 0,
        expected: 2,
        actual: 1,
      })
      await fails(batch({ op: 'delete', collection: 'plain', key: 'a', ifVersion: 0 }), 'STORE_CONFLICT', {
        op: 0,
        expected: 0,
        actual: 1,
      })
      await batch(
        { op: 'delete', collection: 'plain', key: 'b', ifVersion: 0 },
        { op: 'delete', collection: 'plain', key: 'a', ifVersion: 1 }
      )
      assert.equal(await store.get('plain', 'a', ctx), undefined)
    },
  ],
  [
    'lets exactly one of 100 concurrent writers win a version, on two handles',
    async ({ store, ctx, second, put: write }) => {
      await write('plain', 'a', 0)
      const handles = [store, await second()]
      const tries = Array.from({ length: 100 }, (_, i) => handles[i % 2]!.batch([put('a', i + 1, 1)], {}, ctx).then(() => i + 1))
      const won = (await Promise.allSettled(tries)).flatMap(item => (item.status === 'fulfilled' ? [item.value] : []))
      assert.equal(won.length, 1)
      assert.deepEqual(plain(await store.get('plain', 'a', ctx)), { key: 'a', version: 2, value: won[0] })
    },
  ],
  [
    'loses no increment of 20 workers that read, add and write if unchanged',
    async ({ store, ctx, second, put: write }) => {
      await write('plain', 'a', 0)
      const handles = [store, await second()]
      const increment = async (worker: number): Promise<void> => {
        const handle = handles[worker % 2]!
        const there = (await handle.get('plain', 'a', ctx))!
        try {
          await handle.batch([put('a', Number(there.value) + 1, there.version)], {}, ctx)
        } catch {
          return increment(worker)
        }
      }
      await Promise.all(Array.from({ length: 20 }, (_, worker) => increment(worker)))
      assert.deepEqual(plain(await store.get('plain', 'a', ctx)), { key: 'a', version: 21, value: 20 })
    },
  ],
  [
    'applies no operation of a batch that fails',
    async ({ store, ctx, batch, put: write }) => {
      await write('notes', 'old', { owner: 'x' })
      await batch({ op: 'append', log: 'lines', id: 's', values: [1] })
      const doomed: StoreOp[] = [
        put('new', 1),
        { op: 'put', collection: 'notes', key: 'old', value: { owner: 'y' } },
        { op: 'append', log: 'lines', id: 's', values: [2, 3] },
        { op: 'append', log: 'lines', id: 'fresh', values: [1] },
        { op: 'drop', log: 'lines', id: 's' },
        { op: 'delete', collection: 'notes', key: 'old' },
        put('new', 2, 7),
      ]
      await fails(batch(...doomed), 'STORE_CONFLICT', { op: 6, expected: 7, actual: 1 })
      assert.equal(await store.get('plain', 'new', ctx), undefined)
      assert.deepEqual(plain(await store.get('notes', 'old', ctx)), { key: 'old', version: 1, value: { owner: 'x' } })
      assert.deepEqual(plain(await store.read('lines', 's', { limit: 10 }, ctx)), [{ seq: 1, value: 1 }])
      assert.deepEqual(await store.read('lines', 'fresh', { limit: 10 }, ctx), [])
      const page = await store.range('notes', { index: 'by_owner', equals: ['x'], limit: 10 }, ctx)
      assert.equal(page.records.length, 1)
      assert.equal((await store.range('notes', { index: 'by_owner', equals: ['y'], limit: 10 }, ctx)).records.length, 0)
    },
  ],
  [
    'sees the earlier operations of the same batch',
    async ({ store, ctx, batch }) => {
      const results = await batch(
        put('a', 1, 0),
        put('a', 2, 1),
        { op: 'delete', collection: 'plain', key: 'a', ifVersion: 2 },
        put('a', 3, 0),
        { op: 'append', log: 'lines', id: 's', values: ['x', 'y'], ifLength: 0 },
        { op: 'append', log: 'lines', id: 's', values: ['z'], ifLength: 2 },
        { op: 'drop', log: 'lines', id: 's' },
        { op: 'append', log: 'lines', id: 's', values: ['w'], ifLength: 0 }
      )
      assert.deepEqual(results, [1, 2, 0, 1, 2, 3, 0, 1])
      assert.equal((await store.get('plain', 'a', ctx))?.value, 3)
      assert.deepEqual(plain(await store.read('lines', 's', { limit: 9 }, ctx)), [{ seq: 1, value: 'w' }])
    },
  ],
  [
    'fails one of many concurrent batches without touching the others',
    async ({ store, ctx, batch }) => {
      await batch(put('taken', 0))
      const all = Array.from({ length: 50 }, (_, i) => batch(put(`k${i}`, i), put('taken', i, i % 10 === 0 ? 99 : undefined)))
      const failed = (await Promise.allSettled(all)).flatMap((item, i) => (item.status === 'rejected' ? [i] : []))
      assert.deepEqual(failed, [0, 10, 20, 30, 40])
      for (let i = 0; i < 50; i++) assert.equal((await store.get('plain', `k${i}`, ctx))?.value, i % 10 === 0 ? undefined : i)
    },
  ],
  [
    'discards the entries of a batch that failed after its append',
    async ({ store, ctx, batch }) => {
      const append = (id: string): StoreOp => ({ op: 'append', log: 'lines', id, values: [id] })
      await batch(append('a'))
      const doomed = fails(batch(append('a'), put('k', 1, 7)), 'STORE_CONFLICT', { op: 1, expected: 7, actual: 0 })
      await Promise.all([doomed, batch(append('b'))])
      for (const id of ['a', 'b'])
        assert.deepEqual(plain(await store.read('lines', id, { limit: 9 }, ctx)), [{ seq: 1, value: id }])
    },
  ],
  [
    'applies the batches of one caller in the order of the calls',
    async ({ store, ctx, batch }) => {
      await Promise.all(Array.from({ length: 200 }, (_, i) => batch({ op: 'append', log: 'lines', id: 's', values: [i] })))
      const entries = await store.read('lines', 's', { limit: 1000 }, ctx)
      assert.deepEqual(
        entries.map(entry => entry.value),
        Array.from({ length: 200 }, (_, i) => i)
      )
    },
  ],
  ['answers an empty batch', async ({ batch }) => assert.deepEqual(await batch(), [])],
  [
    'shows a finished write to both handles',
    async ({ store, ctx, second, put }) => {
      const other = await second()
      for (let i = 1; i <= 50; i++) {
        await put('plain', 'a', i)
        assert.equal((await store.get('plain', 'a', ctx))?.value, i)
        assert.equal((await other.get('plain', 'a', ctx))?.value, i)
      }
    },
  ],
  [
    'rejects undeclared names',
    async ({ store, ctx, batch, put: write }) => {
      const nowhere: StoreOp = { op: 'put', collection: 'nowhere', key: 'a', value: 1 }
      await fails(batch(put('a', 1), nowhere), 'STORE_UNKNOWN')
      assert.equal(await store.get('plain', 'a', ctx), undefined)
      await fails(store.get('nowhere', 'a', ctx), 'STORE_UNKNOWN')
      await fails(store.get('constructor', 'a', ctx), 'STORE_UNKNOWN')
      await fails(store.range('nowhere', { limit: 1 }, ctx), 'STORE_UNKNOWN')
      await fails(store.range('notes', { index: 'by_nothing', limit: 1 }, ctx), 'STORE_UNKNOWN')
      await fails(store.range('notes', { index: 'constructor', limit: 1 }, ctx), 'STORE_UNKNOWN')
      await fails(store.read('nowhere', 'a', { limit: 1 }, ctx), 'STORE_UNKNOWN')
      await fails(batch({ op: 'append', log: 'plain', id: 'a', values: [1] }), 'STORE_UNKNOWN')
      await fails(write('lines', 'a', 1), 'STORE_UNKNOWN')
    },
  ],
  [
    'rejects keys that stores cannot distinguish',
    async ({ store, ctx, batch }) => {
      for (const key of ['', 'nul\u0000', 'half \ud83d', 'x'.repeat(1025), '😀'.repeat(257), 'é'.repeat(513)]) {
        await fails(batch(put(key, 1)), 'STORE_INVALID')
        await fails(batch({ op: 'append', log: 'lines', id: key, values: [1] }), 'STORE_INVALID')
      }
      for (const key of ['x'.repeat(1024), '😀'.repeat(256), 'é'.repeat(512)]) {
        await batch(put(key, 1), { op: 'append', log: 'lines', id: key, values: [1] })
        assert.equal((await store.get('plain', key, ctx))?.value, 1)
        assert.deepEqual(plain(await store.read('lines', key, { limit: 2 }, ctx)), [{ seq: 1, value: 1 }])
        await store.release(await store.acquire(key, { holder: key, ttlMs: 20_000, waitMs: 0 }, ctx), ctx)
      }
      const request = { holder: 'a', ttlMs: 20_000, waitMs: 0 }
      await fails(store.acquire('😀'.repeat(257), request, ctx), 'STORE_INVALID')
    },
  ],
  [
    'does not start a call whose signal is already aborted',
    async ({ store, ctx, put }) => {
      await put('plain', 'a', 1)
      const gone = abortable(ctx)
      gone.abort()
      await assert.rejects(store.batch([{ op: 'put', collection: 'plain', key: 'a', value: 2 }], {}, gone.ctx))
      await assert.rejects(store.get('plain', 'a', gone.ctx))
      assert.equal((await store.get('plain', 'a', ctx))?.value, 1)
    },
  ],
  [
    'reports batches whose answers were lost correctly: applied, not applied, or STORE_UNSURE',
    async ({ store, ctx, cut }) => {
      if (!cut) return { missing: 'cut' }
      const outcomes = new Map<string, string>()
      for (let round = 0; round < 10; round++) {
        const batches = Array.from({ length: 40 }, async (_, at) => {
          const id = `s${round}-${at}`
          const ops: StoreOp[] = [put(id, at), { op: 'append', log: 'lines', id, values: [at] }]
          await setTimeout((at % 8) / 2)
          outcomes.set(
            id,
            await store.batch(ops, {}, ctx).then(
              () => 'done',
              (error: { code?: string }) => String(error.code)
            )
          )
        })
        await setTimeout(round % 4)
        await cut()
        await Promise.all(batches)
      }
      for (const [id, outcome] of outcomes) {
        assert.ok(['done', 'STORE_UNSURE', 'STORE_UNAVAILABLE'].includes(outcome), `the outcome is ${outcome}`)
        const [record, entries] = [await store.get('plain', id, ctx), await store.read('lines', id, { limit: 9 }, ctx)]
        const times = entries.length
        assert.equal(record === undefined ? 0 : 1, times, `a part of the batch is there, or it is there ${times} times`)
        if (outcome === 'done') assert.equal(times, 1, 'an acknowledged batch is lost')
        if (outcome === 'STORE_UNAVAILABLE') assert.equal(times, 0, 'a batch that was reported as not done is there')
      }
    },
  ],
  [
    'reads, and rejects writes with read_only, when it can only read',
    async ({ ctx, put: write, readOnly }) => {
      if (!readOnly) return { missing: 'readOnly' }
      await write('plain', 'a', 1)
      const handle = await readOnly()
      assert.equal((await handle.get('plain', 'a', ctx))?.value, 1)
      assert.equal((await handle.range('plain', { limit: 9 }, ctx)).records.length, 1)
      const refused = await handle.batch([put('a', 2)], {}, ctx).catch((error: unknown) => error)
      assert.ok(refused instanceof Error, 'a read-only store accepted a batch')
      const { code, details } = refused as { code?: string; details?: { reason?: string; retryable?: boolean } }
      assert.deepEqual([code, details?.reason, details?.retryable], ['STORE_UNAVAILABLE', 'read_only', true])
      await fails(handle.acquire('l', { holder: 'a', ttlMs: 20_000, waitMs: 0 }, ctx), 'STORE_UNAVAILABLE')
      const probed = await handle.probe(ctx).catch((error: { code?: string }) => error.code)
      assert.equal(
        typeof probed === 'object' ? probed.role : probed,
        typeof probed === 'object' ? 'replica' : 'STORE_UNAVAILABLE'
      )
      assert.equal((await handle.get('plain', 'a', ctx))?.value, 1)
    },
  ],
  [
    'describes itself when probed',
    async ({ store, ctx, second }) => {
      const { kind, durable, scope, role, clockOffsetMs } = await store.probe(ctx)
      assert.match(kind, /^[a-z]/)
      assert.equal(typeof durable, 'boolean')
      assert.ok(['process', 'machine', 'cluster'].includes(scope), `the scope is ${scope}`)
      assert.equal(role, 'primary', 'a store under test accepts writes')
      assert.ok(Math.abs(clockOffsetMs) < 1000, `the clock is off by ${clockOffsetMs} ms`)
      const other = await (await second()).probe(ctx)
      assert.deepEqual([other.kind, other.durable, other.scope], [kind, durable, scope])
    },
  ],
]
