import type { Json, ModelRequest } from '@svc/core/contracts'
import { expect } from 'chai'
import { keyOf } from '../src/cache.ts'

const request: ModelRequest = { model: 'm', messages: [{ role: 'user', parts: [{ type: 'text', text: 'hi' }] }] }
const key = (more: Partial<ModelRequest> = {}, who: { provider?: string; principal?: string } = {}) =>
  keyOf({ provider: 'p', ...who, request: { ...request, ...more } })

describe('the key of a question', () => {
  it('is the same however its objects were made, and whether somebody reads along', () => {
    const schema = { type: 'object', properties: { b: { type: 'string' }, a: { type: 'string' } } }
    const turned = { properties: { a: { type: 'string' }, b: { type: 'string' } }, type: 'object' }
    expect(key({ responseSchema: schema })).to.equal(key({ responseSchema: turned }))
    expect([key({ gathered: true }), key({ cacheKey: 'conv_1' })]).to.deep.equal([key(), key()])
    expect(key({ temperature: undefined as never })).to.equal(key())
  })

  it('differs with everything that could change the answer', () => {
    const tool = { name: 't', description: 'd', parameters: {} }
    const said = (providerData: Json) => [{ role: 'assistant', parts: [], provider: 'p', providerData }] as const
    const all = [
      key(),
      key({ model: 'n' }),
      key({ temperature: 0 }),
      key({ maxTokens: 1 }),
      key({ tools: [tool] }),
      key({ tools: [{ ...tool, description: 'e' }] }),
      key({ toolChoice: 'required' }),
      key({ toolChoice: { tool: 't' } }),
      key({ responseSchema: { type: 'object' } }),
      key({ messages: said(1) }),
      key({ messages: said(2) }),
      key({ messages: [] }),
      key({}, { provider: 'q' }),
      key({}, { principal: 'anna' }),
      key({}, { principal: 'ben' }),
    ]
    expect(new Set(all).size).to.equal(all.length)
  })

  it('is none for what is nested too deep to be written', () => {
    let deep: Json = null
    for (let at = 0; at < 100_000; at++) deep = [deep]
    expect(key({ messages: [{ role: 'assistant', parts: [], providerData: deep }] })).to.equal(undefined)
  })
})
