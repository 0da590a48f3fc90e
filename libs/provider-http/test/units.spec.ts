import type { SvcError } from '@svc/core'
import type { ModelEvent, ModelInfo, ModelRequest } from '@svc/core/contracts'
import { estimateTokens, modelList, type ToolCallPiece, ToolCalls } from '@svc/provider-http'
import { expect } from 'chai'
import { sentBody } from '../src/json.ts'
import { abortable, failing } from './support/rig.ts'

describe('the body of a request', () => {
  it('has the bytes of its tools from the first request with the same list', () => {
    let written = 0
    const listOf = () => [{ name: 'wéather', toJSON: () => (written++, { name: 'wéather' }) }]
    const tools = listOf()
    const readBody = (body: object) => JSON.parse(Buffer.from(sentBody(body)).toString()) as unknown
    const expected = [{ name: 'wéather' }]
    expect(readBody({ model: 'a', tools, text: 'ü' })).to.deep.equal({ model: 'a', text: 'ü', tools: expected })
    expect(readBody({ tools, model: 'b' })).to.deep.equal({ model: 'b', tools: expected })
    expect(readBody({ tools })).to.deep.equal({ tools: expected })
    expect(written).to.equal(1)
    expect(readBody({ tools: listOf() })).to.deep.equal({ tools: expected })
    expect(written).to.equal(2)
    expect(readBody({ model: 'a', tools: [] })).to.deep.equal({ model: 'a', tools: [] })
    expect(sentBody({ model: 'a' })).to.equal('{"model":"a"}')
  })
})

describe('tool calls in pieces', () => {
  const gather = (pieces: readonly (readonly [number | undefined, ToolCallPiece])[]) => {
    const calls = new ToolCalls('acme')
    for (const [index, piece] of pieces) calls.add(index, piece)
    const events: ModelEvent[] = []
    calls.emit(event => events.push(event))
    return events.map(event => (event.type === 'tool_call' ? event : expect.fail(event.type)))
  }

  it('are put together by their index, in parallel', () => {
    const calls = gather([
      [1, { id: 'b', tool: 'news' }],
      [0, { id: 'a', tool: 'weather', text: '{"city"' }],
      [1, { text: '{}' }],
      [0, { text: ': "Ulm"}' }],
    ])
    expect(calls).to.deep.equal([
      { type: 'tool_call', id: 'a', tool: 'weather', arguments: { city: 'Ulm' } },
      { type: 'tool_call', id: 'b', tool: 'news', arguments: {} },
    ])
  })

  it('are distinct where a server counts none', () => {
    const calls = gather([
      [undefined, { id: 'a', tool: 'x', text: '{"n"' }],
      [undefined, { id: 'a', text: ':1}' }],
      [undefined, { id: 'b', tool: 'x', text: '' }],
      [undefined, { text: '{"n":2}' }],
    ])
    expect(calls.map(call => [call.id, call.arguments])).to.deep.equal([
      ['a', { n: 1 }],
      ['b', { n: 2 }],
    ])
    const nameless = gather([
      [undefined, { tool: 'x', text: '{}' }],
      [undefined, { tool: 'y', text: '{}' }],
    ])
    expect(nameless.map(item => item.tool)).to.deep.equal(['x', 'y'])
  })

  it('are distinct where a server counts all of them as the first', () => {
    const calls = gather([
      [0, { id: 'a', tool: 'x', text: '{}' }],
      [0, { id: 'b', tool: 'x', text: '{"n":2}' }],
      [0, { id: 'b', text: '' }],
    ])
    expect(calls.map(call => [call.id, call.arguments])).to.deep.equal([
      ['a', {}],
      ['b', { n: 2 }],
    ])
  })

  it('each get an id of their own', () => {
    const ids = gather([
      [0, { tool: 'x' }],
      [1, { id: 'same', tool: 'x' }],
      [2, { id: 'same', tool: 'x' }],
    ]).map(item => item.id)
    expect(new Set(ids).size).to.equal(3)
    expect(ids.every(id => /^[\w-]{1,40}$/.test(id))).to.equal(true)
  })

  for (const text of ['{"a":', '[1]', '"x"', 'null', '7'])
    it(`keep arguments that are no object as they were written: ${text}`, () => {
      expect(gather([[0, { id: 'a', tool: 'x', text }]])).to.deep.equal([
        { type: 'tool_call', id: 'a', tool: 'x', arguments: {}, invalid: text },
      ])
    })

  it('are given up where they never end', async () => {
    const many = (async () => {
      const calls = new ToolCalls('acme')
      for (let at = 0; ; at++) calls.add(at, { tool: 'x' })
    })()
    const long = (async () => {
      const calls = new ToolCalls('acme')
      for (;;) calls.add(0, { text: 'x'.repeat(100_000) })
    })()
    for (const error of [await failing(many), await failing(long)])
      expect(error.details).to.deep.equal({ kind: 'network', retryable: false })
  })
})

describe('an estimate of tokens', () => {
  const asks = (text: string, more: Partial<ModelRequest> = {}): number =>
    estimateTokens({ model: 'm', messages: [{ role: 'user', parts: [{ type: 'text', text }] }], ...more })

  it('is above what tokenizers count, and not far above', () => {
    for (const [text, real] of [
      ['The quick brown fox jumps over the lazy dog. '.repeat(20), 200],
      ['{"a":1,"b":[true,false,null]}'.repeat(10), 150],
      ['今日は天気がいいですね。', 12],
      ['👩‍👩‍👧🏳️‍🌈', 16],
    ] as const) {
      expect(asks(text), text).to.be.at.least(real)
      expect(asks(text), text).to.be.below(real * 3 + 30)
    }
  })

  it('counts images, tools, schemas and what tools answered', () => {
    const bare = asks('hello')
    const tools = [
      {
        name: 'weather',
        description: 'tells the weather',
        parameters: { type: 'object', properties: { city: { type: 'string' } } },
      },
    ]
    expect(asks('hello', { tools })).to.be.above(bare + 10)
    expect(asks('hello', { responseSchema: { type: 'object', properties: {} } })).to.be.above(bare + 5)
    const parts = [{ type: 'image' as const, data: 'aGk=', mimeType: 'image/png' }]
    expect(estimateTokens({ model: 'm', messages: [{ role: 'user', parts }] })).to.be.above(1000)
    const content = [
      { type: 'text' as const, text: 'sunny '.repeat(100) },
      { type: 'image' as const, data: 'x', mimeType: 'image/png' },
    ]
    expect(
      estimateTokens({
        model: 'm',
        messages: [{ role: 'tool', parts: [{ type: 'tool_result', id: '1', tool: 'weather', isError: false, content }] }],
      })
    ).to.be.above(1700)
  })
})

describe('a list of models', () => {
  const list = (load: () => Promise<readonly ModelInfo[]>, signal = new AbortController().signal) =>
    modelList({ configured: undefined, load, open: true, signal })

  it('is that of the configuration, without a request', async () => {
    const models = modelList({
      configured: ['a', { id: 'b', context: 8, vision: true, temperature: false }],
      load: () => expect.fail('it asked'),
      open: true,
      signal: new AbortController().signal,
    })
    expect(await models(abortable().ctx)).to.deep.equal({
      models: [{ id: 'a' }, { id: 'b', context: 8, temperature: false, features: { vision: true } }],
      open: false,
    })
  })

  it('is asked for once, for all callers that wait and leave, and kept', async () => {
    let asked = 0
    const loading = Promise.withResolvers<readonly ModelInfo[]>()
    const models = list(() => {
      asked++
      return loading.promise
    })
    const first = abortable()
    const leaving = failing(models(first.ctx))
    const others = Promise.all([models(abortable().ctx), models(abortable().ctx)])
    first.controller.abort(new Error('away'))
    expect((await leaving).message).to.equal('away')
    loading.resolve([{ id: 'a' }, { id: 'a' }])
    expect(await others).to.deep.equal(Array(2).fill({ models: [{ id: 'a' }], open: true }))
    await models(abortable().ctx)
    expect(asked).to.equal(1)
  })

  it('keeps a failure for a moment, and tells it', async () => {
    let asked = 0
    const models = list(async () => {
      asked++
      throw new Error('down')
    })
    for (let times = 0; times < 3; times++) expect((await failing(models(abortable().ctx))).message).to.equal('down')
    expect(asked).to.equal(1)
  })

  it('stops asking when its plugin closes', async () => {
    const closing = new AbortController()
    const models = modelList({
      configured: undefined,
      open: true,
      signal: closing.signal,
      load: ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as SvcError))),
    })
    const waiting = failing(models(abortable().ctx))
    closing.abort(new Error('closed'))
    expect((await waiting).message).to.equal('closed')
  })
})
