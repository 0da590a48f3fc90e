import assert from 'node:assert/strict'
import type { LogQuery, StoreOp } from '@svc/core/contracts'
import { fails, plain, type Rig, type StoreCase } from './rig.ts'

const append = (id: string, values: number[], ifLength?: number): StoreOp => ({
  op: 'append',
  log: 'lines',
  id,
  values,
  ...(ifLength === undefined ? {} : { ifLength }),
})
const seqs = async ({ store, ctx }: Rig, query: LogQuery) => (await store.read('lines', 's', query, ctx)).map(entry => entry.seq)

/** Append logs. */
export const logCases: readonly StoreCase[] = [
  [
    'numbers the entries of a stream from 1 without gaps',
    async ({ store, ctx, batch }) => {
      assert.deepEqual(await store.read('lines', 's', { limit: 10 }, ctx), [])
      assert.deepEqual(await batch(append('s', [10, 20])), [2])
      assert.deepEqual(await batch(append('s', [30])), [3])
      const wanted = [
        { seq: 1, value: 10 },
        { seq: 2, value: 20 },
        { seq: 3, value: 30 },
      ]
      assert.deepEqual(plain(await store.read('lines', 's', { limit: 10 }, ctx)), wanted)
    },
  ],
  [
    'reads in both directions, from any position, at most the requested number',
    async rig => {
      await rig.batch(append('s', [1, 2, 3, 4, 5]))
      assert.deepEqual(await seqs(rig, { limit: 2 }), [1, 2])
      assert.deepEqual(await seqs(rig, { from: 2, limit: 2 }), [2, 3])
      assert.deepEqual(await seqs(rig, { from: 5, limit: 9 }), [5])
      assert.deepEqual(await seqs(rig, { from: 6, limit: 9 }), [])
      assert.deepEqual(await seqs(rig, { reverse: true, limit: 2 }), [5, 4])
      assert.deepEqual(await seqs(rig, { reverse: true, from: 3, limit: 2 }), [3, 2])
      assert.deepEqual(await seqs(rig, { reverse: true, from: 2, limit: 9 }), [2, 1])
      assert.deepEqual(await seqs(rig, { reverse: true, from: 99, limit: 1 }), [5])
    },
  ],
  [
    'distinguishes streams with the same id in different logs, and similar ids',
    async ({ store, ctx, batch }) => {
      await batch(append('a', [1]), append('A', [2]), append('a ', [3]), append('\u00e1', [4]), append('a\u0301', [5]))
      await batch({ op: 'append', log: 'events', id: 'a', values: [6] })
      const values = async (log: string, id: string) => (await store.read(log, id, { limit: 9 }, ctx)).map(entry => entry.value)
      assert.deepEqual(await values('lines', 'a'), [1])
      assert.deepEqual(await values('lines', 'A'), [2])
      assert.deepEqual(await values('lines', 'a '), [3])
      assert.deepEqual(await values('lines', '\u00e1'), [4])
      assert.deepEqual(await values('lines', 'a\u0301'), [5])
      assert.deepEqual(await values('events', 'a'), [6])
    },
  ],
  [
    'appends with ifLength only to a stream of that length',
    async ({ batch }) => {
      await fails(batch(append('s', [1], 1)), 'STORE_CONFLICT', { op: 0, expected: 1, actual: 0 })
      await batch(append('s', [1, 2], 0))
      await fails(batch(append('s', [3], 1)), 'STORE_CONFLICT', { op: 0, expected: 1, actual: 2 })
      assert.deepEqual(await batch(append('s', [3], 2)), [3])
    },
  ],
  [
    'lets exactly one of 50 concurrent appends with the same ifLength win',
    async ({ store, ctx, second }) => {
      const handles = [store, await second()]
      const tries = Array.from({ length: 50 }, (_, i) => handles[i % 2]!.batch([append('s', [i], 0)], {}, ctx))
      const won = (await Promise.allSettled(tries)).filter(item => item.status === 'fulfilled')
      assert.equal(won.length, 1)
      assert.equal((await store.read('lines', 's', { limit: 9 }, ctx)).length, 1)
    },
  ],
  [
    'creates no gap and no duplicate when two handles append concurrently',
    async ({ store, ctx, second }) => {
      const handles = [store, await second()]
      await Promise.all(Array.from({ length: 100 }, (_, i) => handles[i % 2]!.batch([append('s', [i])], {}, ctx)))
      const entries = await store.read('lines', 's', { limit: 1000 }, ctx)
      assert.deepEqual(
        entries.map(entry => entry.seq),
        Array.from({ length: 100 }, (_, i) => i + 1)
      )
      assert.equal(new Set(entries.map(entry => entry.value)).size, 100)
    },
  ],
  [
    'continues a stream at its position before a rejected batch',
    async ({ store, ctx, batch }) => {
      await batch(append('s', [1]))
      await fails(batch(append('s', [2]), { op: 'put', collection: 'plain', key: 'k', value: 1, ifVersion: 5 }), 'STORE_CONFLICT')
      assert.deepEqual(await batch(append('s', [3])), [2])
      assert.deepEqual(plain(await store.read('lines', 's', { limit: 9 }, ctx)), [
        { seq: 1, value: 1 },
        { seq: 2, value: 3 },
      ])
    },
  ],
  [
    'returns the length when nothing is appended',
    async ({ batch }) => {
      assert.deepEqual(await batch(append('s', [])), [0])
      await batch(append('s', [1]))
      assert.deepEqual(await batch(append('s', [])), [1])
      await fails(batch(append('s', [], 4)), 'STORE_CONFLICT', { op: 0, expected: 4, actual: 1 })
    },
  ],
  [
    'drops a whole stream and no other, and starts it again with 1',
    async ({ store, ctx, batch }) => {
      await batch(append('a', [1, 2]), append('b', [1]), append('a1', [1]))
      assert.deepEqual(await batch({ op: 'drop', log: 'lines', id: 'a' }, { op: 'drop', log: 'lines', id: 'none' }), [0, 0])
      assert.deepEqual(await store.read('lines', 'a', { limit: 9 }, ctx), [])
      assert.equal((await store.read('lines', 'b', { limit: 9 }, ctx)).length, 1)
      assert.equal((await store.read('lines', 'a1', { limit: 9 }, ctx)).length, 1)
      assert.deepEqual(await batch(append('a', [7], 0)), [1])
      assert.deepEqual(plain(await store.read('lines', 'a', { limit: 9 }, ctx)), [{ seq: 1, value: 7 }])
    },
  ],
  [
    'shows nothing of a dropped stream on both handles, even if it was read before',
    async ({ store, ctx, batch, second }) => {
      const other = await second()
      for (let round = 0; round < 10; round++) {
        await batch(append('s', [round, round]))
        for (const handle of [store, other]) {
          assert.deepEqual(
            (await handle.read('lines', 's', { limit: 9 }, ctx)).map(entry => entry.value),
            [round, round]
          )
        }
        await (round % 2 ? store : other).batch([{ op: 'drop', log: 'lines', id: 's' }], {}, ctx)
      }
      for (const handle of [store, other]) assert.deepEqual(await handle.read('lines', 's', { limit: 9 }, ctx), [])
    },
  ],
  [
    'rejects invalid queries',
    async ({ store, ctx }) => {
      for (const query of [{ limit: 0 }, { limit: -1 }, { limit: 1.5 }, { limit: 10, from: 0 }, { limit: 10_001 }]) {
        await fails(store.read('lines', 's', query, ctx), 'STORE_INVALID')
      }
    },
  ],
]
