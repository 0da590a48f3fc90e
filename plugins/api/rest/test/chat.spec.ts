import { once } from 'node:events'
import { expect } from 'chai'
import { schema, svcError } from '@svc/core'
import type { Chat, TurnEvent, TurnRequest } from '@svc/core/contracts'
import { readEvents } from '@svc/provider-http/sse'
import { CHAT_EVENT } from '../src/routes/chat.ts'
import { end, reply, serveRest } from './support/rest-server.ts'

const start = {
  type: 'start',
  requestId: 'r-1',
  timestamp: '2026-01-01T00:00:00.000Z',
  conversationId: 'c1',
  provider: 'p',
  model: 'm',
} as const satisfies TurnEvent

const streamOf = (...events: (TurnEvent | Error)[]) => ({
  async *stream() {
    for (const event of events) {
      if (event instanceof Error) throw event
      yield event
    }
  },
})

interface EventSchema {
  readonly properties: { readonly type: { readonly const: string } }
}
const { oneOf: EVENT_SCHEMAS } = CHAT_EVENT as unknown as { oneOf: readonly EventSchema[] }

/** The events of a stream; each has what its schema in /openapi.json says, and nothing else. */
async function eventsOf(text: string) {
  const events = (await Array.fromAsync(readEvents(new Blob([text]).stream()))).map(item => ({
    ...item,
    data: JSON.parse(item.data),
  }))
  for (const { event, data } of events) {
    const own = EVENT_SCHEMAS.find(item => item.properties.type.const === event)
    expect(schema({ ...own, additionalProperties: false }).check(data), `the faults of ${event}`).to.deep.equal([])
  }
  return events
}

describe('POST /api/v1/chat', () => {
  it('answers with the whole reply', async () => {
    await using served = await serveRest()
    const { status, body } = await served.call('POST', '/api/v1/chat', { message: 'hi' })
    expect(status).to.equal(200)
    expect(body).to.deep.equal({
      success: true,
      response: 'hello',
      provider: 'p',
      model: 'm',
      conversation_id: 'c1',
      tokens_used: { input: 2, output: 3, total: 5 },
      duration_ms: 12,
      tools_used: [
        { tool: 'add', call_id: 't1', arguments: { a: 1 }, success: true, duration_ms: 2 },
        { tool: 'fail', call_id: 't2', arguments: {}, success: false, duration_ms: 0, error: 'it broke' },
      ],
    })
  })

  it('hands on every field, and nothing that was not given', async () => {
    const asked: TurnRequest[] = []
    const chat = { reply: async (turn: TurnRequest) => (asked.push(turn), reply) }
    await using served = await serveRest({ chat })
    await served.call('POST', '/api/v1/chat', { message: 'hi', other: 1 })
    await served.call('POST', '/api/v1/chat', {
      message: 'hi',
      provider: 'p',
      model: 'm',
      temperature: 0,
      max_tokens: 9,
      conversation_id: 'c1',
      tools: [],
    })
    expect(asked).to.deep.equal([
      { message: 'hi' },
      { message: 'hi', provider: 'p', model: 'm', temperature: 0, maxTokens: 9, conversationId: 'c1', tools: [] },
    ])
  })

  it('names what is missing', async () => {
    await using served = await serveRest()
    for (const path of ['/api/v1/chat', '/api/v1/chat/stream']) {
      const { status, body } = await served.call('POST', path, { provider: 'p' })
      expect([status, body.error_code]).to.deep.equal([400, 'MISSING_FIELD'])
      expect(body.details).to.deep.equal({ required_fields: ['message'], provided_fields: ['provider'] })
    }
  })

  const wrong: [string, unknown][] = [
    ['message', ''],
    ['message', '  \n'],
    ['message', null],
    ['message', ['a']],
    ['provider', ''],
    ['model', 5],
    ['temperature', 1.01],
    ['temperature', -0.1],
    ['temperature', '0.5'],
    ['max_tokens', 0],
    ['max_tokens', 1.5],
    ['max_tokens', null],
    ['conversation_id', ''],
    ['conversation_id', {}],
    ['tools', 'add'],
    ['tools', [null]],
    ['tools', ['']],
  ]
  for (const [field, value] of wrong)
    it(`refuses ${JSON.stringify(value)} as ${field}`, async () => {
      await using served = await serveRest()
      const { status, body } = await served.call('POST', '/api/v1/chat', { message: 'hi', [field]: value as string })
      expect([status, body.error_code]).to.deep.equal([400, 'INVALID_VALUE'])
      expect((body.details as { field: string }).field).to.match(new RegExp(`^${field}(\\[0\\])?$`))
    })
})

describe('POST /api/v1/chat/stream', () => {
  it('sends the turn as frames, in the documented form', async () => {
    const events: TurnEvent[] = [
      start,
      { type: 'token', content: 'a "b"\n', index: 0 },
      { type: 'tool_call', tool: 'add', callId: 't1', arguments: { a: 1 } },
      { type: 'tool_result', tool: 'add', callId: 't1', success: true, result: { sum: 1 }, error: null, durationMs: 1.2 },
      { type: 'token', content: 'é', index: 1 },
      end,
    ]
    await using served = await serveRest({ chat: streamOf(...events) })
    const { status, text, headers } = await served.call('POST', '/api/v1/chat/stream', { message: 'hi' })
    expect([status, headers.get('content-type')]).to.deep.equal([200, 'text/event-stream'])
    expect(text).to.include('id: 2\nevent: token\ndata: {"type":"token","content":"a \\"b\\"\\n","index":0}\n\n')
    expect(await eventsOf(text)).to.deep.equal(
      [
        {
          type: 'start',
          turn_id: 'turn_1',
          request_id: 'r-1',
          timestamp: start.timestamp,
          conversation_id: 'c1',
          provider: 'p',
          model: 'm',
        },
        { type: 'token', content: 'a "b"\n', index: 0 },
        { type: 'tool_call', tool: 'add', call_id: 't1', arguments: { a: 1 } },
        { type: 'tool_result', tool: 'add', call_id: 't1', success: true, result: { sum: 1 }, error: null, duration_ms: 1 },
        { type: 'token', content: 'é', index: 1 },
        {
          type: 'end',
          request_id: 'r-1',
          timestamp: end.timestamp,
          status: 'completed',
          provider: 'p',
          model: 'm',
          tokens_used: { input: 2, output: 3, total: 5 },
          duration_ms: 12,
        },
      ].map((data, at) => ({ id: String(at + 1), event: data.type, data }))
    )
  })

  it('answers what fails before the start with an error record', async () => {
    await using served = await serveRest({
      chat: streamOf(svcError('MODEL_NOT_FOUND', 'no such model', { details: { model: 'x' } })),
    })
    const { status, body } = await served.call('POST', '/api/v1/chat/stream', { message: 'hi' })
    expect([status, body.error_code]).to.deep.equal([404, 'MODEL_NOT_FOUND'])
  })

  it('tells a failure after the start in the terms of the API, and ends', async () => {
    const error = { code: 'MODEL_FAILED', message: 'gone', details: { kind: 'network', provider: 'p', retryable: true } }
    await using served = await serveRest({ chat: streamOf(start, { type: 'error', error }, { ...end, status: 'failed' }) })
    const { text } = await served.call('POST', '/api/v1/chat/stream', { message: 'hi' })
    const events = await eventsOf(text)
    expect(events.map(event => event.event)).to.deep.equal(['start', 'error', 'end'])
    expect(events[1]!.data).to.deep.equal({
      type: 'error',
      error: 'gone',
      error_code: 'PROVIDER_ERROR',
      details: { provider: 'p', retryable: true },
    })
    expect(events[2]!.data).to.include({ status: 'failed' })
  })

  it('ends with an error and `end` even when the chat itself breaks in its midst', async () => {
    await using served = await serveRest({
      chat: streamOf(start, { type: 'token', content: 'a', index: 0 }, new TypeError('secret')),
    })
    const { text } = await served.call('POST', '/api/v1/chat/stream', { message: 'hi' })
    const events = await eventsOf(text)
    expect(events.map(event => event.event)).to.deep.equal(['start', 'token', 'error', 'end'])
    expect(events[2]!.data).to.include({ error_code: 'INTERNAL_ERROR' })
    expect(events[3]!.data).to.deep.include({
      status: 'failed',
      request_id: 'r-1',
      tokens_used: { input: 0, output: 0, total: 0 },
    })
    expect(text).not.to.include('secret')
  })
})

describe('POST /api/v1/chat/stream of a server that stops', () => {
  for (const [title, last] of [
    ['ends in good order', { ...end, status: 'cancelled' }],
    ['breaks', undefined],
  ] as const)
    it(`says that and ends, once server.shutdown_timeout is over, where its turn ${title}`, async () => {
      const begun = Promise.withResolvers<void>()
      const chat: Partial<Chat> = {
        async *stream(_turn, { signal }) {
          yield start
          begun.resolve()
          await once(signal, 'abort')
          if (!last) throw signal.reason
          yield last
        },
      }
      const served = await serveRest({ chat, config: { server: { port: 0, shutdown_timeout: 0.1 } } })
      const answer = served.call('POST', '/api/v1/chat/stream', { message: 'hi' })
      await begun.promise
      const [{ text }] = await Promise.all([answer, served.host.close()])
      const events = await eventsOf(text)
      expect(events.map(event => event.event)).to.deep.equal(['start', 'error', 'end'])
      expect(events[1]!.data).to.include({ error: 'the server is stopping', error_code: 'UNAVAILABLE' })
      expect(events[2]!.data).to.include({ status: 'failed', request_id: 'r-1' })
    })
})

describe('POST /api/v1/chat/answer', () => {
  it('hands on what a person said', async () => {
    const said: unknown[] = []
    const answer = async (item: object) => void said.push(item)
    await using served = await serveRest({ chat: { answer } })
    const body = { request_id: 'r-1', call_id: 'c1', allow: false, reason: 'no' }
    expect((await served.call('POST', '/api/v1/chat/answer', body)).body).to.deep.equal({ success: true })
    expect(said).to.deep.equal([{ requestId: 'r-1', callId: 'c1', allow: false, reason: 'no' }])
  })

  it('answers 404 without an open question', async () => {
    const answer = () => Promise.reject(svcError('QUESTION_UNKNOWN', 'there is no such question', { details: { callId: 'c1' } }))
    await using served = await serveRest({ chat: { answer } })
    const { status, body } = await served.call('POST', '/api/v1/chat/answer', { request_id: 'r', call_id: 'c1', allow: true })
    expect([status, body.error_code, body.details]).to.deep.equal([
      404,
      'INVALID_VALUE',
      { field: 'call_id', value: 'c1', reason: 'not found' },
    ])
  })
})
