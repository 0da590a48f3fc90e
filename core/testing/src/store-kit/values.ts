import assert from 'node:assert/strict'
import type { Json } from '@svc/core/contracts'
import { fails, type StoreCase } from './rig.ts'

const nested = (depth: number): Json => (depth === 0 ? 'ground' : depth % 2 ? [nested(depth - 1)] : { deeper: nested(depth - 1) })

/** Values that are often corrupted. Each must come back as from JSON. */
const EDGES: Record<string, Json> = {
  null: null,
  false: false,
  zero: 0,
  negative: -1.5,
  'the greatest whole number': Number.MAX_SAFE_INTEGER,
  'the least whole number': Number.MIN_SAFE_INTEGER,
  'a number beyond 64 bits': 2 ** 70,
  'the greatest number': Number.MAX_VALUE,
  'the smallest number': Number.MIN_VALUE,
  'a long fraction': 0.1 + 0.2,
  'empty text': '',
  'text that looks like a number': '007',
  'text with NUL': 'a\u0000b',
  'text with quotes and lines': '"\\\n\r\t\u2028\u2029\u007f',
  'an emoji of several parts': '👩‍👩‍👧‍👦 é ẻ́ 中文 العربية',
  'half a surrogate pair': 'x\ud83dy',
  'half a surrogate pair as a key': { '\udc00': 1 },
  'an empty list': [],
  'an empty object': {},
  'a list of lists': [[[]], [{}], [null]],
  'awkward keys': { '': 1, __proto__: 2, constructor: 3, toString: 4, 'a.b': 5, $x: 6, '0': 7, length: 8 },
  'deep nesting': nested(500),
}
// An object literal takes __proto__ as its prototype, but parsed JSON can contain it as a key.
const withProto = JSON.parse('{"__proto__": {"polluted": true}, "b": {"__proto__": 1}}') as Json

const deepFreeze = <T>(value: T): T => {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value))
    Object.values(Object.freeze(value)).forEach(deepFreeze)
  return value
}

/** Cases for values and memory isolation. */
export const valueCases: readonly StoreCase[] = [
  [
    'returns every JSON value unchanged',
    async ({ store, ctx, put, batch }) => {
      for (const [name, value] of Object.entries({ ...EDGES, 'a prototype key': withProto })) {
        await put('plain', name, value)
        await batch({ op: 'append', log: 'lines', id: name, values: [value, value] })
        const wanted = JSON.stringify(value)
        assert.equal(JSON.stringify((await store.get('plain', name, ctx))?.value), wanted, name)
        assert.deepEqual(
          (await store.read('lines', name, { limit: 5 }, ctx)).map(entry => JSON.stringify(entry.value)),
          [wanted, wanted],
          name
        )
      }
      assert.equal(({} as { polluted?: boolean }).polluted, undefined)
    },
  ],
  [
    'omits undefined and converts NaN and Infinity to null, as JSON does',
    async ({ store, ctx, put }) => {
      await put('plain', 'a', { gone: undefined, list: [1, Number.NaN, Number.POSITIVE_INFINITY], zero: -0 })
      assert.equal(JSON.stringify((await store.get('plain', 'a', ctx))?.value), '{"list":[1,null,null],"zero":0}')
      assert.ok(!Object.hasOwn((await store.get('plain', 'a', ctx))!.value as object, 'gone'))
    },
  ],
  [
    'rejects a value that is not JSON, and applies nothing of its batch',
    async ({ store, ctx, batch }) => {
      for (const value of [undefined, () => 1, Symbol('x'), 1n] as unknown as Json[]) {
        await fails(
          batch({ op: 'put', collection: 'plain', key: 'a', value: 1 }, { op: 'put', collection: 'plain', key: 'b', value }),
          'STORE_INVALID'
        )
      }
      assert.equal(await store.get('plain', 'a', ctx), undefined)
    },
  ],
  [
    'keeps text of a mebibyte and lists of 10,000 entries',
    async ({ store, ctx, put, batch }) => {
      const text = 'é€😀x'.repeat(1 << 18)
      await put('plain', 'text', text)
      assert.equal((await store.get('plain', 'text', ctx))?.value, text)
      const list = Array.from({ length: 10_000 }, (_, i) => i)
      await batch({ op: 'append', log: 'lines', id: 'long', values: list })
      const entries = await store.read('lines', 'long', { limit: 10_000 }, ctx)
      assert.deepEqual(
        entries.map(entry => entry.value),
        list
      )
    },
  ],
  [
    'accepts frozen arguments and does not change its arguments',
    async ({ store, ctx }) => {
      const value = deepFreeze({ owner: 'x', list: [1, { a: 1 }] })
      const ops = deepFreeze([
        { op: 'put', collection: 'notes', key: 'a', value },
        { op: 'append', log: 'lines', id: 'a', values: [value] },
      ] as const)
      await store.batch(ops, deepFreeze({}), ctx)
      const query = deepFreeze({ index: 'by_owner', equals: ['x'], limit: 5 })
      assert.equal((await store.range('notes', query, ctx)).records.length, 1)
      const open = { list: [1], b: 'b' }
      await store.batch([{ op: 'put', collection: 'plain', key: 'a', value: open }], {}, ctx)
      assert.ok(!Object.isFrozen(open) && !Object.isFrozen(open.list), 'the caller’s value was frozen')
    },
  ],
  [
    'stores a copy of the value, not the object itself',
    async ({ store, ctx, put, batch }) => {
      const value = { list: [1], deep: { n: 1 } }
      const written = Promise.all([put('plain', 'a', value), batch({ op: 'append', log: 'lines', id: 'a', values: [value] })])
      await written
      value.list.push(2)
      value.deep.n = 2
      const wanted = '{"list":[1],"deep":{"n":1}}'
      assert.equal(JSON.stringify((await store.get('plain', 'a', ctx))?.value), wanted)
      assert.equal(JSON.stringify((await store.read('lines', 'a', { limit: 1 }, ctx))[0]?.value), wanted)
    },
  ],
  [
    'protects stored values from changes of returned values',
    async ({ store, ctx, put, batch }) => {
      await put('notes', 'a', { owner: 'x', list: [1] })
      await batch({ op: 'append', log: 'lines', id: 'a', values: [{ list: [1] }] })
      const reads = async () => [
        (await store.get('notes', 'a', ctx))!.value,
        (await store.range('notes', { index: 'by_owner', equals: ['x'], limit: 1 }, ctx)).records[0]!.value,
        (await store.read('lines', 'a', { limit: 1 }, ctx))[0]!.value,
      ]
      const before = JSON.stringify(await reads())
      for (const value of await reads()) spoil(value)
      assert.equal(JSON.stringify(await reads()), before)
    },
  ],
]

/** Tries to change a value. A frozen value and a copy are both correct. */
function spoil(value: Json): void {
  const target = value as { list: number[]; owner?: string }
  for (const change of [() => target.list.push(99), () => (target.owner = 'spoilt')]) {
    try {
      change()
    } catch {
      // Frozen: correct.
    }
  }
}
