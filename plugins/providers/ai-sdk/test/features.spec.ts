import type { EmbedRequest, ModelRequest } from '@svc/core/contracts'
import { expect } from 'chai'
import { DIALECTS, V2, V2_RESPONSES, V3, V3_RESPONSES, V4, V4_ANTHROPIC, V4_RESPONSES } from './support/dialects.ts'
import { openScripted } from './support/modules.ts'
import { ask, behaving, type Dialect, endlessContext, failureOf, openRig, says, USAGE, WEATHER } from './support/rig.ts'

/** What the upstream is sent. */
async function sent(dialect: Dialect, more: Partial<ModelRequest>, model = 'plain', entry: object = {}) {
  await using rig = await openRig(dialect, behaving(dialect.wire), entry)
  await ask(rig.provider, says(model, more))
  // oxlint-disable-next-line typescript/no-explicit-any -- the body of a wire, read freely
  return rig.upstream.received[0]?.body as any
}
const TOKENS = ['logprobs', 'logit_bias', 'cache_hints'] as const
const finish = { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage: { inputTokens: {}, outputTokens: {} } }

describe('the further fields of a request through the AI SDK', () => {
  for (const dialect of [V4, V3, V2])
    it(`have the names of chat completions, through ${dialect.title}`, async () => {
      const body = await sent(dialect, { stop: ['x'], topP: 0.9, seed: 7, frequencyPenalty: 1, presencePenalty: -1 })
      expect(body).to.deep.include({ stop: ['x'], top_p: 0.9, seed: 7, frequency_penalty: 1, presence_penalty: -1 })
    })

  it('have the names of the Messages API', async () => {
    expect(await sent(V4_ANTHROPIC, { stop: ['x'], topP: 0.9 })).to.deep.include({ stop_sequences: ['x'], top_p: 0.9 })
    expect(await sent(V4_ANTHROPIC, { topK: 5 })).to.deep.include({ top_k: 5 })
  })

  for (const [dialect, path] of [
    [V4, 'reasoning_effort'],
    [V3, 'reasoning_effort'],
    [V2, 'reasoning_effort'],
    [V4_RESPONSES, 'reasoning.effort'],
    [V3_RESPONSES, 'reasoning.effort'],
    [V2_RESPONSES, 'reasoning.effort'],
  ] as const)
    it(`say how much to reason, through ${dialect.title}`, async () => {
      expect(await sent(dialect, { reasoningEffort: 'low' }, 'gpt-5-mini')).to.have.nested.property(path, 'low')
      expect(await sent(dialect, { reasoningTokens: 20_000 }, 'gpt-5-mini')).to.have.nested.property(path, 'high')
    })

  it('say it to Anthropic as a budget', async () => {
    const { thinking } = await sent(V4_ANTHROPIC, { reasoningEffort: 'low' }, 'claude-sonnet-4-5-thoughts')
    expect(thinking).to.include({ type: 'enabled' })
  })

  it('keep the options of the entry', async () => {
    const entry = { provider_options: { openai: { store: false, parallelToolCalls: true } } }
    const body = await sent(V4, { tools: [WEATHER], parallelToolCalls: false }, 'plain', entry)
    expect(body).to.include({ store: false, parallel_tool_calls: true })
    expect(await sent(V4, { tools: [WEATHER], parallelToolCalls: false })).to.include({ parallel_tool_calls: false })
    const { tool_choice } = await sent(V4_ANTHROPIC, { tools: [WEATHER], parallelToolCalls: false })
    expect(tool_choice).to.include({ disable_parallel_tool_use: true })
  })

  for (const dialect of DIALECTS)
    it(`carry documents, and images at an address, through ${dialect.title}`, async () => {
      const messages: ModelRequest['messages'] = [
        {
          role: 'user',
          parts: [
            { type: 'text', text: 'look' },
            { type: 'image_url', url: 'https://images.example/cat.png' },
            { type: 'file', data: 'JVBERi0xLjQK', mimeType: 'application/pdf', name: 'report.pdf' },
          ],
        },
      ]
      const text = JSON.stringify(await sent(dialect, { messages }))
      expect(text).to.include('https://images.example/cat.png').and.include('JVBERi0xLjQK').and.include('report.pdf')
    })

  for (const dialect of [V4, V3, V2])
    it(`change the likelihood of tokens, through ${dialect.title}`, async () => {
      expect(await sent(dialect, { logitBias: { 50256: -100 } })).to.deep.include({ logit_bias: { 50256: -100 } })
    })

  it('ask for log probabilities, also without alternatives', async () => {
    for (const dialect of [V4, V3]) {
      expect(await sent(dialect, { logprobs: 3 })).to.include({ logprobs: true, top_logprobs: 3 })
      expect(await sent(dialect, { logprobs: 0 })).to.include({ logprobs: true, top_logprobs: 0 })
    }
    for (const dialect of [V4_RESPONSES, V3_RESPONSES, V2_RESPONSES]) {
      const body = await sent(dialect, { logprobs: 3 })
      expect(body).to.deep.include({ top_logprobs: 3, include: ['message.output_text.logprobs'] })
      await using rig = await openRig(dialect, behaving(dialect.wire))
      const events = await ask(rig.provider, says('probable', { logprobs: 0 }))
      const tokens = events.flatMap(event => (event.type === 'logprobs' ? event.tokens : []))
      expect(tokens).to.deep.equal(['Hello', ' there'].map(token => ({ token, logprob: -0.5 })))
    }
  })

  it('mark for Anthropic what is to be cached', async () => {
    const long = { cacheHint: { ttl: '1h' } } as const
    const short = { cacheHint: {} } as const
    const [kept, longer] = [{ type: 'ephemeral' }, { type: 'ephemeral', ttl: '1h' }]
    const body = await sent(V4_ANTHROPIC, {
      tools: [{ ...WEATHER, ...long }],
      messages: [
        {
          role: 'system',
          parts: [
            { type: 'text', text: 'rules' },
            { type: 'text', text: 'facts', ...short },
            { type: 'text', text: 'today' },
          ],
        },
        {
          role: 'user',
          parts: [
            { type: 'image', data: 'iVBORw0KGgo=', mimeType: 'image/png', ...short },
            { type: 'text', text: 'look' },
          ],
        },
        {
          role: 'assistant',
          parts: [
            { type: 'text', text: 'I see' },
            { type: 'tool_call', id: 'c1', tool: 'weather', arguments: {} },
          ],
        },
        {
          role: 'tool',
          parts: [
            {
              type: 'tool_result',
              id: 'c1',
              tool: 'weather',
              content: [{ type: 'text', text: 'sun' }],
              isError: false,
              ...short,
            },
          ],
        },
      ],
    })
    expect(body.tools[0].cache_control).to.deep.equal(longer)
    expect(body.system).to.deep.equal([
      { type: 'text', text: 'rules\n\nfacts', cache_control: kept },
      { type: 'text', text: 'today' },
    ])
    const blocks = body.messages.flatMap(({ content }: { content: object[] }) => content)
    expect(blocks.map((block: { type: string; cache_control?: object }) => [block.type, block.cache_control])).to.deep.equal([
      ['image', kept],
      ['text', undefined],
      ['text', undefined],
      ['tool_use', undefined],
      ['tool_result', kept],
    ])
  })

  it('mark a text of the assistant, too', async () => {
    const { messages } = await sent(V4_ANTHROPIC, {
      messages: [
        { role: 'user', parts: [{ type: 'text', text: 'a', cacheHint: {} }] },
        { role: 'assistant', parts: [{ type: 'text', text: 'b', cacheHint: {} }] },
        { role: 'user', parts: [{ type: 'text', text: 'c' }] },
      ],
    })
    const marks = messages.flatMap(({ content }: { content: { cache_control?: object }[] }) =>
      content.map(({ cache_control }) => cache_control !== undefined)
    )
    expect(marks).to.deep.equal([true, true, false])
  })

  it('carry sounds to chat completions', async () => {
    const messages: ModelRequest['messages'] = [
      { role: 'user', parts: [{ type: 'audio', data: 'UklGRg==', mimeType: 'audio/wav' }] },
    ]
    const [{ content }] = (await sent(V4, { messages })).messages
    expect(content[0]).to.deep.equal({ type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' } })
  })

  it('fail where the address of an image is none', async () => {
    const messages: ModelRequest['messages'] = [{ role: 'user', parts: [{ type: 'image_url', url: 'no address' }] }]
    expect((await failureOf(sent(V4, { messages }))).details).to.include({ kind: 'bad_request', requestOnly: true })
  })
})

describe('what an AI SDK package cannot apply', () => {
  it('fails the call that asked for it, and names the field', async () => {
    const error = await failureOf(sent(V4_RESPONSES, { seed: 7 }))
    expect(error.details).to.include({ kind: 'bad_request', requestOnly: true })
    expect(error.message).to.include('seed')
    const gathered = await failureOf(sent(V2_RESPONSES, { stop: ['x'], gathered: true }))
    expect(gathered.message).to.include('stop')
  })

  it('is also what only models without reasoning take', async () => {
    for (const [more, name] of [
      [{ logprobs: 1 }, 'logprobs'],
      [{ logitBias: { 1: 1 } }, 'logit'],
    ] as const) {
      const error = await failureOf(sent(V4, more, 'gpt-5-mini'))
      expect(error.details).to.include({ kind: 'bad_request', requestOnly: true })
      expect(error.message.toLowerCase()).to.include(name)
    }
    expect((await failureOf(sent(V4_RESPONSES, { logprobs: 1 }, 'gpt-6'))).message).to.include('logprobs')
  })

  it('is no failure where it is the temperature, or a warning about something else', async () => {
    const warnings = [
      { type: 'unsupported', feature: 'temperature' },
      { type: 'unsupported', feature: 'topK' },
      { type: 'compatibility', feature: 'seed' },
      { type: 'unsupported', feature: 5 },
      { type: 'unsupported', feature: 'constructor' },
    ]
    await using opened = await openScripted({
      parts: [{ type: 'stream-start', warnings }, { type: 'text-delta', id: '1', delta: 'a' }, finish],
    })
    const events = await ask(opened.provider, says('m', { temperature: 1, seed: 7 }))
    expect(events.at(-1)?.type).to.equal('finish')
  })

  it('is shown by the features', async () => {
    const supports = async (dialect: Pick<Dialect, 'entry'>) => {
      await using rig = await openRig(dialect, (_, reply) => reply.json(404, {}))
      return rig.provider.features.supports ?? []
    }
    const has = async (dialect: Dialect) => {
      const all = await supports(dialect)
      return (['stop', 'strict_tools', 'reasoning_effort', 'parallel_tool_calls', 'embeddings', ...TOKENS] as const).filter(one =>
        all.includes(one)
      )
    }
    expect(await has(V4)).to.deep.equal([
      'stop',
      'strict_tools',
      'reasoning_effort',
      'parallel_tool_calls',
      'embeddings',
      'logprobs',
      'logit_bias',
    ])
    expect(await has(V4_RESPONSES))
      .not.to.include.members(['stop'])
      .and.not.to.include('logit_bias')
    expect(await has(V4_ANTHROPIC)).not.to.include('embeddings')
    expect(await has(V4_ANTHROPIC)).to.include('cache_hints')
    expect(await has(V2)).not.to.include('strict_tools')
    expect(await has(V2))
      .to.include('logit_bias')
      .and.not.to.include('logprobs')
    expect(await has(V2_RESPONSES)).to.include('logprobs')
  })
})

describe('the events of an AI SDK package with more than text', () => {
  it('have sources, the stop text and tokens that were written to a cache', async () => {
    await using opened = await openScripted({
      parts: [
        { type: 'source', sourceType: 'url', id: '1', url: 'https://a.example', title: 'A' },
        { type: 'source', sourceType: 'document', id: '2', title: 'Doc', mediaType: 'application/pdf' },
        { type: 'source', sourceType: 'url', id: '3', url: 5 },
        { type: 'text-delta', id: '1', delta: 'a' },
        {
          ...finish,
          usage: { inputTokens: { total: 9, cacheRead: 4, cacheWrite: 99 }, outputTokens: { total: 1 } },
          providerMetadata: { anthropic: { stopSequence: 'END' } },
        },
      ],
    })
    expect(await ask(opened.provider, says('m', { stop: ['END'] }))).to.deep.equal([
      { type: 'citation', citation: { url: 'https://a.example', title: 'A' } },
      { type: 'citation', citation: { title: 'Doc' } },
      { type: 'text', text: 'a' },
      { type: 'usage', usage: { input: 9, output: 1, cached: 4, cacheWrite: 5 } },
      { type: 'finish', reason: 'stop', stopText: 'END' },
    ])
  })

  it('have log probabilities after the text, and before the calls', async () => {
    const { wire } = V4_RESPONSES
    const call = { id: 'c', name: 'weather', json: '{"city":"Ulm"}' }
    const frames = wire.begin() + wire.text('Hello', 2) + wire.calls([call]) + wire.end('tool_calls', USAGE)
    await using rig = await openRig(V4_RESPONSES, (_, reply) => reply.end(frames))
    const events = await ask(rig.provider, says('m', { tools: [WEATHER], logprobs: 1 }))
    // a piece of reasoning without text only shows that the model works
    expect(events.filter(event => event.type !== 'reasoning').map(({ type }) => type)).to.deep.equal([
      'text',
      'logprobs',
      'tool_call',
      'usage',
      'finish',
    ])
    expect(events.find(({ type }) => type === 'logprobs')).to.deep.equal({
      type: 'logprobs',
      tokens: [{ token: 'Hello', logprob: -0.5, top: [{ token: 'Hello0', logprob: -1 }] }],
    })
  })

  it('report the arguments of a call that came whole in one piece', async () => {
    await using opened = await openScripted({
      parts: [{ type: 'tool-call', toolCallId: 'c', toolName: 'weather', input: '{"city":"Ulm"}' }, finish],
    })
    const [delta] = await ask(opened.provider, says('m', { tools: [WEATHER], toolCallDeltas: true }))
    expect(delta).to.deep.equal({ type: 'tool_call_delta', index: 0, id: 'c', tool: 'weather', text: '{"city":"Ulm"}' })
  })
})

describe('embeddings through the AI SDK', () => {
  const request: EmbedRequest = { model: 'text-embedding-3-small', input: ['a', 'bb'] }
  const embed = async (dialect: Dialect, more: Partial<EmbedRequest> = {}, entry: object = {}) => {
    await using rig = await openRig(dialect, behaving(dialect.wire), entry)
    const reply = await rig.provider.embed!({ ...request, ...more }, endlessContext())
    return { reply, received: rig.upstream.received }
  }

  for (const dialect of [V4, V3, V2])
    it(`have the asked length, through ${dialect.title}`, async () => {
      const { reply, received } = await embed(dialect, { dimensions: 3 })
      expect(reply.vectors.map(vector => vector[0])).to.deep.equal([1, 2])
      expect(reply.usage).to.deep.equal({ input: 9, output: 0 })
      expect(received[0]?.body).to.include({ dimensions: 3 })
      expect(received[0]?.headers['x-request-id']).to.equal('request-1')
    })

  it('are made in as many calls as the package needs', async () => {
    const { reply, received } = await embed(V4, { input: Array.from({ length: 3000 }, (_, at) => 'x'.repeat((at % 7) + 1)) })
    expect(received).to.have.lengthOf(2)
    expect(reply.vectors).to.have.lengthOf(3000)
    expect(reply.vectors[2999]?.[0]).to.equal((2999 % 7) + 1)
  })

  it('are made of texts only, and by packages that have such models', async () => {
    expect((await failureOf(embed(V4, { input: [[1]] }))).details).to.include({ kind: 'bad_request', requestOnly: true })
    expect((await failureOf(embed(V4_ANTHROPIC))).details).to.include({ kind: 'bad_request', requestOnly: true })
  })

  it('are those of the models that the entry marks, where it names its models', async () => {
    await using rig = await openRig(V4, behaving(V4.wire), {
      models: ['gpt-5', { id: 'text-embedding-3-small', embeddings: true }],
    })
    expect(rig.provider.features.supports).not.to.include('embeddings')
    const { models } = await rig.provider.models(endlessContext())
    expect(models.map(({ features }) => features?.supports)).to.deep.equal([undefined, ['embeddings']])
  })

  it('fail as a chat does', async () => {
    await using rig = await openRig(V4, (_, reply) => reply.json(429, { error: { message: 'slow' } }, { 'retry-after': '2' }))
    const error = await failureOf(rig.provider.embed!(request, endlessContext()))
    expect(error.details).to.include({ kind: 'rate_limited', retryAfterMs: 2000 })
  })
})
