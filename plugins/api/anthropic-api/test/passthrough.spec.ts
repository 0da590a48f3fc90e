import { definePlugin } from '@svc/core'
import { ModelCalls, Providers } from '@svc/core/contracts'
import { item, type Received } from '@svc/testing'
import { expect } from 'chai'
import { assistant, serveApi, user } from './support/api.ts'
import { frame, KEY, scripted, serveBefore, STOP, USAGE } from './support/upstreams.ts'

const BETAS = 'claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27'

/** A request as coding agents send it. */
const AGENT_BODY = {
  model: 'up/m',
  max_tokens: 32_000,
  stream: true,
  system: [
    { type: 'text', text: 'x-vendor-billing-header: cc_version=2.1.197; cch=4711;' },
    { type: 'text', text: 'You are an agent.', cache_control: { type: 'ephemeral', ttl: '1h' } },
  ],
  messages: [
    user([{ type: 'text', text: 'hi', cache_control: { type: 'ephemeral' } }]),
    { role: 'system', content: 'The user has opened a file.' },
    assistant([
      { type: 'thinking', thinking: 'Hm.', signature: 'EqQBCkYIB+sig/==' },
      { type: 'redacted_thinking', data: 'EmwKAhgB' },
      { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'x' } },
      { type: 'tool_use', id: 'toolu_1', name: 'Read', input: { file: 'a b"ü' }, caller: { type: 'direct' } },
    ]),
    user([{ type: 'tool_result', tool_use_id: 'toolu_1', content: [{ type: 'text', text: 'x' }], future: 1 }]),
  ],
  tools: [
    { name: 'Read', description: 'reads', input_schema: { type: 'object' }, eager_input_streaming: true, defer_loading: false },
    { type: 'web_search_20250305', name: 'web_search', max_uses: 5 },
  ],
  tool_choice: { type: 'tool', name: 'web_search' },
  thinking: { type: 'adaptive' },
  context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
  output_config: { effort: 'medium' },
  metadata: { user_id: 'u1' },
  unknown_field: { deep: [1, null, 'x'] },
}

const SIGNATURE = 'ErUB+/sig=='
const EVENTS = [
  frame('message_start', {
    message: {
      id: 'msg_9',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [],
      stop_reason: null,
      usage: { input_tokens: 3, output_tokens: 1, service_tier: 'standard' },
    },
  }),
  frame('content_block_start', { index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } }),
  frame('ping'),
  frame('content_block_delta', { index: 0, delta: { type: 'thinking_delta', thinking: 'Let me see.' } }),
  frame('content_block_delta', { index: 0, delta: { type: 'signature_delta', signature: SIGNATURE } }),
  frame('content_block_stop', { index: 0 }),
  frame('content_block_start', { index: 1, content_block: { type: 'server_tool_use', id: 's1', name: 'web_search', input: {} } }),
  frame('content_block_stop', { index: 1 }),
  frame('content_block_start', { index: 2, content_block: { type: 'text', text: '' } }),
  frame('content_block_delta', { index: 2, delta: { type: 'text_delta', text: 'Grüße 👩‍👩‍👧' } }),
  frame('content_block_stop', { index: 2 }),
  frame('message_delta', {
    delta: { stop_reason: 'end_turn', stop_sequence: null },
    context_management: { applied_edits: [] },
    usage: { output_tokens: 7, output_tokens_details: { thinking_tokens: 3 } },
  }),
  frame('message_stop'),
]

const wires = (text: string) => text.split('\n\n').filter(part => part !== '' && !part.includes('"ping"'))

/** Only the requests for answers. */
const asked = (received: readonly Received[]) =>
  received.filter(({ method, path }) => method === 'POST' && path === '/v1/messages')

describe('a server of the Messages API behind svc', () => {
  it('gets the request of the client unchanged, but for the model', async () => {
    await using api = await serveBefore('anthropic', (_received, reply) => reply.end(EVENTS.join('')))
    const response = await api.post('/v1/messages?beta=true', AGENT_BODY, { 'anthropic-beta': BETAS, authorization: 'Bearer x' })
    await response.text()
    expect(response.status).to.equal(200)
    const [sent] = asked(api.upstream.received)
    expect(sent!.body).to.deep.equal({ ...AGENT_BODY, model: 'm' })
    expect(sent!.headers['anthropic-beta']).to.equal(BETAS)
    expect(sent!.headers['x-api-key']).to.equal(KEY)
    expect(JSON.stringify(sent!.headers)).to.not.contain('Bearer')
    expect(response.headers.has('x-svc-dropped')).to.equal(false)
  })

  it('answers the client with its own events', async () => {
    await using api = await serveBefore('anthropic', (_received, reply) => reply.end(EVENTS.join('')))
    const response = await api.post('/v1/messages', AGENT_BODY)
    expect(wires(await response.text())).to.deep.equal(wires(EVENTS.join('')))
  })

  it('answers a request without a stream with its own message', async () => {
    const message = {
      id: 'msg_9',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [
        { type: 'thinking', thinking: 'Hm.', signature: SIGNATURE },
        { type: 'text', text: 'Hi', citations: null },
      ],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: { input_tokens: 3, output_tokens: 4, server_tool_use: { web_search_requests: 1 } },
      container: null,
    }
    await using api = await serveBefore('anthropic', (_received, reply) => reply.json(200, message))
    const { body, status } = await api.ask({ ...AGENT_BODY, stream: false })
    expect(status).to.equal(200)
    expect(body).to.deep.equal(message)
    // the client returns the thoughts: the server gets them byte for byte
    await api.ask({ model: 'up/m', messages: [user('hi'), assistant(body.content), user('more')] })
    const { messages } = asked(api.upstream.received)[1]!.body as { messages: { content: unknown }[] }
    expect(messages[1]!.content).to.deep.equal(message.content)
  })

  it('does not get thoughts that another model has signed', async () => {
    await using api = await serveBefore('anthropic', (_received, reply) => reply.end(EVENTS.join('')))
    const { body } = await api.ask({ messages: [user('why?')], thinking: { type: 'adaptive' } })
    expect(body.content[0].type).to.equal('thinking')
    await api.stream({ model: 'up/m', messages: [user('why?'), assistant(body.content), user('more')] })
    const { messages } = asked(api.upstream.received)[0]!.body as { messages: { content: unknown }[] }
    expect(messages[1]!.content).to.deep.equal([body.content[1]])
  })

  it('counts tokens of the request as it is', async () => {
    await using api = await serveBefore('anthropic', ({ path }, reply) =>
      path === '/v1/messages/count_tokens' ? reply.json(200, { input_tokens: 4711 }) : reply.json(404, {})
    )
    // the API counts no metadata
    const { stream: _stream, max_tokens: _max, metadata: _metadata, ...counted } = AGENT_BODY
    const response = await api.post('/v1/messages/count_tokens', counted, { 'anthropic-beta': BETAS })
    expect(await response.json()).to.deep.equal({ input_tokens: 4711 })
    const sent = api.upstream.received.find(({ path }) => path === '/v1/messages/count_tokens')
    expect(sent!.body).to.deep.equal({ ...counted, model: 'm' })
  })

  it('fails before its answer: the client gets the status and the kind of the error', async () => {
    const failures: [number, string, Record<string, string>, number, string][] = [
      [429, 'rate_limit_error', { 'retry-after': '7' }, 429, 'rate_limit_error'],
      [529, 'overloaded_error', {}, 529, 'overloaded_error'],
      [400, 'invalid_request_error', {}, 400, 'invalid_request_error'],
      [404, 'not_found_error', {}, 404, 'not_found_error'],
      [401, 'authentication_error', {}, 500, 'api_error'],
    ]
    for (const [sent, type, headers, status, expected] of failures) {
      await using api = await serveBefore(
        'anthropic',
        ({ method }, reply) =>
          method === 'GET'
            ? reply.json(404, {})
            : reply.json(sent, { type: 'error', error: { type, message: 'no way' } }, headers),
        { config: NO_RETRY }
      )
      for (const stream of [true, false]) {
        const response = await api.post('/v1/messages', { ...AGENT_BODY, stream })
        const body = (await response.json()) as { type: string; error: { type: string; message: string }; request_id: string }
        expect([response.status, body.error.type], `${sent}`).to.deep.equal([status, expected])
        expect(body.type).to.equal('error')
        expect(body.request_id).to.equal(response.headers.get('request-id'))
        expect(body.error.message).to.not.contain(KEY)
        expect(response.headers.get('x-should-retry')).to.equal(String([429, 529].includes(sent)))
        if (headers['retry-after']) expect(response.headers.get('retry-after')).to.equal('7')
      }
    }
  })

  it('says in the words of the API that the conversation is too long', async () => {
    await using api = await serveBefore('anthropic', (_received, reply) =>
      reply.json(400, {
        type: 'error',
        error: { type: 'invalid_request_error', message: 'prompt is too long: 208310 tokens > 200000 maximum' },
      })
    )
    const { status, body } = await api.ask({ model: 'up/m', messages: [user('hi')] })
    expect(status).to.equal(400)
    expect(body.error).to.deep.equal({
      type: 'invalid_request_error',
      message: 'prompt is too long: 208310 tokens > 200000 maximum',
    })
  })

  it('fails in the middle of its answer: the stream ends with one error event', async () => {
    const failing = [
      (text: string) => text + frame('error', { error: { type: 'overloaded_error', message: 'Overloaded' } }),
      (text: string) => text,
    ]
    for (const fail of failing) {
      await using api = await serveBefore('anthropic', (_received, reply) => reply.end(fail(EVENTS.slice(0, 4).join(''))))
      const { status, events, data } = await api.stream(AGENT_BODY)
      expect(status).to.equal(200)
      expect(events.filter(({ event }) => event === 'error')).to.have.length(1)
      expect(events.at(-1)!.event).to.equal('error')
      expect(data.at(-1)).to.have.nested.property('error.type')
      expect(events.some(({ event }) => event === 'message_stop')).to.equal(false)
    }
  })

  it('can be asked again before its first part, without a trace of the first try', async () => {
    let tries = 0
    await using api = await serveBefore(
      'anthropic',
      (_received, reply) => {
        if (++tries === 1)
          reply.end(
            EVENTS[0]!.replace('msg_9', 'msg_1') + frame('error', { error: { type: 'overloaded_error', message: 'Overloaded' } })
          )
        else reply.end(EVENTS.join(''))
      },
      { config: { chat: { policy: { attempts: 2, backoff_ms: 1 } } } }
    )
    const response = await api.post('/v1/messages', AGENT_BODY)
    expect(wires(await response.text())).to.deep.equal(wires(EVENTS.join('')))
    expect(tries).to.equal(2)
  })

  it('is replaced by a model behind another protocol, which gets the translation', async () => {
    const odd = scripted([[{ type: 'text', text: 'ok' }, USAGE, STOP]])
    const plugin = definePlugin({
      setup: scope => void scope.tap(ModelCalls.hooks.modelFailed, () => ({ provider: 'odd', model: 'm' })),
    })
    const failing = EVENTS[0] + frame('error', { error: { type: 'overloaded_error', message: 'Overloaded' } })
    await using api = await serveBefore('anthropic', (_received, reply) => reply.end(failing), {
      config: NO_RETRY,
      give: [item(Providers, 'odd', odd), { name: 'test:fallback', use: plugin }],
    })
    const file = user([{ type: 'image', source: { type: 'file', file_id: 'file_1' } }])
    const { status, headers, data } = await api.stream({ ...AGENT_BODY, messages: [file] })
    expect(status).to.equal(200)
    expect(data[0].message.model).to.equal('up/m')
    expect(data.map(event => event.delta?.text ?? '').join('')).to.equal('ok')
    expect(headers.get('x-svc-dropped')!.split(', ')).to.include.members([
      'context_management',
      'tool_choice.name',
      'messages.0.content.0.source.type',
    ])
    expect(JSON.stringify(odd.requests[0]!.messages)).to.contain('content was left out')
    expect(odd.requests[0]).to.not.have.property('native')
  })

  it('knows values that svc does not know', async () => {
    await using api = await serveBefore('anthropic', (_received, reply) => reply.end(EVENTS.join('')))
    const future = {
      ...AGENT_BODY,
      thinking: { type: 'future' },
      output_config: { effort: 'future', format: { type: 'future' } },
      tool_choice: { type: 'future' },
      system: [{ type: 'future' }],
      messages: [{ role: 'future', content: [] }, user([{ type: 'future', cache_control: { type: 'x', ttl: 'y' } }])],
    }
    const { status } = await api.stream(future)
    expect(status).to.equal(200)
    expect(asked(api.upstream.received)[0]!.body).to.deep.equal({ ...future, model: 'm' })
    const other = await api.stream({ ...future, model: 'local/local-1' })
    expect([other.status, other.body.error.message]).to.deep.equal([
      400,
      'thinking.type must be "enabled", "adaptive" or "disabled"',
    ])
  })

  it('refuses: the client gets a message with the stop reason', async () => {
    const refusal = [
      EVENTS[0],
      frame('message_delta', { delta: { stop_reason: 'refusal' }, usage: { output_tokens: 1 } }),
      frame('message_stop'),
    ]
    await using api = await serveBefore('anthropic', (_received, reply) => reply.end(refusal.join('')), { config: NO_RETRY })
    const { status, data } = await api.stream(AGENT_BODY)
    expect(status).to.equal(200)
    expect(data.map(({ type }) => type)).to.deep.equal(['message_start', 'message_delta', 'message_stop'])
    expect(data[1].delta.stop_reason).to.equal('refusal')
  })
})

/** One attempt for each call. */
const NO_RETRY = { chat: { policy: { attempts: 1, breaker_failures: 0 } } }

describe('a model behind another protocol', () => {
  it('gets what can be translated, and the header lists the rest', async () => {
    await using api = await serveApi()
    const { tool_choice: _choice, ...body } = { ...AGENT_BODY, model: 'local/local-1', max_tokens: 4096 }
    const { status, headers, body: error } = await api.stream(body, { 'anthropic-beta': BETAS })
    expect(status, JSON.stringify(error)).to.equal(200)
    const dropped = headers.get('x-svc-dropped')!.split(', ')
    expect(dropped).to.include.members([
      'anthropic-beta',
      'cache_control',
      'context_management',
      'redacted_thinking',
      'server_tool_use',
      'system.0',
      'thinking',
      'tool_result.future',
      'tools.web_search',
      'unknown_field',
    ])
  })

  it('refuses by name a tool that it does not have, if the request forces it', async () => {
    await using api = await serveApi()
    const { status, body } = await api.stream({ ...AGENT_BODY, model: 'local/local-1', max_tokens: 4096 })
    expect(status).to.equal(400)
    expect(body.error.type).to.equal('invalid_request_error')
    expect(body.error.message).to.contain('tool_choice.name names "web_search"')
  })
})
