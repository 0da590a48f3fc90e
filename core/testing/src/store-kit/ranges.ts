import assert from 'node:assert/strict'
import type { Json, RangeQuery } from '@svc/core/contracts'
import { KEYS, shuffled, VALUES } from './order.ts'
import { fails, keysOf, pages, plain, type Rig, type StoreCase } from './rig.ts'

async function fill({ batch }: Rig): Promise<void> {
  const notes = ['x', 'y', 'z'].flatMap(owner =>
    Array.from({ length: 10 }, (_, at) => ({ owner, at, meta: { kind: at % 2 ? 'odd' : 'even' } }))
  )
  await batch(
    ...shuffled(notes).map(value => ({ op: 'put', collection: 'notes', key: `${value.owner}${value.at}`, value }) as const)
  )
}
const ask = async ({ store, ctx }: Rig, query: RangeQuery) => keysOf((await store.range('notes', query, ctx)).records)
const ten = (owner: string) => Array.from({ length: 10 }, (_, at) => `${owner}${at}`)

/** Ranges over keys and indexes. */
export const rangeCases: readonly StoreCase[] = [
  [
    'sorts keys by their UTF-8 bytes',
    async ({ store, ctx, batch }) => {
      await batch(...shuffled(KEYS).map(key => ({ op: 'put', collection: 'plain', key, value: key }) as const))
      assert.deepEqual(keysOf((await store.range('plain', { limit: 1000 }, ctx)).records), KEYS)
      assert.deepEqual(keysOf((await store.range('plain', { limit: 1000, reverse: true }, ctx)).records), KEYS.toReversed())
      for (let i = 0; i < KEYS.length; i++) {
        const page = await store.range(
          'plain',
          { from: KEYS[i]!, ...(KEYS[i + 3] === undefined ? {} : { to: KEYS[i + 3]! }), limit: 1000 },
          ctx
        )
        assert.deepEqual(keysOf(page.records), KEYS.slice(i, i + 3 < KEYS.length ? i + 3 : undefined))
      }
    },
  ],
  [
    'sorts an index by null, false, true, numbers, text by bytes; absent paths with null',
    async ({ store, ctx, batch }) => {
      await batch(
        ...shuffled(VALUES.map((at, i) => [i, at] as const)).map(
          ([i, at]) => ({ op: 'put', collection: 'notes', key: `k${i}`, value: { owner: 'x', at } }) as const
        )
      )
      await batch({ op: 'put', collection: 'notes', key: 'absent', value: { owner: 'x' } })
      const order = ['absent', ...VALUES.keys().map(i => `k${i}`)]
      const query = { index: 'by_owner', equals: ['x'], limit: 1000 }
      assert.deepEqual(keysOf((await store.range('notes', query, ctx)).records), order)
      assert.deepEqual(keysOf((await store.range('notes', { ...query, reverse: true }, ctx)).records), order.toReversed())
      assert.deepEqual(keysOf(await pages(store, 'notes', { ...query, limit: 7 }, ctx)), order)
      assert.deepEqual(keysOf(await pages(store, 'notes', { ...query, limit: 7, reverse: true }, ctx)), order.toReversed())
    },
  ],
  [
    'bounds an index by every kind of value, first included and last not',
    async ({ store, ctx, batch }) => {
      await batch(
        ...VALUES.map((at, i) => ({ op: 'put', collection: 'notes', key: `k${i}`, value: { owner: 'x', at } }) as const)
      )
      for (const [i, from] of VALUES.entries()) {
        const to = VALUES[i + 2]
        const page = await store.range(
          'notes',
          { index: 'by_owner', equals: ['x'], from, ...(to === undefined ? {} : { to }), limit: 1000 },
          ctx
        )
        const end = to === undefined ? VALUES.length : i + 2
        assert.deepEqual(
          keysOf(page.records),
          Array.from({ length: end - i }, (_, n) => `k${i + n}`),
          `from ${JSON.stringify(from)}`
        )
        const same = await store.range('notes', { index: 'by_owner', equals: ['x', from], limit: 1000 }, ctx)
        assert.deepEqual(keysOf(same.records), [`k${i}`], `equals ${JSON.stringify(from)}`)
      }
    },
  ],
  [
    'treats lists and objects at an indexed path, and paths through them, as null',
    async ({ store, ctx, batch }) => {
      const values: Json[] = [
        { meta: { kind: [1] } },
        { meta: { kind: {} } },
        { meta: [] },
        { meta: 'text' },
        'text',
        null,
        [{ kind: 1 }],
        JSON.parse('{"__proto__": {"meta": {"kind": "a"}}}'),
      ]
      await batch(...values.map((value, i) => ({ op: 'put', collection: 'notes', key: `k${i}`, value }) as const))
      const page = await store.range('notes', { index: 'by_kind', equals: [null], limit: 100 }, ctx)
      assert.deepEqual(
        keysOf(page.records),
        values.map((_, i) => `k${i}`)
      )
    },
  ],
  [
    'fixes leading paths with equals, bounds the next one, in either direction',
    async rig => {
      await fill(rig)
      assert.deepEqual(await ask(rig, { index: 'by_owner', equals: ['y'], limit: 100 }), ten('y'))
      assert.deepEqual(await ask(rig, { index: 'by_owner', equals: ['y'], reverse: true, limit: 3 }), ['y9', 'y8', 'y7'])
      assert.deepEqual(await ask(rig, { index: 'by_owner', equals: ['y'], from: 3, to: 6, limit: 100 }), ['y3', 'y4', 'y5'])
      assert.deepEqual(await ask(rig, { index: 'by_owner', equals: ['y'], from: 3, to: 6, reverse: true, limit: 100 }), [
        'y5',
        'y4',
        'y3',
      ])
      assert.deepEqual(await ask(rig, { index: 'by_owner', equals: ['y', 4], limit: 100 }), ['y4'])
      assert.deepEqual(await ask(rig, { index: 'by_owner', equals: ['y', 4], from: 'y4', to: 'y5', limit: 100 }), ['y4'])
      assert.deepEqual(await ask(rig, { index: 'by_owner', equals: ['y', 4], from: 'y5', limit: 100 }), [])
      assert.deepEqual(await ask(rig, { index: 'by_owner', from: 'y', limit: 100 }), [...ten('y'), ...ten('z')])
      assert.deepEqual(await ask(rig, { index: 'by_owner', to: 'y', limit: 100 }), ten('x'))
      assert.deepEqual(await ask(rig, { index: 'by_owner', from: 'y', to: 'y', limit: 100 }), [])
      assert.deepEqual(await ask(rig, { index: 'by_owner', equals: ['absent'], limit: 100 }), [])
      assert.deepEqual(await ask(rig, { index: 'by_kind', equals: ['odd'], to: 'y', limit: 100 }), ['x1', 'x3', 'x5', 'x7', 'x9'])
      assert.deepEqual(await ask(rig, { from: 'y8', to: 'z2', limit: 100 }), ['y8', 'y9', 'z0', 'z1'])
    },
  ],
  [
    'does not mistake an owner for another owner whose name starts the same',
    async ({ store, ctx, batch }) => {
      const owners = ['a', 'a ', 'aa', 'a\u0000', 'A', '\u00e1', 'a\u0301']
      await batch(
        ...owners.map((owner, i) => ({ op: 'put', collection: 'notes', key: `k${i}`, value: { owner, at: 'a' } }) as const)
      )
      for (const [i, owner] of owners.entries()) {
        const page = await store.range('notes', { index: 'by_owner', equals: [owner], limit: 100 }, ctx)
        assert.deepEqual(keysOf(page.records), [`k${i}`])
      }
    },
  ],
  [
    'continues after the last record of each page, for every page length',
    async rig => {
      await fill(rig)
      const all = [...ten('x'), ...ten('y'), ...ten('z')]
      for (const limit of [1, 7, 10, 15, 30, 31]) {
        assert.deepEqual(keysOf(await pages(rig.store, 'notes', { limit }, rig.ctx)), all)
        assert.deepEqual(
          keysOf(await pages(rig.store, 'notes', { index: 'by_owner', limit, reverse: true }, rig.ctx)),
          all.toReversed()
        )
        assert.deepEqual(
          keysOf(await pages(rig.store, 'notes', { index: 'by_owner', equals: ['y'], from: 2, to: 9, limit }, rig.ctx)),
          ten('y').slice(2, 9)
        )
      }
    },
  ],
  [
    'reports a next page exactly if there is one',
    async rig => {
      await fill(rig)
      const page = await rig.store.range('notes', { index: 'by_owner', equals: ['x'], limit: 10 }, rig.ctx)
      assert.equal(page.next, undefined)
      assert.notEqual((await rig.store.range('notes', { index: 'by_owner', equals: ['x'], limit: 9 }, rig.ctx)).next, undefined)
    },
  ],
  [
    'neither repeats nor skips records when others are added and removed between pages',
    async rig => {
      await fill(rig)
      const { store, ctx, batch } = rig
      const seen: string[] = []
      for (let cursor: string | undefined, round = 0; ; round++) {
        const page = await store.range(
          'notes',
          { index: 'by_owner', equals: ['y'], limit: 3, ...(cursor ? { cursor } : {}) },
          ctx
        )
        seen.push(...keysOf(page.records))
        await batch(
          { op: 'put', collection: 'notes', key: `before${round}`, value: { owner: 'y', at: -round } },
          { op: 'put', collection: 'notes', key: `other${round}`, value: { owner: 'x', at: round } },
          { op: 'delete', collection: 'notes', key: `y${round * 3 + 2}` }
        )
        cursor = page.next
        if (!cursor) break
      }
      assert.deepEqual(seen, ten('y'))
    },
  ],
  [
    'moves a record in its indexes with each put, and removes it with a delete',
    async rig => {
      const { batch } = rig
      const put = (value: Json) => batch({ op: 'put', collection: 'notes', key: 'a', value })
      await put({ owner: 'x', at: 1, meta: { kind: 'odd' } })
      await put({ owner: 'y', at: 1, meta: { kind: 'odd' } })
      assert.deepEqual(await ask(rig, { index: 'by_owner', equals: ['x'], limit: 9 }), [])
      assert.deepEqual(await ask(rig, { index: 'by_owner', equals: ['y'], limit: 9 }), ['a'])
      assert.deepEqual(await ask(rig, { index: 'by_kind', equals: ['odd'], limit: 9 }), ['a'])
      await put('no object at all')
      assert.deepEqual(await ask(rig, { index: 'by_owner', limit: 9 }), ['a'])
      assert.deepEqual(await ask(rig, { index: 'by_kind', equals: ['odd'], limit: 9 }), [])
      await batch({ op: 'delete', collection: 'notes', key: 'a' })
      assert.deepEqual(await ask(rig, { index: 'by_owner', limit: 9 }), [])
      assert.deepEqual(await ask(rig, { limit: 9 }), [])
    },
  ],
  [
    'returns whole records in a range',
    async ({ store, ctx, put }) => {
      await put('notes', 'a', { owner: 'x', text: 'first' })
      await put('notes', 'a', { owner: 'x', text: 'second' })
      const page = await store.range('notes', { index: 'by_owner', equals: ['x'], limit: 9 }, ctx)
      assert.deepEqual(plain(page), { records: [{ key: 'a', version: 2, value: { owner: 'x', text: 'second' } }] })
    },
  ],
  [
    'never shows records outside of equals, with any cursor',
    async rig => {
      await fill(rig)
      const { store, ctx } = rig
      const foreign = (await store.range('notes', { index: 'by_owner', equals: ['x'], limit: 3 }, ctx)).next!
      const ofKeys = (await store.range('notes', { limit: 3 }, ctx)).next!
      for (const cursor of [foreign, ofKeys, '', 'x', '%%%', 'AAAA', Buffer.from('zzz').toString('base64url')]) {
        const query = { index: 'by_owner', equals: ['y'], limit: 100, cursor }
        const answer = await store.range('notes', query, ctx).catch((error: { code?: string }) => error.code)
        if (typeof answer === 'object')
          assert.ok(
            keysOf(answer.records).every(key => key.startsWith('y')),
            `the cursor ${cursor} left the range`
          )
        else assert.equal(answer, 'STORE_INVALID')
      }
    },
  ],
  [
    'distinguishes positions that differ only at their end: keys of 1024 bytes, indexed texts of 300,000 characters',
    async ({ store, ctx, batch }) => {
      const [long, wide] = ['x'.repeat(299_999), '😀'.repeat(254)]
      const lasts = ['a', 'b', 'é', '😀'] // in the order of their bytes
      const keysOfOwner = (owner: string) => lasts.map(last => `${owner}${wide}${last}`)
      const note = (key: string, owner: string) =>
        ({ op: 'put', collection: 'notes', key, value: { owner: long + owner, at: 1 } }) as const
      for (const owner of shuffled(lasts)) await batch(...shuffled(keysOfOwner(owner)).map(key => note(key, owner)))
      const of = (owner: string, parts: Partial<RangeQuery> = {}) =>
        pages(store, 'notes', { index: 'by_owner', equals: [long + owner, 1], limit: 3, ...parts }, ctx)
      for (const owner of lasts) {
        assert.deepEqual(keysOf(await of(owner)), keysOfOwner(owner))
        assert.deepEqual(keysOf(await of(owner, { reverse: true })), keysOfOwner(owner).toReversed())
      }
      const all = keysOf(await pages(store, 'notes', { index: 'by_owner', limit: 5 }, ctx))
      assert.deepEqual(all, lasts.flatMap(keysOfOwner))
      await batch(note(all[0]!, '😀'))
      assert.deepEqual(keysOf(await of('a')), keysOfOwner('a').slice(1))
      assert.deepEqual(keysOf(await of('😀')), [all[0], ...keysOfOwner('😀')])
    },
  ],
  [
    'rejects invalid queries',
    async ({ store, ctx }) => {
      const queries: RangeQuery[] = [
        { limit: 0 },
        { limit: 1001 },
        { limit: 1.5 },
        { equals: ['x'], limit: 1 },
        { from: 1, limit: 1 },
        { index: 'by_owner', equals: ['x', 1, 'k', 'more'], limit: 1 },
        { index: 'by_owner', equals: [['x']], limit: 1 },
        { index: 'by_owner', from: {}, limit: 1 },
        { index: 'by_owner', equals: ['x', 1], from: 5, limit: 1 },
      ]
      for (const query of queries) await fails(store.range('notes', query, ctx), 'STORE_INVALID')
    },
  ],
]
