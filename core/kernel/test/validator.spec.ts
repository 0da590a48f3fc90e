import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type JsonSchema, schema } from '@svc/core'
import { Ajv } from 'ajv'
import { expect } from 'chai'
import { KERNEL_SCHEMA } from '../config/kernel-config.ts'
import { precompile, precompiledOf, usePrecompiled } from '../config/validator.ts'

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
  additionalProperties: { type: 'string', pattern: '^\\p{L}+$', patternHint: 'must be letters' },
}
const unlike = { type: 'array', uniqueItems: true }

/** A schema, a value, and where faults are. */
const SAMPLES: [JsonSchema, unknown, string[]][] = [
  [named, {}, []],
  [named, { 'a/b': 'ä' }, []],
  [named, { ab: 'a' }, ['']],
  [named, { 'a/b': '1' }, ['a/b']],
  [named, { 'a/b': 1 }, ['a/b']],
  [needy, {}, []],
  [needy, { b: 1 }, []],
  [needy, { a: 1, b: 1 }, []],
  [needy, { a: 1 }, ['']],
  [nested, {}, []],
  [nested, { name: 'x' }, ['name']],
  [nested, { name: '😀' }, ['name']],
  [nested, { inner: { count: 0 } }, ['inner.count']],
  [nested, { inner: { count: 1.5 } }, ['inner.count']],
  [nested, { inner: {}, words: ['a', 'b'] }, []],
  [nested, { name: 'abc', inner: {}, words: ['x'] }, []],
  [nested, { words: ['a', 'b', 'c'] }, ['words']],
  [nested, { words: [''] }, ['words[0]']],
  [nested, { mode: 'c' }, ['mode']],
  [nested, { mode: 'b', any: null, map: { x: true } }, []],
  [nested, { map: { x: 1 } }, ['map.x']],
  [nested, { any: 1 }, ['any']],
  [nested, { unknown: 1 }, ['unknown']],
  [nested, JSON.parse('{"__proto__": {"count": 1}}'), ['__proto__']],
  [nested, [], ['']],
  [nested, null, ['']],
  [must, {}, ['a']],
  [must, { a: undefined }, ['a']],
  [must, { a: 0 }, ['a']],
  [must, { a: 1 }, []],
  [must, { a: Number.NaN }, ['a']],
  [KERNEL_SCHEMA.json, {}, []],
  [KERNEL_SCHEMA.json, { log: { level: 'debug' }, host: { tap_timeout_ms: 1 } }, []],
  [{ type: 'string', pattern: '^a' }, 'b', ['']],
  [{ type: 'string', pattern: '^a' }, 'a', []],
  [{ anyOf: [{ type: 'string' }] }, 1, ['']],
  [
    unlike,
    [
      { a: 1, b: 2 },
      { b: 2, a: 1 },
    ],
    [''],
  ],
  [unlike, [{ a: 1 }, { a: 2 }, [1], [2]], []],
]

describe('a schema that the build has compiled', () => {
  let folder: string
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-validators-'))
    await writeFile(join(folder, 'validators.cjs'), precompile(SAMPLES.map(([json]) => json)))
  })
  after(() => rm(folder, { recursive: true }))
  afterEach(() => usePrecompiled(undefined))

  for (const problems of ['all', 'first'] as const)
    for (const [json, value, where] of SAMPLES)
      it(`finds what ajv finds (${problems}), and fills in the same: ${JSON.stringify(value)}`, () => {
        const [early, late, plain] = [structuredClone(value), structuredClone(value), structuredClone(value)]
        const found = schema(json, { problems }).check(late)
        usePrecompiled(join(folder, 'validators.cjs'))
        expect(schema(json, { problems }).check(early)).to.deep.equal(found)
        expect([...new Set(found.map(item => item.path))]).to.deep.equal(where)
        expect(early).to.deep.equal(late)
        expect(precompiledOf(json, {})!(structuredClone(value))).to.equal(where.length === 0)
        // ajv with nothing of ours, but for its own uniqueItems the same
        const ajv = new Ajv({
          strict: false,
          strictNumbers: true,
          validateSchema: false,
          useDefaults: true,
          addUsedSchema: false,
        })
        expect(ajv.compile(json as object)(plain)).to.equal(where.length === 0)
        if (where.length === 0) expect(plain).to.deep.equal(late)
      })
})

describe('a schema of a stranger', () => {
  it("has its patterns run by the engine that was given: on JavaScript's own they may take for ever", () => {
    const asked: string[] = []
    const regExp = Object.assign((pattern: string) => ({ test: (text: string) => asked.push(pattern + text) > 0 }), {
      code: 'fake',
    })
    const inner = { type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$' } } }
    expect(schema(inner, { regExp: regExp as never }).check({ a: `${'a'.repeat(50)}b` })).to.deep.equal([])
    expect(asked).to.have.length(1)
  })
})
