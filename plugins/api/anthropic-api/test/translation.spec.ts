import { type ModelEvent, Providers } from '@svc/core/contracts'
import { item } from '@svc/testing'
import { expect } from 'chai'
import { type Any, assistant, type Body, serveApi, user } from './support/api.ts'
import { CALLS, chunk, lastChunk, scripted, serveBefore, STOP, USAGE } from './support/upstreams.ts'

const TOOL = { name: 'weather', description: 'the weather', input_schema: { type: 'object' } }
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } }

/** The server of a scripted provider, and its requests. */
async function serveScripted(answers: readonly (readonly (ModelEvent | Error)[])[], features = {}) {
  const provider = scripted(answers, features)
  const api = await serveApi({ give: [item(Providers, 'odd', provider)], config: { chat: { policy: { attempts: 1 } } } })
  return {
    requests: provider.requests,
    ask: (body: Body) => api.ask({ model: 'odd/m', messages: [user('hi')], ...body }),
    stream: (body: Body) => api.stream({ model: 'odd/m', messages: [user('hi')], ...body }),
    [Symbol.asyncDispose]: () => api[Symbol.asyncDispose](),
  }
}

const ANSWER: readonly ModelEvent[] = [{ type: 'text', text: 'ok' }, USAGE, STOP]

/** The blocks of a stream as a client assembles them. Fails if a block begins before the last one has ended. */
function blocksOf(data: readonly Any[]) {
  const blocks: Any[] = []
  let open = false
  for (const { type, index, content_block, delta } of data) {
    const block = blocks[index]
    if (type === 'content_block_start') {
      expect([open, index], 'one block after the other').to.deep.equal([false, blocks.length])
      blocks.push({ ...content_block, ...(content_block.type === 'tool_use' ? { json: '' } : {}) })
      open = true
    } else if (type === 'content_block_stop') {
      expect([open, index]).to.deep.equal([true, blocks.length - 1])
      open = false
      if (block.type === 'tool_use') block.input = block.json === '' ? {} : JSON.parse(block.json)
      delete block.json
    } else if (delta?.type === 'text_delta') block.text += delta.text
    else if (delta?.type === 'thinking_delta') block.thinking += delta.thinking
    else if (delta?.type === 'signature_delta') block.signature += delta.signature
    else if (delta?.type === 'input_json_delta') block.json += delta.partial_json
  }
  expect(open).to.equal(false)
  return blocks
}

describe('a request for a model behind another protocol', () => {
  it('keeps its fields', async () => {
    await using api = await serveScripted([ANSWER], {
      supports: [
        'stop',
        'top_p',
        'top_k',
        'reasoning_effort',
        'parallel_tool_calls',
        'tool_choice',
        'strict_tools',
        'cache_hints',
        'response_schema',
      ],
    })
    const schema = { type: 'object', properties: { a: { type: 'string' } } }
    const { headers, status, text } = await api.ask({
      max_tokens: 4000,
      temperature: 0.5,
      top_p: 0.9,
      top_k: 7,
      stop_sequences: ['END', 'STOP'],
      tools: [{ ...TOOL, strict: true, cache_control: { type: 'ephemeral', ttl: '1h' } }],
      tool_choice: { type: 'any', disable_parallel_tool_use: true },
      thinking: { type: 'enabled', budget_tokens: 2000 },
      output_config: { effort: 'low', format: { type: 'json_schema', schema } },
      metadata: { user_id: 'session-1' },
      system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }],
      cache_control: { type: 'ephemeral' },
    })
    expect(status, text).to.equal(200)
    expect(headers.has('x-svc-dropped')).to.equal(false)
    expect(api.requests[0]).to.deep.include({
      model: 'm',
      maxTokens: 4000,
      temperature: 0.5,
      topP: 0.9,
      topK: 7,
      stop: ['END', 'STOP'],
      tools: [
        { name: 'weather', description: 'the weather', parameters: { type: 'object' }, strict: true, cacheHint: { ttl: '1h' } },
      ],
      toolChoice: 'required',
      parallelToolCalls: false,
      reasoningTokens: 2000,
      reasoningEffort: 'low',
      responseSchema: schema,
      cacheKey: 'session-1',
      gathered: true,
    })
    expect(api.requests[0]!.messages).to.deep.equal([
      { role: 'system', parts: [{ type: 'text', text: 'Be brief.', cacheHint: {} }] },
      { role: 'user', parts: [{ type: 'text', text: 'hi', cacheHint: {} }] },
    ])
    expect(api.requests[0]).to.not.have.property('native')
  })

  it('keeps the kinds of its content', async () => {
    await using api = await serveScripted([ANSWER], { supports: ['image_urls', 'files'] })
    const { status, text } = await api.ask({
      messages: [
        { role: 'system', content: 'one' },
        user([
          image,
          { type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } },
          { type: 'document', title: 'a.pdf', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' } },
          { type: 'document', title: 'note', context: 'old', source: { type: 'text', media_type: 'text/plain', data: 'words' } },
          { type: 'document', source: { type: 'content', content: [{ type: 'text', text: 'inner' }, image] } },
          { type: 'search_result', source: 'https://x.test', title: 'X', content: [{ type: 'text', text: 'found' }] },
        ]),
        assistant([{ type: 'tool_use', id: 't1', name: 'weather', input: { city: 'Ulm' } }]),
        user([
          { type: 'text', text: 'and' },
          { type: 'tool_result', tool_use_id: 't1', content: [{ type: 'text', text: 'sunny' }, image], is_error: true },
        ]),
        { role: 'system', content: [{ type: 'text', text: 'two' }] },
      ],
    })
    expect(status, text).to.equal(200)
    const png = { data: PNG, mimeType: 'image/png' }
    expect(JSON.parse(JSON.stringify(api.requests[0]!.messages))).to.deep.equal([
      { role: 'system', parts: [{ type: 'text', text: 'one' }] },
      {
        role: 'user',
        parts: [
          { type: 'image', ...png },
          { type: 'image_url', url: 'https://example.com/a.png' },
          { type: 'file', data: 'JVBERi0=', mimeType: 'application/pdf', name: 'a.pdf' },
          { type: 'text', text: 'note\n\nold\n\nwords' },
          { type: 'text', text: 'inner' },
          { type: 'image', ...png },
          { type: 'text', text: 'X\nhttps://x.test\nfound' },
        ],
      },
      { role: 'assistant', parts: [{ type: 'tool_call', id: 't1', tool: 'weather', arguments: { city: 'Ulm' } }] },
      {
        role: 'tool',
        parts: [
          {
            type: 'tool_result',
            id: 't1',
            tool: 'weather',
            content: [
              { type: 'text', text: 'sunny' },
              { type: 'image', ...png },
            ],
            isError: true,
          },
        ],
      },
      { role: 'system', parts: [{ type: 'text', text: 'two' }] },
      { role: 'user', parts: [{ type: 'text', text: 'and' }] },
    ])
  })

  it('can have the ids of earlier calls again, and lists the cache hints that no part can have', async () => {
    await using api = await serveScripted([ANSWER], { supports: ['cache_hints'] })
    const cache_control = { type: 'ephemeral' }
    const call = assistant([{ type: 'tool_use', id: 'call_0', name: 'weather', input: {}, cache_control }])
    const result = (content: string) => user([{ type: 'tool_result', tool_use_id: 'call_0', content }])
    const again = await api.ask({ messages: [user('x'), call, result('one'), call, result('two')] })
    expect([again.status, again.headers.get('x-svc-dropped')]).to.deep.equal([200, 'tool_use.cache_control'])
    const results = api.requests[0]!.messages.flatMap(({ parts }) => parts.filter(({ type }) => type === 'tool_result'))
    expect(results).to.have.length(2)
    const marked = await api.ask({ messages: [user('x'), assistant([{ type: 'tool_use', id: 'a', name: 'b' }])], cache_control })
    expect(marked.headers.get('x-svc-dropped')).to.equal('cache_control')
  })

  it('has no system message at its end', async () => {
    await using api = await serveScripted([ANSWER])
    const call = assistant([{ type: 'tool_use', id: 't1', name: 'weather', input: {} }])
    const result = user([{ type: 'tool_result', tool_use_id: 't1', content: 'sunny' }])
    const system = { role: 'system', content: 'now' }
    const roles = async (messages: object[]) => {
      expect((await api.ask({ messages })).status).to.equal(200)
      return api.requests.at(-1)!.messages.map(({ role }) => role)
    }
    expect(await roles([user('hi'), system])).to.deep.equal(['system', 'user'])
    expect(await roles([user('hi'), system, call, result])).to.deep.equal(['system', 'user', 'assistant', 'tool'])
    expect(await roles([user('hi'), call, result, system])).to.deep.equal(['user', 'assistant', 'tool', 'user'])
    expect(await roles([system, user('hi')])).to.deep.equal(['system', 'user'])
  })

  it('is refused by the name of a field that the model does not support', async () => {
    await using api = await serveScripted([ANSWER], { supports: [], vision: false })
    const refused: [Body, string][] = [
      [{ stop_sequences: ['x'] }, 'stop_sequences is not supported by the model m'],
      [{ tools: [TOOL], tool_choice: { type: 'any' } }, 'tool_choice is not supported'],
      [
        { tools: [TOOL], tool_choice: { type: 'auto', disable_parallel_tool_use: true } },
        'tool_choice.disable_parallel_tool_use',
      ],
      [{ output_config: { format: { type: 'json_schema', schema: {} } } }, 'output_config.format is not supported'],
      [{ messages: [user([image])] }, 'image is not supported'],
      [{ container: 'c1' }, 'container is not supported'],
      [{ inference_geo: 'us' }, 'inference_geo is not supported'],
      [{ mcp_servers: [{ type: 'url', url: 'https://x.test', name: 'jira' }] }, 'mcp_servers cannot be used by this model: jira'],
      [{ messages: [user([{ type: 'image', source: { type: 'file', file_id: 'f1' } }])] }, 'messages.0.content.0.source.type'],
      [{ messages: [user([{ type: 'hologram' }])] }, 'messages.0.content.0.type "hologram"'],
    ]
    for (const [body, message] of refused) {
      const { status, body: answer } = await api.ask(body)
      expect([status, answer.error?.type], message).to.deep.equal([400, 'invalid_request_error'])
      expect(answer.error.message).to.contain(message)
    }
    expect(api.requests).to.have.length(0)
  })

  it('loses reasoning where the model has none, and the header lists it', async () => {
    await using api = await serveScripted([ANSWER], { supports: [] })
    const dropped = async (body: Body) => (await api.ask({ max_tokens: 4000, ...body })).headers.get('x-svc-dropped')
    expect(await dropped({ thinking: { type: 'adaptive' } })).to.equal('thinking')
    expect(await dropped({ thinking: { type: 'enabled', budget_tokens: 1024 } })).to.equal('thinking.budget_tokens')
    expect(await dropped({ output_config: { effort: 'max' } })).to.equal('output_config.effort')
    expect(await dropped({ thinking: { type: 'disabled' } })).to.equal(null)
    expect(await dropped({ max_tokens: 32_000 })).to.equal('max_tokens')
    expect(await dropped({ top_k: 3 })).to.equal('top_k')
    expect(await dropped({ service_tier: 'standard_only' })).to.equal('service_tier')
    expect(await dropped({ service_tier: 'auto', stop_sequences: [], top_k: 0, mcp_servers: [] })).to.equal(null)
    const streamed = await api.stream({ system: [{ type: 'text', text: 'x', cache_control: { type: 'ephemeral' } }] })
    expect(streamed.headers.get('x-svc-dropped')).to.equal('cache_control')
  })
})

describe('opaque data of a provider', () => {
  const DATA = { encrypted: 'ä+/=\u0000"', deep: [1, { x: null }] }
  const THOUGHTS: readonly ModelEvent[] = [
    { type: 'reasoning', text: 'Let me' },
    { type: 'reasoning', text: ' see.' },
    { type: 'reasoning', text: '', providerData: DATA },
    { type: 'reasoning', text: '', providerData: { redacted: 'x' } },
    { type: 'text', text: 'I look.' },
    { type: 'tool_call', id: 't1', tool: 'weather', arguments: { a: 1 }, providerData: { thoughtSignature: 'sig' } },
    USAGE,
    { ...CALLS, providerData: { details: [1] } } as ModelEvent,
  ]
  const result = user([{ type: 'tool_result', tool_use_id: 't1', content: 'sunny' }])

  for (const kind of ['whole', 'streamed'] as const)
    it(`returns to it unchanged, ${kind}`, async () => {
      await using api = await serveScripted([THOUGHTS, ANSWER], { supports: ['reasoning_effort'] })
      const body = { thinking: { type: 'adaptive' }, tools: [TOOL] }
      const content = kind === 'whole' ? (await api.ask(body)).body.content : blocksOf((await api.stream(body)).data)
      expect(
        content.map(({ type }: { type: string }) => type).filter((type: string) => type !== 'redacted_thinking')
      ).to.deep.equal(['thinking', 'text', 'tool_use'])
      expect(content[0]).to.deep.include({ type: 'thinking', thinking: 'Let me see.' })
      const { status, text } = await api.ask({ ...body, messages: [user('hi'), assistant(content), result] })
      expect(status, text).to.equal(200)
      expect(api.requests[1]!.messages[1]).to.deep.equal({
        role: 'assistant',
        provider: 'odd',
        providerData: { details: [1] },
        parts: [
          { type: 'reasoning', text: 'Let me see.', providerData: DATA },
          { type: 'reasoning', text: '', providerData: { redacted: 'x' } },
          { type: 'text', text: 'I look.' },
          { type: 'tool_call', id: 't1', tool: 'weather', arguments: { a: 1 }, providerData: { thoughtSignature: 'sig' } },
        ],
      })
    })

  it('returns with the text of reasoning that is not shown', async () => {
    await using api = await serveScripted([THOUGHTS, ANSWER], { supports: ['reasoning_effort'] })
    const body = { thinking: { type: 'adaptive', display: 'omitted' }, tools: [TOOL] }
    const content = blocksOf((await api.stream(body)).data)
    expect(content[0].thinking).to.equal('')
    await api.ask({ ...body, messages: [user('hi'), assistant(content), result] })
    expect(api.requests[1]!.messages[1]!.parts[0]).to.deep.equal({ type: 'reasoning', text: 'Let me see.', providerData: DATA })
  })

  it('of another provider is left out', async () => {
    await using api = await serveApi({
      give: [
        item(Providers, 'one', scripted([THOUGHTS], { supports: ['reasoning_effort'] })),
        item(Providers, 'odd', scripted([ANSWER])),
      ],
    })
    const { body } = await api.ask({ model: 'one/m', thinking: { type: 'adaptive' }, tools: [TOOL], messages: [user('hi')] })
    const other = scripted([ANSWER])
    await using second = await serveApi({ give: [item(Providers, 'other', other)] })
    const { status } = await second.ask({
      model: 'other/m',
      tools: [TOOL],
      messages: [user('hi'), assistant(body.content), result],
    })
    expect(status).to.equal(200)
    expect(other.requests[0]!.messages[1]!.parts.map(part => part.type)).to.deep.equal(['text', 'tool_call'])
    expect(JSON.stringify(other.requests[0]!.messages)).to.not.contain('encrypted').and.not.contain('thoughtSignature')
  })

  it('that svc has not written is left out, and the header says so', async () => {
    const opaque = (value: unknown) => `svc1.${Buffer.from(JSON.stringify(value)).toString('base64url')}`
    const deep = `svc1.${Buffer.from(`{"p":"odd","d":${'['.repeat(5_000)}${']'.repeat(5_000)}}`).toString('base64url')}`
    await using api = await serveScripted([ANSWER])
    const hostile = ['', 'x', 'svc1.', 'svc1.%%%', opaque(null), opaque([]), opaque({ p: '' }), opaque({ p: 1 }), deep]
    for (const signature of [
      ...hostile,
      opaque({ p: 'odd', q: 1 }),
      opaque({ p: 'x'.repeat(300) }),
      `svc1.${'A'.repeat(5_000_000)}`,
    ]) {
      const thinking = { type: 'thinking', thinking: 'secret', signature }
      const { status, headers, text } = await api.ask({
        messages: [user('hi'), assistant([thinking, { type: 'text', text: 'x' }]), user('?')],
      })
      expect(status, text).to.equal(200)
      expect(headers.get('x-svc-dropped')).to.equal('thinking')
      expect(JSON.stringify(api.requests.at(-1)!.messages)).to.not.contain('secret')
    }
    const proto = opaque({ p: 'odd', c: JSON.parse('{"__proto__":{"polluted":1}}') })
    await api.ask({
      messages: [
        user('hi'),
        assistant([
          { type: 'redacted_thinking', data: proto },
          { type: 'text', text: 'x' },
        ]),
        user('?'),
      ],
    })
    expect(({} as { polluted?: number }).polluted).to.equal(undefined)
  })
})

describe('the stream of a model behind another protocol', () => {
  it('puts tool calls in pieces one after the other', async () => {
    const piece = (index: number, text: string): ModelEvent => ({
      type: 'tool_call_delta',
      index,
      id: `t${index}`,
      tool: 'weather',
      text,
    })
    const call = (index: number, args: object): ModelEvent =>
      ({ type: 'tool_call', id: `t${index}`, tool: 'weather', arguments: args }) as ModelEvent
    await using api = await serveScripted(
      [
        [
          { type: 'text', text: 'I look.' },
          piece(0, '{"a"'),
          piece(1, '{"b":'),
          piece(0, ':1}'),
          { type: 'text', text: 'late' },
          piece(1, '2}'),
          piece(2, ''),
          call(0, { a: 1 }),
          call(1, { b: 2 }),
          call(2, {}),
          call(3, { whole: true }),
          USAGE,
          CALLS,
        ],
      ],
      { supports: ['tool_call_deltas'] }
    )
    const { data } = await api.stream({ tools: [TOOL] })
    expect(blocksOf(data)).to.deep.equal([
      { type: 'text', text: 'I look.' },
      { type: 'tool_use', id: 't0', name: 'weather', input: { a: 1 } },
      { type: 'tool_use', id: 't1', name: 'weather', input: { b: 2 } },
      { type: 'tool_use', id: 't2', name: 'weather', input: {} },
      { type: 'text', text: 'late' },
      { type: 'tool_use', id: 't3', name: 'weather', input: { whole: true } },
    ])
    expect(data.at(-2).delta.stop_reason).to.equal('tool_use')
  })

  it('gives each tool call an id of its own', async () => {
    const call = (id: string): ModelEvent => ({ type: 'tool_call', id, tool: 'weather', arguments: {} })
    await using api = await serveScripted([[call('x'), call('x'), call(''), USAGE, CALLS]])
    for (const body of [blocksOf((await api.stream({ tools: [TOOL] })).data), (await api.ask({ tools: [TOOL] })).body.content]) {
      const ids = body.map(({ id }: { id: string }) => id)
      expect(new Set(ids).size).to.equal(3)
      expect(ids.every((id: string) => id !== '')).to.equal(true)
    }
  })

  it('keeps arguments that are not JSON', async () => {
    const call: ModelEvent = { type: 'tool_call', id: 't', tool: 'weather', arguments: {}, invalid: '{"a' }
    await using api = await serveScripted([[call, USAGE, CALLS]])
    const input = { invalid_json: '{"a' }
    expect((await api.ask({ tools: [TOOL] })).body.content[0].input).to.deep.equal(input)
    expect(blocksOf((await api.stream({ tools: [TOOL] })).data)[0].input).to.deep.equal(input)
  })

  it('ends a call that the limit of tokens cuts', async () => {
    const cut: ModelEvent = { type: 'tool_call_delta', index: 0, id: 't0', tool: 'weather', text: '{"a": "b' }
    await using api = await serveScripted([[cut, USAGE, { type: 'finish', reason: 'length' }]], {
      supports: ['tool_call_deltas'],
    })
    const { data } = await api.stream({ tools: [TOOL] })
    expect(data.map(({ type }) => type)).to.deep.equal([
      'message_start',
      'ping',
      'content_block_start',
      'content_block_delta',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ])
    expect(data.at(-2).delta.stop_reason).to.equal('max_tokens')
  })

  it('has the sources of the model', async () => {
    const citation: ModelEvent = { type: 'citation', citation: { url: 'https://x.test', title: 'X', quote: 'q' } }
    await using api = await serveScripted([[{ type: 'text', text: 'ok' }, citation, USAGE, STOP]])
    const { data } = await api.stream({})
    expect(data.find(({ delta }) => delta?.type === 'citations_delta').delta.citation).to.deep.equal({
      type: 'web_search_result_location',
      url: 'https://x.test',
      title: 'X',
      cited_text: 'q',
      encrypted_index: '',
    })
  })

  it('says a refusal as the stop reason', async () => {
    await using api = await serveScripted([[{ type: 'text', text: 'No.', refusal: true }, USAGE, STOP]])
    expect((await api.stream({})).data.at(-2).delta.stop_reason).to.equal('refusal')
    expect((await api.ask({})).body).to.deep.include({ stop_reason: 'refusal', content: [{ type: 'text', text: 'No.' }] })
  })

  it('counts cached tokens apart', async () => {
    const usage: ModelEvent = { type: 'usage', usage: { input: 10, cached: 6, cacheWrite: 1, output: 5, reasoning: 2 } }
    await using api = await serveScripted([[{ type: 'text', text: 'ok' }, usage, STOP]])
    const { body } = await api.ask({})
    expect(body.usage).to.deep.equal({
      input_tokens: 3,
      cache_creation_input_tokens: 1,
      cache_read_input_tokens: 6,
      output_tokens: 5,
      output_tokens_details: { thinking_tokens: 2 },
    })
  })
})

describe('a server of chat completions behind svc', () => {
  it('answers in the Messages API, with text and tool calls', async () => {
    const calls = (piece: object) => chunk({ tool_calls: [{ index: 0, ...piece }] })
    await using api = await serveBefore('openai', (_received, reply) =>
      reply.end(
        chunk({ role: 'assistant', content: 'I ' }) +
          chunk({ content: 'look.' }) +
          calls({ id: 'call_1', type: 'function', function: { name: 'weather', arguments: '' } }) +
          calls({ function: { arguments: '{"city"' } }) +
          calls({ function: { arguments: ':"Ulm"}' } }) +
          lastChunk('tool_calls')
      )
    )
    const { status, data, body } = await api.stream({ model: 'up/m', tools: [TOOL], messages: [user('weather?')] })
    expect(status, JSON.stringify(body)).to.equal(200)
    expect(blocksOf(data)).to.deep.equal([
      { type: 'text', text: 'I look.' },
      { type: 'tool_use', id: 'call_1', name: 'weather', input: { city: 'Ulm' } },
    ])
    expect(data.at(-2)).to.deep.include({ delta: { stop_reason: 'tool_use', stop_sequence: null } })
    expect(data.at(-2).usage).to.include({ input_tokens: 11, output_tokens: 7 })
    const [sent] = api.upstream.received.filter(({ method }) => method === 'POST')
    expect(sent!.body).to.deep.include({ model: 'm', messages: [{ role: 'user', content: 'weather?' }] })
  })

  it('fails in the middle: the stream ends with an error event', async () => {
    await using api = await serveBefore('openai', async (_received, reply) => {
      await reply.write(chunk({ role: 'assistant', content: 'I ' }))
      reply.cut()
    })
    const { status, events, data } = await api.stream({ model: 'up/m', messages: [user('hi')] })
    expect(status).to.equal(200)
    expect(events.at(-1)!.event).to.equal('error')
    expect(data.at(-1)).to.deep.include({ type: 'error' })
    expect(data.at(-1).error.type).to.equal('api_error')
    expect(data.at(-1).request_id).to.be.a('string')
  })
})
