import { expect } from 'chai'
import type { JsonSchema } from '@svc/core'
import type { Provider, Tool } from '@svc/core/contracts'
import { serveRest } from './support/rest-server.ts'

const features = { tool_calling: true, streaming: true, vision: true }
const provider = (models: Provider['models']): Provider => ({
  features,
  models,
  countTokens: async () => 0,
  async *chat() {},
  probe: async () => {},
})
const tool = (category: string, parameters: JsonSchema): Tool => ({
  description: `Does ${category}`,
  category,
  effects: ['read'],
  parameters,
  call: async () => ({ content: [] }),
})

describe('GET /api/v1/providers', () => {
  it('lists providers with their models and features; one that cannot say has none', async () => {
    const good = provider(async () => ({ models: [{ id: 'a' }, { id: 'b', context: 9 }], open: false }))
    const bad = provider(() => Promise.reject(new Error('unreachable')))
    await using served = await serveRest({ providers: { good, bad } })
    const { status, body } = await served.call('GET', '/api/v1/providers')
    expect([status, body]).to.deep.equal([
      200,
      {
        providers: [
          { name: 'good', models: ['a', 'b'], features },
          { name: 'bad', models: [], features },
        ],
      },
    ])
  })
})

describe('GET /api/v1/tools', () => {
  it('lists tools by name, and the categories in use in their order', async () => {
    const tools = {
      zip: tool('own', { type: 'object' }),
      add: tool('text', { type: 'object' }),
      aaa: tool('files', { type: 'object' }),
    }
    await using served = await serveRest({ tools })
    const { body } = await served.call('GET', '/api/v1/tools')
    expect((body.tools as { name: string }[]).map(item => item.name)).to.deep.equal(['aaa', 'add', 'zip'])
    expect(body.categories).to.deep.equal(['files', 'text', 'own'])
  })

  it('lists the tools of one category', async () => {
    const tools = { zip: tool('own', { type: 'object' }), add: tool('text', { type: 'object' }) }
    await using served = await serveRest({ tools })
    const { body } = await served.call('GET', '/api/v1/tools?category=own')
    expect((body.tools as { name: string }[]).map(item => item.name)).to.deep.equal(['zip'])
    expect(body.categories).to.deep.equal(['text', 'own'])
    expect((await served.call('GET', '/api/v1/tools?category=mcp')).body.tools).to.deep.equal([])
    const unknown = await served.call('GET', '/api/v1/tools?category=txet')
    expect([unknown.status, unknown.body.error_code]).to.deep.equal([400, 'INVALID_VALUE'])
    expect(unknown.body.details).to.deep.include({ field: 'category', value: 'txet' })
    expect(JSON.stringify(unknown.body.details)).to.include('did you mean \\"text\\"?').and.include('"own"')
  })

  it('tells each parameter in the words of its schema', async () => {
    const parameters = {
      type: 'object',
      required: ['plain', 'linked'],
      $defs: { count: { type: 'integer', description: 'How many' }, loop: { $ref: '#/$defs/loop' }, 'a/b': { type: 'boolean' } },
      properties: {
        plain: { type: 'string', description: 'Words' },
        union: { type: ['string', 'null'] },
        either: { anyOf: [{ type: 'number' }, { $ref: '#/$defs/count' }, { type: 'number' }] },
        nothing: {},
        anything: true,
        linked: { $ref: '#/$defs/count' },
        escaped: { $ref: '#/$defs/a~1b' },
        loop: { $ref: '#/$defs/loop' },
        away: { $ref: 'https://example.com/schema' },
      },
    }
    await using served = await serveRest({ tools: { one: tool('text', parameters) } })
    const { body } = await served.call('GET', '/api/v1/tools')
    expect(body.tools).to.deep.equal([
      {
        name: 'one',
        description: 'Does text',
        category: 'text',
        parameters: {
          plain: { type: 'string', description: 'Words', required: true },
          union: { type: 'string|null', required: false },
          either: { type: 'number|integer', required: false },
          nothing: { type: 'any', required: false },
          anything: { type: 'any', required: false },
          linked: { type: 'integer', description: 'How many', required: true },
          escaped: { type: 'boolean', required: false },
          loop: { type: 'any', required: false },
          away: { type: 'any', required: false },
        },
      },
    ])
  })
})
