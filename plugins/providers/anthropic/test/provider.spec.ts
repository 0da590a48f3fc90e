import type { ModelRequest } from '@svc/core/contracts'
import { ask, failureOf, testContext } from '@svc/testing'
import { expect } from 'chai'
import { offered, openAnthropic, to, user } from './support/anthropic.ts'
import { block, ended, failure, frame, openMessagesApi, started, text, tool } from './support/messages-api.ts'

const thought = (...pieces: object[]) => block(0, { type: 'thinking', thinking: '', signature: '' }, ...pieces)
const signed = { type: 'signature_delta', signature: 'sig-1' }

describe('provider-anthropic, what it reads', () => {
  const reads = async (stream: string, request: ModelRequest = to('own')) => {
    await using upstream = await openMessagesApi({ own: reply => reply.end(stream) })
    await using opened = await openAnthropic(upstream.url)
    return await ask(opened.provider, request)
  }

  it('tells thoughts as they come and signs the last piece', async () => {
    const pieces = ['Let me', ' see.'].map(thinking => ({ type: 'thinking_delta', thinking }))
    const redacted = block(1, { type: 'redacted_thinking', data: 'enc' })
    const events = await reads(started() + thought(...pieces, signed) + redacted + text(2, 'Hi') + ended('end_turn'))
    expect(events.slice(0, -2)).to.deep.equal([
      { type: 'reasoning', text: '' },
      { type: 'reasoning', text: 'Let me' },
      { type: 'reasoning', text: ' see.' },
      { type: 'reasoning', text: '', providerData: { signature: 'sig-1' } },
      { type: 'reasoning', text: '', providerData: { redacted: 'enc' } },
      { type: 'text', text: 'Hi' },
    ])
  })

  it('gives thoughts back as they came in the next round', async () => {
    await using upstream = await openMessagesApi({
      own: (reply, { messages }) =>
        messages.length > 1
          ? reply.end(started() + text(0, 'done') + ended('end_turn'))
          : reply.end(
              started() +
                thought({ type: 'thinking_delta', thinking: 'Hm' }, signed) +
                tool(1, 'toolu_1', 'weather') +
                ended('tool_use')
            ),
    })
    await using opened = await openAnthropic(upstream.url)
    const events = await ask(opened.provider, to('own', { tools: offered }))
    const parts = events.filter(event => event.type === 'reasoning' || event.type === 'tool_call')
    const content = [{ type: 'text', text: 'sunny' }] as const
    const result = { type: 'tool_result', id: 'toolu_1', tool: 'weather', content, isError: false } as const
    const messages: ModelRequest['messages'] = [user('hello'), { role: 'assistant', parts }, { role: 'tool', parts: [result] }]
    await ask(opened.provider, to('own', { tools: offered, messages }))
    const sent = upstream.received.at(-1)!.body as { messages: { content: unknown }[] }
    expect(sent.messages[1]!.content).to.deep.equal([
      { type: 'thinking', thinking: 'Hm', signature: 'sig-1' },
      { type: 'tool_use', id: 'toolu_1', name: 'weather', input: {} },
    ])
  })

  it('says by a piece without words that a silent thinker is still there, and nothing while it talks', async () => {
    const open = frame('content_block_start', { index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } })
    const stop = frame('content_block_stop', { index: 0 })
    const events = await reads(started() + open + frame('ping') + stop + frame('ping') + text(1, 'Hi') + ended('end_turn'))
    expect(events.map(event => event.type)).to.deep.equal(['reasoning', 'reasoning', 'text', 'usage', 'finish'])
  })

  it('counts what was read from the cache, written to it, and thought', async () => {
    const usage = { output_tokens: 40, output_tokens_details: { thinking_tokens: 30 }, cache_read_input_tokens: null }
    const events = await reads(started() + text(0, 'Hi') + ended('end_turn', {}, usage))
    expect(events.at(-2)).to.deep.equal({
      type: 'usage',
      usage: { input: 10, output: 40, cached: 3, cacheWrite: 2, reasoning: 30 },
    })
  })

  for (const [stop, reason] of [
    ['end_turn', 'stop'],
    ['stop_sequence', 'stop'],
    ['max_tokens', 'length'],
    ['model_context_window_exceeded', 'length'],
    ['pause_turn', 'length'],
    ['refusal', 'content_filter'],
    ['a_new_reason', 'stop'],
  ] as const)
    it(`ends with ${reason} for ${stop}`, async () => {
      expect((await reads(started() + text(0, 'Hi') + ended(stop))).at(-1)).to.deep.equal({ type: 'finish', reason })
    })

  it('takes a tool call without arguments, and one whose arguments come whole', async () => {
    const whole = block(1, { type: 'tool_use', id: 'toolu_2', name: 'weather', input: { city: 'Ulm' } })
    const events = await reads(started() + tool(0, 'toolu_1', 'weather') + whole + ended('tool_use'))
    const calls = events.filter(event => event.type === 'tool_call')
    expect(calls.map(call => [call.id, call.arguments, call.invalid])).to.deep.equal([
      ['toolu_1', {}, undefined],
      ['toolu_2', { city: 'Ulm' }, undefined],
    ])
  })

  it('passes by events and blocks that it does not know', async () => {
    const odd = block(
      0,
      { type: 'server_tool_use', id: 'x', name: 'web', input: {} },
      { type: 'input_json_delta', partial_json: '{}' }
    )
    const events = await reads(started() + frame('news') + odd + text(1, 'Hi') + ended('end_turn'))
    expect(events.map(event => event.type)).to.deep.equal(['text', 'usage', 'finish'])
  })

  it('is content with an end that lacks its last frame', async () => {
    const stream = started() + text(0, 'Hi') + frame('message_delta', { delta: { stop_reason: 'end_turn' }, usage: {} })
    expect((await reads(stream)).at(-1)).to.deep.equal({ type: 'finish', reason: 'stop' })
  })
})

describe('provider-anthropic, when the upstream fails', () => {
  const failsWith = async (answer: Parameters<typeof openMessagesApi>[0], more: Partial<ModelRequest> = {}) => {
    await using upstream = await openMessagesApi(answer)
    await using opened = await openAnthropic(upstream.url)
    return await failureOf(ask(opened.provider, to('own', more)))
  }

  it('says when to try again', async () => {
    await using upstream = await openMessagesApi()
    await using opened = await openAnthropic(upstream.url)
    const { details } = await failureOf(ask(opened.provider, to('fail-rate_limited')))
    expect(details).to.deep.equal({ kind: 'rate_limited', retryable: true, retryAfterMs: 3000, upstreamStatus: 429 })
  })

  it('tells the limit and the count of a context that is too long', async () => {
    await using upstream = await openMessagesApi()
    await using opened = await openAnthropic(upstream.url)
    const { details } = await failureOf(ask(opened.provider, to('fail-context_too_long')))
    expect(details).to.include({ kind: 'context_too_long', limit: 200_000, count: 208_310 })
  })

  it('tells why a model refused before it said anything', async () => {
    await using upstream = await openMessagesApi()
    await using opened = await openAnthropic(upstream.url)
    expect((await failureOf(ask(opened.provider, to('fail-content_refused')))).message).to.include('Not this.')
  })

  it('takes a stream that is cut, or ends without its end, for a broken network', async () => {
    for (const end of [() => undefined, (reply: { cut(): void }) => reply.cut()]) {
      const { details } = await failsWith({
        async own(reply) {
          await reply.write(started() + text(0, 'Hi'))
          if (end(reply) === undefined) reply.end()
        },
      })
      expect(details).to.deep.equal({ kind: 'network', retryable: true })
    }
  })

  for (const [what, stream] of [
    ['half a JSON', 'event: content_block_delta\ndata: {"type":"content_block_de\n\n'],
    ['no JSON at all', 'data: hello\n\n'],
  ] as const)
    it(`takes ${what} in a frame for a broken network`, async () => {
      const { details } = await failsWith({ own: reply => reply.end(started() + stream) })
      expect(details).to.include({ kind: 'network' })
    })

  for (const data of [
    'null',
    '[]',
    '7',
    '{}',
    '{"type":7}',
    '{"type":"content_block_delta","delta":null}',
    '{"type":"content_block_start"}',
  ])
    it(`passes by the frame ${data}`, async () => {
      const { details } = await failsWith({ own: reply => reply.end(`${started()}data: ${data}\n\n`) })
      expect(details).to.include({ kind: 'network' })
    })

  it('follows no redirect', async () => {
    await using elsewhere = await openMessagesApi()
    const error = await failsWith({ own: reply => reply.redirect(307, `${elsewhere.url}/v1/messages`) })
    expect(error.details).to.include({ kind: 'bad_request', upstreamStatus: 307 })
    expect(elsewhere.received).to.have.lengthOf(0)
  })
})

describe('provider-anthropic and temperatures', () => {
  const refusing = () =>
    openMessagesApi({
      own: (reply, body) =>
        'temperature' in body
          ? reply.json(400, failure('invalid_request_error', '`temperature` is deprecated for this model.'))
          : reply.end(started() + text(0, 'Hi') + ended('end_turn')),
    })

  it('asks again without one when the model takes none, and remembers', async () => {
    await using upstream = await refusing()
    await using opened = await openAnthropic(upstream.url, { models: ['own'] })
    for (let times = 0; times < 2; times++)
      expect((await ask(opened.provider, to('own', { temperature: 0.5 }))).at(-1)).to.include({ type: 'finish' })
    expect(upstream.received.map(request => (request.body as { temperature?: number }).temperature)).to.deep.equal([
      0.5,
      undefined,
      undefined,
    ])
    expect((await opened.provider.models(testContext())).models).to.deep.equal([{ id: 'own', temperature: false }])
  })

  it('sends none to a model that the configuration says takes none', async () => {
    await using upstream = await refusing()
    await using opened = await openAnthropic(upstream.url, { models: [{ id: 'own', temperature: false }] })
    await ask(opened.provider, to('own', { temperature: 0.5 }))
    expect(upstream.received).to.have.lengthOf(1)
  })

  it('asks only once when something else is wrong', async () => {
    await using upstream = await openMessagesApi()
    await using opened = await openAnthropic(upstream.url)
    await failureOf(ask(opened.provider, to('fail-bad_request', { temperature: 0.5 })))
    expect(upstream.received).to.have.lengthOf(1)
    expect((upstream.received[0]!.body as { temperature?: number }).temperature).to.equal(0.5)
  })
})
