import { expect } from 'chai'
import { ask, offered, openLocal, says, textOf } from './support/local.ts'

describe('provider-local, asked for data', () => {
  it('answers in JSON of the schema it is given', async () => {
    await using local = await openLocal()
    const responseSchema = {
      type: 'object',
      properties: {
        title: { type: 'string', maxLength: 5 },
        size: { type: 'integer', minimum: 3 },
        kind: { enum: ['a', 'b'] },
        parts: { type: 'array', items: { $ref: '#/$defs/part' } },
      },
      $defs: { part: { type: 'object', properties: { ok: { type: 'boolean' } } } },
    }
    const text = textOf(await ask(local.provider, says('a long title', { responseSchema })))
    expect(JSON.parse(text)).to.deep.equal({ title: 'a lon', size: 3, kind: 'a', parts: [{ ok: true }] })
  })

  it('answers JSON that keeps to bounds, and to all parts of a schema; directives come first', async () => {
    await using local = await openLocal()
    const responseSchema = {
      allOf: [
        { $ref: '#/$defs/named' },
        { properties: { agreed: { type: 'boolean' }, votes: { type: 'integer', exclusiveMinimum: 0 } } },
      ],
      properties: { none: { type: 'array', items: {}, maxItems: 0 }, debt: { type: 'number', exclusiveMaximum: -1 } },
      $defs: { named: { type: 'object', properties: { name: { type: 'string' } } } },
    }
    const request = says('a plan\n/tool weather', { responseSchema, tools: offered('weather') })
    expect((await ask(local.provider, request)).map(({ type }) => type)).to.include('tool_call')
    const text = textOf(await ask(local.provider, { ...request, tools: [] }))
    expect(JSON.parse(text)).to.deep.equal({ name: 'a plan', agreed: true, votes: 1, none: [], debt: -2 })
  })
})
