import { copyPlain, findNonPlain } from '@svc/runtime'
import { expect } from 'chai'

describe('a plain value', () => {
  const plain = {
    nothing: null,
    missing: undefined,
    text: 'ä',
    number: -0.5,
    yes: true,
    big: 10n,
    at: new Date(7),
    bytes: new Uint8Array([1, 2]),
    list: [[1], { a: 1 }],
    bare: Object.assign(Object.create(null) as object, { b: 1 }),
  }

  it('is JSON, undefined, bigint, Date, Uint8Array, lists and objects without a class', () => {
    expect(findNonPlain(plain, 'it')).to.equal(undefined)
  })

  it('may hold one object twice, however often', () => {
    let value: object = { leaf: 1 }
    for (let i = 0; i < 60; i++) value = { left: value, right: value }
    expect(findNonPlain(value, 'it')).to.equal(undefined)
    expect(copyPlain(value)).to.have.keys('left', 'right')
  })

  class Tool {}
  const cycle: { a: { b?: unknown } } = { a: {} }
  cycle.a.b = cycle
  const deep = JSON.parse('['.repeat(2000) + ']'.repeat(2000)) as unknown
  const cheats: [string, unknown, string][] = [
    ['a function', { args: [{ tools: [{ b: () => 1 }] }] }, 'cheat.args[0].tools[0].b is a function'],
    ['a symbol', [Symbol('x')], 'cheat[0] is a symbol'],
    ['an object of a class', { a: new Tool() }, 'cheat.a is a Tool'],
    ['a Map', new Map(), 'cheat is a Map'],
    ['an Error', { e: new Error('x') }, 'cheat.e is an Error'],
    ['a Buffer', { b: Buffer.from('x') }, 'cheat.b is a Buffer'],
    ['another typed array', new Uint16Array(1), 'cheat is an Uint16Array'],
    ['an AbortSignal', { signal: AbortSignal.abort() }, 'cheat.signal is an AbortSignal'],
    ['a promise', [Promise.resolve()], 'cheat[0] is a Promise'],
    ['a cycle', cycle, 'cheat.a.b is a cycle: it is cheat again'],
    ['a key that is a symbol', { a: { [Symbol('k')]: 1 } }, 'cheat.a is an object with a symbol as key'],
    ['a class without name', new (class {})(), 'cheat is an object of a class without name'],
  ]
  for (const [what, value, message] of cheats) {
    it(`is not ${what}`, () => {
      expect(findNonPlain(value, 'cheat')).to.equal(message)
    })
  }

  it('is not nested deeper than 500 levels', () => {
    expect(findNonPlain(deep, 'cheat')).to.match(/^cheat(\[0\]){500} is nested deeper than 500 levels$/)
  })

  it('is copied whole, and the copy cannot be changed', () => {
    const copy = copyPlain(plain)
    expect(copy).to.deep.equal(plain)
    expect(copy.list[1]).to.not.equal(plain.list[1])
    expect(copy.bytes).to.not.equal(plain.bytes)
    for (const part of [copy, copy.list, copy.list[1], copy.bare]) expect(Object.isFrozen(part)).to.equal(true)
  })

  it('keeps a key __proto__ a key in the copy', () => {
    const copy = copyPlain(JSON.parse('{"__proto__":{"admin":true}}') as { admin?: boolean })
    expect(copy.admin).to.equal(undefined)
    expect(Object.keys(copy)).to.deep.equal(['__proto__'])
  })
})
