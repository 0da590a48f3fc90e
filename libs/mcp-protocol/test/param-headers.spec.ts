import { encodeHeader, headersOf, paramHeaders } from '@svc/mcp-protocol'
import { expect } from 'chai'

const text = (name: string) => ({ type: 'string', 'x-mcp-header': name })

describe('arguments in headers', () => {
  it('are found at any depth of properties, and written as headers can carry them', () => {
    const declared = headersOf({
      properties: { a: text('A'), b: { properties: { c: { type: 'boolean', 'x-mcp-header': 'C' } } } },
    })
    expect(declared).to.deep.equal([
      { path: ['a'], name: 'A' },
      { path: ['b', 'c'], name: 'C' },
    ])
    const headers = paramHeaders(declared as Exclude<typeof declared, string>, { a: ' é', b: { c: false } })
    expect(headers).to.deep.equal({ 'Mcp-Param-A': `=?base64?${Buffer.from(' é').toString('base64')}?=`, 'Mcp-Param-C': 'false' })
  })

  it('are left out where they are absent, null or nothing plain', () => {
    const declared = ['a', 'b', 'c', 'd'].map(name => ({ path: [name], name }))
    expect(paramHeaders(declared, { a: null, b: [1], c: 2 ** 60 })).to.deep.equal({})
    expect(paramHeaders([{ path: ['constructor'], name: 'x' }], {})).to.deep.equal({})
  })

  for (const [what, schema] of Object.entries<Parameters<typeof headersOf>[0]>({
    'at the root': text('A'),
    'under items': { properties: { a: { items: text('A') } } },
    'in one of several': { anyOf: [{ properties: { a: text('A') } }] },
    'in definitions': { $defs: { a: { properties: { b: text('A') } } } },
    'on a number': { properties: { a: { type: 'number', 'x-mcp-header': 'A' } } },
    'without a name': { properties: { a: text('') } },
    'with a line break': { properties: { a: text('A\r\nB') } },
    'twice, whatever their case': { properties: { a: text('A'), b: text('a') } },
  }))
    it(`are refused ${what}`, () => {
      expect(headersOf(schema)).to.be.a('string')
    })

  it('mean nothing where they are data', () => {
    expect(
      headersOf({ properties: { a: { type: 'object', default: { 'x-mcp-header': 'A' }, enum: [{ 'x-mcp-header': 1 }] } } })
    ).to.deep.equal([])
  })

  it('are encoded where a header would lose or mistake them', () => {
    expect(encodeHeader('us west')).to.equal('us west')
    for (const value of ['', ' a', 'a\n', 'ü', '=?base64?YQ==?='])
      expect(encodeHeader(value)).to.equal(`=?base64?${Buffer.from(value).toString('base64')}?=`)
  })
})
