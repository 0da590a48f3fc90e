import { toolSchema } from '@svc/plugin-kit/tool-schema'
import { expect } from 'chai'

const textOf = (pattern: string) => ({ type: 'object', properties: { text: { type: 'string', pattern } } })
const faultsOf = async (json: object, value: unknown) => {
  const { check } = await toolSchema(json as never)
  return check(value).map(({ path, message }) => `${path} ${message}`)
}

describe('the schema of a tool', () => {
  it('is checked as any other', async () => {
    const json = { type: 'object', properties: { n: { type: 'integer', default: 3 }, pattern: { type: 'string' } } }
    const value = {}
    expect(await faultsOf(json, value)).to.deep.equal([])
    expect(value).to.deep.equal({ n: 3 })
    expect(await faultsOf(json, { n: 'x', pattern: 1 })).to.deep.equal([
      'n must be integer, was text "x"',
      'pattern must be string, was 1',
    ])
  })

  it('takes no number that is not finite: JSON may say 1e999', async () => {
    const json = {
      type: 'object',
      properties: { i: { type: 'integer', minimum: 1 }, n: { type: 'number' }, p: { pattern: 'x' } },
    }
    expect(await faultsOf(json, JSON.parse('{"i":1e999,"n":-1e999}'))).to.have.lengthOf(2)
    expect(await faultsOf(json, { i: 1e300, n: -1e300 })).to.deep.equal([])
  })

  it('checks patterns as JavaScript writes them, several in one schema', async () => {
    const json = { type: 'object', properties: { a: { pattern: '^\\u00e9\\/x$' }, b: { pattern: '^\\d{4}$' } } }
    expect(await faultsOf(json, { a: 'é/x', b: '2026' })).to.deep.equal([])
    expect(await faultsOf(json, { a: '2026', b: 'é/x' })).to.have.lengthOf(2)
  })

  it('takes no longer than the text is long, whatever a pattern says', async () => {
    expect(await faultsOf(textOf('^(a+)+$'), { text: `${'a'.repeat(100_000)}b` })).to.have.lengthOf(1)
    const names = { type: 'object', patternProperties: { '^(a+)+$': { type: 'string' } }, additionalProperties: false }
    expect(await faultsOf(names, { [`${'a'.repeat(100_000)}b`]: '' })).to.have.lengthOf(1)
    expect(await faultsOf(names, { aaa: '' })).to.deep.equal([])
  })

  it('gives up patterns that are too costly for so long a text, also for many short ones', async () => {
    const costly = '([ab]{0,500}a[ab]{400}[c-e])'
    const thrown = (json: object, value: unknown) =>
      faultsOf(json, value).then(
        () => 'nothing',
        (error: { code: string }) => error.code
      )
    expect(await thrown(textOf(costly), { text: 'ab'.repeat(50_000) })).to.equal('ARGUMENTS_TOO_LONG')
    const list = { type: 'array', items: { pattern: costly } }
    expect(
      await thrown(
        list,
        Array.from({ length: 1_000 }, () => 'ab'.repeat(50))
      )
    ).to.equal('ARGUMENTS_TOO_LONG')
    expect(await thrown(list, ['ab'])).to.equal('nothing')
  })

  it('finds an item that stands twice in time that grows with the list', async () => {
    const json = { type: 'object', properties: { all: { type: 'array', uniqueItems: true } } }
    const many = Array.from({ length: 100_000 }, (_, at) => ({ id: [at], name: 'x' }))
    expect(await faultsOf(json, { all: many })).to.deep.equal([])
    const twice = 'all must not have the same item twice, was a list'
    expect(await faultsOf(json, { all: [...many, { name: 'x', id: [7] }] })).to.deep.equal([twice])
    expect(await faultsOf(json, { all: [1, '1', null, 'null', [1], { 0: 1 }, true] })).to.deep.equal([])
    expect(await faultsOf({ uniqueItems: false }, [1, 1])).to.deep.equal([])
  })

  it('leaves patterns unchecked that cannot be in linear time, and says which; all else it checks', async () => {
    const json = {
      type: 'object',
      properties: {
        ahead: { type: 'string', pattern: '(?=a)b', maxLength: 3 },
        back: { pattern: '(a)\\1' },
        none: { pattern: '(' },
        long: { pattern: 'a'.repeat(1_001) },
        enum: { enum: [{ pattern: '(?=data)' }] },
        not: { not: { pattern: '(?!x)' } },
      },
      patternProperties: { '^(?!y)z': { type: 'integer' }, '^x': { type: 'integer' } },
      additionalProperties: false,
    }
    const { check, unchecked } = await toolSchema(json)
    expect(unchecked).to.have.members(['(?=a)b', '(a)\\1', '(', 'a'.repeat(1_001), '(?!x)', '^(?!y)z'])
    const value = { ahead: 'long', back: 'x', none: 'x', long: 'x', enum: { pattern: '(?=data)' }, not: 'x', z: 'x', x: 'x' }
    expect(check(value).map(({ path }) => path)).to.deep.equal(['ahead', 'x'])
  })

  it('stops at the first problem where the option says so', async () => {
    const { check } = await toolSchema({ type: 'array', items: { pattern: '^a$' } })
    expect(check(['b', 'b', 'b'], 'first')).to.have.lengthOf(1)
    expect(check(['b', 'c', 'd'])).to.have.lengthOf(3)
  })
})
