import { schema } from '@svc/core'
import { Ajv } from 'ajv'
import { expect } from 'chai'
import { KERNEL_SCHEMA } from '../config/kernel.ts'
import { surelyFits } from '../config/quick.ts'

const closed = (properties: object, required: string[] = []) => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
})
const nested = closed({
  name: { type: 'string', minLength: 2, default: 'ab' },
  inner: { ...closed({ count: { type: 'integer', minimum: 1, default: 3 } }), default: {} },
  words: { type: 'array', items: { type: 'string', minLength: 1 }, maxItems: 2 },
  mode: { enum: ['a', 'b'] },
  any: { type: ['string', 'null'] },
  map: { type: 'object', additionalProperties: { type: 'boolean' } },
})
const must = closed({ a: { type: 'number', exclusiveMinimum: 0 } }, ['a'])

const needy = { ...closed({ a: {}, b: {} }), dependencies: { a: ['b'] } }

const named = {
  type: 'object',
  propertyNames: { pattern: '^[^/]+/.+$' },
  additionalProperties: { type: 'string', pattern: '^\\p{L}+$' },
}

const SAMPLES: [object, unknown][] = [
  [named, {}],
  [named, { 'a/b': 'ä' }],
  [named, { ab: 'a' }],
  [named, { 'a/b': '1' }],
  [named, { 'a/b': 1 }],
  [needy, {}],
  [needy, { b: 1 }],
  [needy, { a: 1, b: 1 }],
  [needy, { a: 1 }],
  [nested, {}],
  [nested, { name: 'x' }],
  [nested, { name: '😀' }],
  [nested, { inner: { count: 0 } }],
  [nested, { inner: { count: 1.5 } }],
  [nested, { inner: {}, words: ['a', 'b'] }],
  [nested, { words: ['a', 'b', 'c'] }],
  [nested, { words: [''] }],
  [nested, { mode: 'c' }],
  [nested, { mode: 'b', any: null, map: { x: true } }],
  [nested, { map: { x: 1 } }],
  [nested, { any: 1 }],
  [nested, { unknown: 1 }],
  [nested, JSON.parse('{"__proto__": {"count": 1}}')],
  [nested, []],
  [nested, null],
  [must, {}],
  [must, { a: undefined }],
  [must, { a: 0 }],
  [must, { a: 1 }],
  [must, { a: Number.NaN }],
  [KERNEL_SCHEMA.json as object, {}],
  [KERNEL_SCHEMA.json as object, { log: { level: 'debug' }, host: { tap_timeout_ms: 1 } }],
  [{ type: 'string', pattern: '^a' }, 'b'],
  [{ anyOf: [{ type: 'string' }] }, 1],
]

describe('the quick check of a schema', () => {
  const ajv = () => new Ajv({ strict: false, validateSchema: false, useDefaults: true, addUsedSchema: false })

  for (const [json, value] of SAMPLES) {
    it(`never takes what ajv refuses, and fills in the same: ${JSON.stringify(value)}`, () => {
      const [quick, slow] = [structuredClone(value), structuredClone(value)]
      const fits = ajv().compile(json)(slow)
      const sure = surelyFits(json as never, quick)
      if (sure) expect([fits, quick]).to.deep.equal([true, slow])
    })
  }

  it('is sure of the values that configurations have', () => {
    expect(surelyFits(nested, { name: 'abc', inner: {}, words: ['x'] })).to.equal(true)
    expect(surelyFits(nested, {})).to.equal(true)
    expect(surelyFits(named, {})).to.equal(true)
    expect(surelyFits(named, { 'a/b': 'ä' })).to.equal(true)
  })

  it("runs no pattern of strangers: on JavaScript's engine it may take for ever", () => {
    const asked: string[] = []
    const regExp = Object.assign((pattern: string) => ({ test: (text: string) => asked.push(pattern + text) > 0 }), {
      code: 'fake',
    })
    const inner = { type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$' } } }
    expect(schema(inner, { regExp: regExp as never }).check({ a: `${'a'.repeat(50)}b` })).to.deep.equal([])
    expect(asked).to.have.length(1)
  })

  it('leaves what it does not know to ajv, which reports it', () => {
    expect(schema({ type: 'string', pattern: '^a' }).check('b')).to.have.length(1)
    expect(schema({ type: 'string', pattern: '^a' }).check('a')).to.deep.equal([])
  })
})
