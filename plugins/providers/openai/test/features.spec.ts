import type { ConfigTree } from '@svc/core'
import type { EmbedRequest, ModelEvent, ModelRequest } from '@svc/core/contracts'
import { type Answerer, testContext } from '@svc/testing'
import { expect } from 'chai'
import { asks, offered, user } from './support/requests.ts'
import { ask, failing, openRig } from './support/rig.ts'
import { type Asked, completion } from './support/whole.ts'
import { call, chunk, DONE, finish, logprobs, ofChoice, says } from './support/wire.ts'

async function bodyOf(request: Partial<ModelRequest>, entry: ConfigTree = {}, model = 'plain'): Promise<Asked> {
  await using rig = await openRig(entry, (_, reply) => reply.end(says('a') + finish('stop') + DONE))
  await ask(rig.provider, asks(model, request))
  return rig.upstream.received.at(-1)?.body as Asked
}
async function eventsOf(stream: string, request: Partial<ModelRequest> = {}, entry: ConfigTree = {}): Promise<ModelEvent[]> {
  await using rig = await openRig(entry, (_, reply) => reply.end(stream))
  return await ask(rig.provider, asks('any', request))
}
const textOf = (events: readonly ModelEvent[]) => events.map(event => (event.type === 'text' ? event.text : '')).join('')

describe('the further fields of a request to chat completions', () => {
  it('have the names of the protocol', async () => {
    const request: Partial<ModelRequest> = {
      stop: ['a', 'b'],
      topP: 0.9,
      topK: 5,
      seed: 7,
      n: 2,
      frequencyPenalty: -1,
      presencePenalty: 1,
      logitBias: { 50256: -100 },
      logprobs: 3,
      reasoningEffort: 'low',
    }
    await using rig = await openRig({}, (_, reply) => reply.end(says('a') + ofChoice(1, { content: 'b' }) + DONE))
    await ask(rig.provider, asks('plain', request))
    expect(rig.upstream.received.at(-1)?.body).to.deep.include({
      stop: ['a', 'b'],
      top_p: 0.9,
      top_k: 5,
      seed: 7,
      n: 2,
      frequency_penalty: -1,
      presence_penalty: 1,
      logit_bias: { 50256: -100 },
      logprobs: true,
      top_logprobs: 3,
      reasoning_effort: 'low',
    })
  })

  it('have other names on some servers', async () => {
    expect(await bodyOf({ seed: 7 }, { preset: 'mistral' }))
      .to.include({ random_seed: 7 })
      .and.not.have.property('seed')
    expect(await bodyOf({ reasoningTokens: 2000 }, { preset: 'openrouter' })).to.deep.include({ reasoning: { max_tokens: 2000 } })
    expect(await bodyOf({ reasoningTokens: 2000 })).to.include({ reasoning_effort: 'low' })
    expect(await bodyOf({ reasoningEffort: 'max' })).to.include({ reasoning_effort: 'xhigh' })
    expect(await bodyOf({ maxTokens: 9 }, {}, 'gpt-5-mini')).to.include({ max_completion_tokens: 9 })
  })

  it('say whether tools are strict, and called one at a time', async () => {
    const tools = [{ ...offered('a')[0]!, strict: true }, { ...offered('b')[0]!, strict: false }, ...offered('c')]
    const body = await bodyOf({ tools, parallelToolCalls: false })
    const strict = (body.tools as { function: { strict?: boolean } }[]).map(tool => tool.function.strict)
    expect([strict, body.parallel_tool_calls]).to.deep.equal([[true, false, undefined], false])
    expect(await bodyOf({ parallelToolCalls: false })).not.to.have.property('parallel_tool_calls')
  })

  it('ask for JSON with a schema, its name and whether it is enforced, or without a schema', async () => {
    const responseSchema = { type: 'object', properties: {}, required: [], additionalProperties: false }
    const body = await bodyOf({ responseSchema, responseSchemaName: 'city_list', responseSchemaStrict: false })
    expect(body.response_format).to.deep.equal({
      type: 'json_schema',
      json_schema: { name: 'city_list', schema: responseSchema, strict: false },
    })
    expect((await bodyOf({ responseSchema, responseSchemaName: 'no name!' })).response_format).to.have.nested.property(
      'json_schema.name',
      'reply'
    )
    expect((await bodyOf({ responseFormat: 'json' })).response_format).to.deep.equal({ type: 'json_object' })
  })

  it('carry images at an address, files and sounds, and mark what is to be cached where that is possible', async () => {
    const messages: ModelRequest['messages'] = [
      {
        role: 'user',
        parts: [
          { type: 'text', text: 'Look', cacheHint: { ttl: '1h' } },
          { type: 'image_url', url: 'https://a.example/b.png' },
          { type: 'file', data: 'aGk=', mimeType: 'application/pdf' },
          { type: 'audio', data: 'aGk=', mimeType: 'audio/mpeg' },
          { type: 'audio', data: 'aGk=', mimeType: 'audio/x-wav; rate=1' },
        ],
      },
    ]
    const content = [
      { type: 'text', text: 'Look' },
      { type: 'image_url', image_url: { url: 'https://a.example/b.png' } },
      { type: 'file', file: { filename: 'file.pdf', file_data: 'data:application/pdf;base64,aGk=' } },
      { type: 'input_audio', input_audio: { data: 'aGk=', format: 'mp3' } },
      { type: 'input_audio', input_audio: { data: 'aGk=', format: 'wav' } },
    ]
    expect((await bodyOf({ messages })).messages[0]?.content).to.deep.equal(content)
    const [text, ...rest] = content
    expect((await bodyOf({ messages }, { preset: 'openrouter' })).messages[0]?.content).to.deep.equal([
      { ...text, cache_control: { type: 'ephemeral', ttl: '1h' } },
      ...rest,
    ])
  })

  it('give a refusal back in its own field, where the server has one', async () => {
    const messages: ModelRequest['messages'] = [
      user('hi'),
      { role: 'assistant', parts: [{ type: 'text', text: 'I cannot', refusal: true }] },
      user('why?'),
    ]
    expect((await bodyOf({ messages }, { preset: 'openai' })).messages[1]).to.deep.equal({
      role: 'assistant',
      content: null,
      refusal: 'I cannot',
    })
    expect((await bodyOf({ messages })).messages[1]).to.deep.equal({ role: 'assistant', content: 'I cannot' })
  })
})

describe('an answer with more than text', () => {
  it('tells refusals, citations, the stop text and tokens that were written to a cache', async () => {
    const citation = { url: 'https://a.example', title: 'A', start_index: 1, end_index: 4 }
    const stream =
      chunk({ refusal: 'I cannot' }) +
      chunk({
        annotations: [
          { type: 'url_citation', url_citation: citation },
          { type: 'url_citation', ...citation },
          { type: 'other' },
          null,
        ],
      }) +
      chunk({}, { choices: [{ index: 0, delta: {}, finish_reason: 'stop', stop_reason: 'END' }] }) +
      chunk(
        {},
        {
          choices: [],
          usage: { prompt_tokens: 9, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 99 } },
        }
      ) +
      DONE
    const source = { url: 'https://a.example', title: 'A', start: 1, end: 4 }
    expect(await eventsOf(stream, { stop: ['END'] })).to.deep.equal([
      { type: 'text', text: 'I cannot', refusal: true },
      { type: 'citation', citation: source },
      { type: 'citation', citation: source },
      { type: 'usage', usage: { input: 9, output: 2, cached: 4, cacheWrite: 5 } },
      { type: 'finish', reason: 'content_filter' },
    ])
    const stopped = chunk({}, { choices: [{ index: 0, delta: { content: 'a' }, finish_reason: 'stop', stop_reason: 'END' }] })
    expect((await eventsOf(stopped + DONE, { stop: ['END'] })).at(-1)).to.deep.equal({
      type: 'finish',
      reason: 'stop',
      stopText: 'END',
    })
    expect((await eventsOf(stopped + DONE)).at(-1)).to.deep.equal({ type: 'finish', reason: 'stop' })
  })

  it('loses no log probability where text came before without', async () => {
    const stream = says('a') + says('b') + says('c') + logprobs('d') + says('e') + finish('stop') + DONE
    const events = await eventsOf(stream, { logprobs: 2 })
    expect(textOf(events)).to.equal('abcde')
    expect(events.flatMap(event => (event.type === 'logprobs' ? event.tokens.map(({ token }) => token) : []))).to.deep.equal([
      'd',
    ])
  })

  it('keeps the tool calls of several answers apart', async () => {
    const calls = (index: number, name: string) =>
      ofChoice(index, { tool_calls: [{ index: 0, id: `call_${index}`, function: { name, arguments: '{' } }] })
    const rest = (index: number) => ofChoice(index, { tool_calls: [{ index: 0, function: { arguments: '}' } }] }, 'tool_calls')
    const events = await eventsOf(calls(0, 'a') + calls(1, 'b') + rest(1) + rest(0) + DONE, { n: 2, toolCallDeltas: true })
    const shown = events.flatMap(event => ('tool' in event ? [`${event.choice ?? 0}:${event.type}:${event.tool}`] : []))
    expect(shown).to.deep.equal([
      '0:tool_call_delta:a',
      '1:tool_call_delta:b',
      '1:tool_call_delta:b',
      '0:tool_call_delta:a',
      '1:tool_call:b',
      '0:tool_call:a',
    ])
  })

  it('fails where the server gives fewer answers than n', async () => {
    const error = await failing(eventsOf(says('a') + finish('stop') + DONE, { n: 2 }))
    expect(error.details).to.include({ kind: 'bad_request' })
    expect(error.message).to.include('fewer answers')
  })

  for (const [what, stream] of [
    ['a choice beyond n', ofChoice(7, { content: 'a' }) + DONE],
    ['a choice that is no object', chunk({}, { choices: ['a', 5] }) + DONE],
    [
      'a log probability without a token',
      chunk({}, { choices: [{ index: 0, delta: {}, logprobs: { content: [{ logprob: 1 }] } }] }) + DONE,
    ],
    ['a call that is no object', chunk({ tool_calls: ['x'] }) + DONE],
  ] as const)
    it(`takes ${what} for a broken answer`, async () => {
      expect((await failing(eventsOf(stream, { n: 2, logprobs: 1 }))).details).to.include({ kind: 'network' })
    })

  for (const [what, stream] of [
    ['choices that are no list', chunk({}, { choices: { a: 1 } })],
    ['log probabilities of another form', chunk({}, { choices: [{ index: 0, delta: {}, logprobs: [1] }] })],
    ['annotations that are no list', chunk({ annotations: 'x' })],
    ['an index of a call that is text', call('0' as never, { id: 'a', name: 'b', arguments: '{}' })],
    ['a finish reason that is no text', chunk({}, { choices: [{ index: 0, delta: {}, finish_reason: 7 }] })],
    [
      'huge values',
      chunk({}, { choices: [], usage: { prompt_tokens: 1e300, completion_tokens: -5, prompt_tokens_details: 'x' } }),
    ],
  ] as const)
    it(`survives ${what}`, async () => {
      const events = await eventsOf(says('a') + stream + finish('stop') + DONE)
      expect(textOf(events)).to.equal('a')
      expect(events.at(-1)?.type).to.equal('finish')
    })

  it('has a log probability that JSON can write, also where the server sends none', async () => {
    const content = [
      { token: 'a', logprob: null },
      { token: 'b', logprob: 5, bytes: [1, 999], top_logprobs: [null, { token: 'c' }] },
    ]
    const events = await eventsOf(
      chunk({}, { choices: [{ index: 0, delta: { content: 'ab' }, logprobs: { content } }] }) + finish('stop') + DONE
    )
    expect(events.find(event => event.type === 'logprobs')).to.deep.equal({
      type: 'logprobs',
      tokens: [
        { token: 'a', logprob: -9999 },
        { token: 'b', logprob: 0, top: [{ token: 'c', logprob: -9999 }] },
      ],
    })
  })
})

describe('an original request to chat completions', () => {
  const body = {
    model: 'their-name',
    messages: [{ role: 'developer', content: 'Be brief' }],
    stream: false,
    stream_options: { include_obfuscation: false },
    metadata: { a: '1' },
    __proto__: null,
  }
  const native = {
    protocol: 'openai-chat' as const,
    body: JSON.parse(JSON.stringify(body)) as Record<string, never>,
    headers: {
      'openai-beta': 'x=1',
      authorization: 'Bearer theirs',
      'openai-organization': 'org-theirs',
      host: 'evil.example',
      'content-length': '1',
      'x-title': 'a\r\nx: y',
    },
  }
  const sent = async (request: Partial<ModelRequest>, entry: ConfigTree) => {
    await using rig = await openRig(entry, (received, reply) =>
      (received.body as Asked).stream
        ? reply.end(says('a') + finish('stop') + DONE)
        : reply.json(200, completion({ content: 'a' }))
    )
    await ask(rig.provider, asks('ours', { native, temperature: 0.1, ...request }))
    return rig.upstream.received[0]!
  }

  it('is sent as it is, with the model and the stream of the call', async () => {
    const { stream_options: _, ...rest } = body
    const { body: streamed } = await sent({}, { preset: 'openai' })
    expect(streamed).to.deep.equal({
      ...rest,
      model: 'ours',
      stream: true,
      stream_options: { include_obfuscation: false, include_usage: true },
    })
    expect((await sent({ gathered: true }, { preset: 'openai' })).body).to.deep.equal({ ...rest, model: 'ours', stream: false })
  })

  it('passes no header on that could choose an account, a server or a connection', async () => {
    const { headers } = await sent({}, { preset: 'openai' })
    expect(headers['openai-beta']).to.equal('x=1')
    expect(headers).not.to.have.any.keys('openai-organization', 'x-title')
    expect(headers.authorization).not.to.include('theirs')
    expect(headers.host).not.to.include('evil')
  })

  it('is not sent to a server with other fields, or in another protocol', async () => {
    expect((await sent({}, { preset: 'mistral' })).body).not.to.have.property('metadata')
    const other = await sent({ native: { ...native, protocol: 'anthropic' } }, { preset: 'openai' })
    expect(other.body).not.to.have.property('metadata')
  })

  it('gives each chunk of its stream as the server sent it', async () => {
    const texts = ['now', ' a', ' "b"', '\n\\', ' é👩‍👧', '', ' c']
    const wires = texts.map((content, at) => ({
      id: 'chatcmpl-1',
      system_fingerprint: 'fp',
      choices: [
        { index: 0, delta: at === 0 ? { role: 'assistant', content } : { content }, logprobs: null, finish_reason: null },
      ],
      x_more: { of: ['the server'] },
    }))
    const frames = wires.map(wire => `data: ${JSON.stringify(wire)}\n\n`).join('')
    const events = await eventsOf(frames + finish('stop') + DONE, { native }, { preset: 'openai' })
    const chunks = events.flatMap(event => (event.type === 'native' ? [JSON.stringify(event.data)] : []))
    expect(chunks.slice(0, texts.length)).to.deep.equal(wires.map(wire => JSON.stringify(wire)))
    expect(textOf(events)).to.equal(texts.join(''))
  })
})

describe('embeddings of an OpenAI server', () => {
  const request: EmbedRequest = { model: 'text-embedding-3', input: ['a', 'bb'] }
  const embed = async (by: Answerer, more: Partial<EmbedRequest> = {}) => {
    await using rig = await openRig({}, by)
    return await rig.provider.embed!({ ...request, ...more }, testContext())
  }
  const answers =
    (data: unknown, more: object = {}): Answerer =>
    (_, reply) =>
      reply.json(200, { data, ...more })

  it('take token ids too', async () => {
    await using rig = await openRig({})
    await rig.provider.embed!({ ...request, input: [[1, 2], [3]] }, testContext())
    expect(rig.upstream.received.at(-1)?.body).to.deep.equal({ model: 'text-embedding-3', input: [[1, 2], [3]] })
  })

  for (const [what, data] of [
    ['fewer vectors', [{ embedding: [1] }]],
    ['no list', { embedding: [1] }],
    ['vectors of different lengths', [{ embedding: [1] }, { embedding: [1, 2] }]],
    [
      'the same place twice',
      [
        { index: 0, embedding: [1] },
        { index: 0, embedding: [2] },
      ],
    ],
    [
      'a place beyond the input',
      [
        { index: 5, embedding: [1] },
        { index: 0, embedding: [2] },
      ],
    ],
    ['something else than numbers', [{ embedding: ['1'] }, { embedding: [null] }]],
    ['half a number', [{ embedding: 'AAA=' }, { embedding: 'AAA=' }]],
    ['numbers that are none', [{ embedding: 'AADAfw==' }, { embedding: 'AADAfw==' }]],
    ['empty vectors', [{ embedding: [] }, { embedding: [] }]],
    ['nothing', [null, null]],
  ] as const)
    it(`fail for ${what}`, async () => {
      expect((await failing(embed(answers(data)))).details).to.include({ kind: 'network' })
    })

  it('fail where the server ignores the dimensions', async () => {
    const error = await failing(embed(answers([{ embedding: [1, 2] }, { embedding: [2, 3] }]), { dimensions: 1 }))
    expect(error.details).to.include({ kind: 'bad_request', requestOnly: true })
  })

  it('fail as a chat does', async () => {
    const limited: Answerer = (_, reply) => reply.json(429, { error: { message: 'slow down' } }, { 'retry-after': '2' })
    expect((await failing(embed(limited))).details).to.include({ kind: 'rate_limited', retryAfterMs: 2000 })
    expect((await failing(embed((_, reply) => reply.cut()))).details).to.include({ kind: 'network' })
  })

  it('can be larger than an answer of a chat', async () => {
    const vector = Array.from({ length: 3000 }, (_, at) => at / 3)
    const input = Array.from({ length: 300 }, (_, at) => `${at}`)
    const { vectors, usage } = await embed(
      answers(
        input.map(() => ({ embedding: vector })),
        { usage: { prompt_tokens: 'many' } }
      ),
      { input }
    )
    expect([vectors.length, vectors[299]?.length, usage]).to.deep.equal([300, 3000, { input: 0, output: 0 }])
  })
})
