import type { ModelEvent, ModelFeature, ModelRequest, NativeRequest } from '@svc/core/contracts'
import { type Answerer, ask, failureOf, openUpstream, testContext } from '@svc/testing'
import { expect } from 'chai'
import { bodyOf } from '../src/request.ts'
import { offered, openAnthropic, to, user } from './support/anthropic.ts'
import { block, ended, frame, KEY, openMessagesApi, started, text } from './support/messages-api.ts'
import { message, words } from './support/whole.ts'

type Body = Readonly<Record<string, unknown>>
const body = (more: Partial<ModelRequest>, model = 'claude-sonnet-4-6') =>
  bodyOf({ model, messages: [user('hi')], ...more }) as Body

describe('the further fields of a request to the Messages API', () => {
  it('have the names of the API', () => {
    expect(body({ stop: ['a'], topP: 0.9, topK: 5 })).to.deep.include({ stop_sequences: ['a'], top_p: 0.9, top_k: 5 })
    expect(body({ stop: [] })).not.to.have.property('stop_sequences')
  })

  it('say that tools are called one at a time, where tools are called', () => {
    const choice = (toolChoice?: NonNullable<ModelRequest['toolChoice']>) =>
      body({ tools: offered, parallelToolCalls: false, ...(toolChoice ? { toolChoice } : {}) }).tool_choice
    expect(choice()).to.deep.equal({ type: 'auto', disable_parallel_tool_use: true })
    expect(choice({ tool: 'weather' })).to.deep.equal({ type: 'tool', name: 'weather', disable_parallel_tool_use: true })
    expect(choice('none')).to.deep.equal({ type: 'none' })
  })

  it('close the schema of a strict tool', () => {
    const parameters = { type: 'object', properties: { a: { type: 'integer', minimum: 3 } } }
    const [tool] = body({ tools: [{ name: 't', description: 'd', parameters, strict: true }] }).tools as [Body]
    expect(tool).to.deep.equal({
      name: 't',
      description: 'd',
      strict: true,
      input_schema: {
        type: 'object',
        properties: { a: { type: 'integer', description: 'minimum: 3' } },
        additionalProperties: false,
      },
    })
  })

  it('carry images at an address, and documents with their names', () => {
    const messages: ModelRequest['messages'] = [
      {
        role: 'user',
        parts: [
          { type: 'image_url', url: 'https://a.example/b.png' },
          { type: 'file', data: 'JVBE', mimeType: 'application/pdf', name: 'a.pdf' },
          { type: 'file', data: Buffer.from('Grüße').toString('base64'), mimeType: 'text/markdown' },
        ],
      },
    ]
    expect((body({ messages }).messages as [{ content: unknown }])[0].content).to.deep.equal([
      { type: 'image', source: { type: 'url', url: 'https://a.example/b.png' } },
      { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBE' }, title: 'a.pdf' },
      { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'Grüße' } },
    ])
  })

  it('mark for the cache what the caller marks, and then nothing else', () => {
    const hint = { cacheHint: { ttl: '1h' } } as const
    const request: ModelRequest = {
      model: 'm',
      tools: [{ ...offered[0]!, cacheHint: {} }, ...offered],
      messages: [
        { role: 'system', parts: [{ type: 'text', text: 'one', ...hint }] },
        { role: 'system', parts: [{ type: 'text', text: 'two' }] },
        {
          role: 'user',
          parts: [
            { type: 'text', text: 'a', ...hint },
            { type: 'text', text: 'b' },
          ],
        },
        { role: 'assistant', parts: [{ type: 'tool_call', id: 'x', tool: 'weather', arguments: {} }] },
        { role: 'tool', parts: [{ type: 'tool_result', id: 'x', tool: 'weather', content: [], isError: false, ...hint }] },
      ],
    }
    const made = bodyOf(request, { caches: true }) as { system: object[]; tools: object[]; messages: { content: object[] }[] }
    const mark = { type: 'ephemeral', ttl: '1h' }
    expect(made.system).to.deep.equal([
      { type: 'text', text: 'one', cache_control: mark },
      { type: 'text', text: 'two' },
    ])
    expect(made.tools.map(tool => (tool as Body).cache_control)).to.deep.equal([{ type: 'ephemeral' }, undefined])
    const marks = made.messages.map(({ content }) => content.map(one => (one as Body).cache_control))
    expect(marks).to.deep.equal([[mark, undefined], [undefined], [mark]])
  })
})

describe('reasoning of the Messages API', () => {
  const thinking = (more: Partial<ModelRequest>, model: string) => {
    const { thinking: how, output_config, temperature } = body(more, model)
    return { how, effort: (output_config as Body | undefined)?.effort, temperature }
  }
  const adaptive = { type: 'adaptive', display: 'summarized' }

  for (const [model, more, how, effort] of [
    ['claude-opus-4-6', { reasoningEffort: 'medium' }, adaptive, 'medium'],
    ['claude-opus-4-6', { reasoningEffort: 'xhigh' }, adaptive, 'high'],
    ['claude-opus-4-6', { reasoningEffort: 'minimal' }, adaptive, 'low'],
    ['claude-opus-4-6', { reasoningEffort: 'none' }, { type: 'disabled' }, undefined],
    ['claude-opus-4-6', { reasoningTokens: 3000 }, { type: 'enabled', budget_tokens: 3000 }, 'low'],
    ['claude-opus-5', { reasoningEffort: 'xhigh' }, adaptive, 'xhigh'],
    ['claude-opus-5-5', { reasoningEffort: 'none' }, undefined, 'low'],
    ['claude-opus-5-5', { reasoningTokens: 30_000 }, adaptive, 'xhigh'],
    ['claude-sonnet-4-5', { reasoningEffort: 'high', maxTokens: 50_000 }, { type: 'enabled', budget_tokens: 24_000 }, undefined],
    ['claude-sonnet-4-5', { reasoningEffort: 'high' }, { type: 'enabled', budget_tokens: 7168 }, undefined],
    ['claude-sonnet-4-5', { reasoningEffort: 'low', maxTokens: 5 }, { type: 'enabled', budget_tokens: 1024 }, undefined],
    ['claude-sonnet-4-5', { reasoningEffort: 'none' }, undefined, undefined],
    ['claude-sonnet-4-5', { reasoningTokens: 0 }, undefined, undefined],
    [
      'claude-opus-4-5-20251101',
      { reasoningEffort: 'high', maxTokens: 50_000 },
      { type: 'enabled', budget_tokens: 24_000 },
      'high',
    ],
    ['someone-else', { reasoningEffort: 'minimal' }, { type: 'enabled', budget_tokens: 1024 }, undefined],
    ['claude-opus-4-6', {}, undefined, undefined],
  ] as const)
    it(`of ${model} with ${JSON.stringify(more)} is ${JSON.stringify(how)} with the effort ${effort}`, () => {
      const made = thinking(more, model)
      expect([made.how, made.effort]).to.deep.equal([how, effort])
    })

  it('excludes a temperature', () => {
    expect(thinking({ reasoningEffort: 'low', temperature: 0.5 }, 'claude-opus-4-6').temperature).to.equal(undefined)
    expect(thinking({ reasoningEffort: 'none', temperature: 0.5 }, 'claude-opus-4-6').temperature).to.equal(0.5)
  })
})

describe('the features of models of the Messages API', () => {
  const supportsOf = async (model: object | string) => {
    await using upstream = await openMessagesApi()
    await using opened = await openAnthropic(upstream.url, typeof model === 'string' ? { models: [model] } : {})
    if (typeof model !== 'string') upstream.answer((_, reply) => reply.json(200, { data: [{ id: 'claude-new', ...model }] }))
    const [info] = (await opened.provider.models(testContext())).models
    return info?.features?.supports ?? opened.provider.features.supports
  }

  it('follow from the name where the list does not tell', async () => {
    const has = async (model: string, ...features: readonly ModelFeature[]) => {
      const supports = await supportsOf(model)
      return features.map(feature => supports?.includes(feature))
    }
    expect(await has('claude-sonnet-4-5', 'top_k', 'strict_tools')).to.deep.equal([true, true])
    expect(await has('claude-opus-4-8', 'top_k', 'reasoning_effort')).to.deep.equal([false, true])
    expect(await has('claude-opus-5-5', 'tool_choice', 'reasoning_effort')).to.deep.equal([false, true])
    expect(await has('claude-3-haiku-20240307', 'reasoning_effort', 'response_schema', 'top_k')).to.deep.equal([
      false,
      false,
      true,
    ])
  })

  it('are those of the list where it tells', async () => {
    const off = { supported: false }
    const capabilities = {
      structured_outputs: off,
      pdf_input: off,
      effort: off,
      thinking: { types: { adaptive: off, enabled: off } },
    }
    const supports = await supportsOf({ capabilities })
    for (const feature of ['response_schema', 'strict_tools', 'files', 'reasoning_effort'])
      expect(supports).not.to.include(feature)
    expect(await supportsOf({ capabilities: 'none' })).to.include('reasoning_effort')
  })
})

describe('an answer of the Messages API with more than text', () => {
  const eventsOf = async (stream: string, more: Partial<ModelRequest> = {}): Promise<ModelEvent[]> => {
    await using upstream = await openMessagesApi({ own: reply => reply.end(stream) })
    await using opened = await openAnthropic(upstream.url)
    return await ask(opened.provider, to('own', more))
  }

  it('tells its sources', async () => {
    const citations = [
      { type: 'web_search_result_location', url: 'https://a.example', title: 'A', cited_text: 'so', encrypted_index: 'x' },
      { type: 'char_location', document_title: 'Doc', cited_text: 'it is', start_char_index: 3 },
      null,
      { type: 'later', number: 5 },
    ]
    const pieces = [
      ...citations.map(citation => ({ type: 'citations_delta', citation })),
      { type: 'text_delta', text: 'So it is' },
    ]
    const cited = (events: readonly ModelEvent[]) => events.flatMap(event => (event.type === 'citation' ? event.citation : []))
    const sources = [
      { url: 'https://a.example', title: 'A', quote: 'so' },
      { title: 'Doc', quote: 'it is' },
    ]
    expect(cited(await eventsOf(started() + block(0, { type: 'text', text: '' }, ...pieces) + ended('end_turn')))).to.deep.equal(
      sources
    )
    await using upstream = await openMessagesApi({
      own: reply => reply.json(200, message([{ ...words('So it is'), citations }])),
    })
    await using opened = await openAnthropic(upstream.url)
    expect(cited(await ask(opened.provider, to('own', { gathered: true })))).to.deep.equal(sources)
  })

  for (const [what, stream] of [
    ['a stop sequence that is no text', started() + text(0, 'a') + ended('stop_sequence', { stop_sequence: 7 })],
    ['citations that are no list', started() + block(0, { type: 'text', text: 'a', citations: 'x' }) + ended('end_turn')],
    [
      'a delta without its block',
      started() +
        frame('content_block_delta', { index: 9, delta: { type: 'input_json_delta', partial_json: '{' } }) +
        text(0, 'a') +
        ended('end_turn'),
    ],
    ['frames that are no objects', `data: [1]\n\ndata: "x"\n\ndata: null\n\n${started()}${text(0, 'a')}${ended('end_turn')}`],
  ] as const)
    it(`survives ${what}`, async () => {
      const events = await eventsOf(stream, { toolCallDeltas: true })
      expect(events.flatMap(event => (event.type === 'text' ? event.text : [])).join('')).to.equal('a')
      expect(events.at(-1)).to.deep.equal({ type: 'finish', reason: 'stop' })
    })
})

describe('an original request to the Messages API', () => {
  const thought = { type: 'thinking', thinking: 'Hm…\u2028', signature: 'EqQBCkYIB+/=' }
  const original: NativeRequest = {
    protocol: 'anthropic',
    body: {
      model: 'theirs',
      max_tokens: 100,
      stream: false,
      system: [
        { type: 'text', text: 'x-anthropic-billing-header: cc' },
        { type: 'text', text: 'Be brief', cache_control: { type: 'ephemeral' } },
      ],
      messages: [
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: [thought, { type: 'redacted_thinking', data: 'AA==' }, { type: 'text', text: 'yes' }] },
        { role: 'user', content: 'more' },
      ],
      context_management: { edits: [{ type: 'clear_tool_uses_20250919' }] },
      thinking: { type: 'adaptive' },
      later_field: { deep: [1, null] },
    },
    headers: {
      'anthropic-beta': 'a-1, b-2',
      'x-api-key': 'theirs',
      authorization: 'Bearer theirs',
      'anthropic-version': '1999-01-01',
      host: 'evil.example',
    },
  }
  const sent = async (more: Partial<ModelRequest> = {}, entry: object = {}, by?: Answerer) => {
    await using upstream = await (by
      ? openUpstream(by)
      : openUpstream((received, reply) =>
          (received.body as Body).stream
            ? reply.end(started() + text(0, 'Hi') + ended('end_turn'))
            : reply.json(200, message([words('Hi')]))
        ))
    await using opened = await openAnthropic(upstream.url, entry)
    const work = ask(opened.provider, to('ours', { native: original, temperature: 0.3, ...more }))
    const error = by ? await failureOf(work) : undefined
    const events = by ? [] : await work
    return { received: upstream.received, error, events }
  }

  it('reaches the server as it is, but for the model and the stream', async () => {
    const [streamed] = (await sent()).received
    expect(streamed!.body).to.deep.equal({ ...original.body, model: 'ours', stream: true })
    const [whole] = (await sent({ gathered: true })).received
    expect(whole!.body).to.deep.equal({ ...original.body, model: 'ours', stream: false })
  })

  it('brings its beta features, beside those of the entry, and no other header', async () => {
    const headers: Body = (await sent({}, { headers: { 'Anthropic-Beta': 'b-2,c-3' } })).received[0]!.headers
    expect(headers['anthropic-beta']).to.equal('b-2,c-3,a-1')
    expect(headers['anthropic-version']).to.equal('2023-06-01')
    expect(headers['x-api-key']).to.equal(KEY)
    expect(headers).not.to.have.property('authorization')
    expect(headers.host).not.to.include('evil')
  })

  it('is not repeated without a temperature, and fails as any call', async () => {
    const refuse: Answerer = (_, reply) =>
      reply.json(400, {
        type: 'error',
        error: { type: 'invalid_request_error', message: '`temperature` is deprecated for this model.' },
      })
    const { received, error } = await sent({}, {}, refuse)
    expect(received).to.have.lengthOf(1)
    expect(error?.details).to.include({ kind: 'bad_request' })
  })

  it('fails without an original event where the stream has an error', async () => {
    const broken: Answerer = (_, reply) =>
      reply.end(started() + frame('error', { error: { type: 'overloaded_error', message: 'Overloaded' } }))
    expect((await sent({}, {}, broken)).error?.details).to.include({ kind: 'overloaded' })
  })

  it('is read as any answer beside its original events', async () => {
    const { events } = await sent()
    expect(events.filter(event => event.type !== 'native').map(({ type }) => type)).to.deep.equal(['text', 'usage', 'finish'])
    const order = events.map(({ type }) => type)
    expect(order.indexOf('text')).to.equal(order.indexOf('native', order.indexOf('text') - 1) + 1)
  })

  const counted = async (by?: Answerer) => {
    await using upstream = await openMessagesApi()
    if (by) upstream.answer(by)
    await using opened = await openAnthropic(upstream.url)
    const request = to('ours', { native: original })
    const count = await opened.provider.countTokens(request, testContext())
    return { count, estimate: await opened.provider.countTokens(to('ours'), testContext()), received: upstream.received }
  }

  it('is counted by the server', async () => {
    const { count, received } = await counted()
    expect(count).to.equal(4711)
    expect(received).to.have.lengthOf(1)
    const { max_tokens: _, stream: _stream, ...rest } = original.body
    expect(received[0]!.body).to.deep.equal({ ...rest, model: 'ours' })
    expect(received[0]!.headers['anthropic-beta']).to.equal('a-1,b-2')
  })

  for (const [what, by] of [
    ['does not have the route', (_, reply) => reply.json(404, {})],
    ['is overloaded', (_, reply) => reply.json(529, {})],
    ['answers something else', (_, reply) => reply.json(200, { input_tokens: '5' })],
    ['breaks', (_, reply) => reply.cut()],
  ] as readonly (readonly [string, Answerer])[])
    it(`is estimated where the server ${what}`, async () => {
      const { count, estimate } = await counted(by)
      expect(count).to.equal(estimate)
    })

  it('is not counted where the server refuses it', async () => {
    const refuse: Answerer = (_, reply) => reply.json(400, { error: { type: 'invalid_request_error', message: 'no' } })
    expect((await failureOf(counted(refuse))).details).to.include({ kind: 'bad_request' })
  })
})
