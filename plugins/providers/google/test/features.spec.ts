import type { EmbedRequest, ModelEvent, ModelRequest } from '@svc/core/contracts'
import { type Answerer, ask, failureOf, testContext } from '@svc/testing'
import { expect } from 'chai'
import { bodyOf } from '../src/request.ts'
import { ended, frame, openGeminiApi, says, texts } from './support/gemini-api.ts'
import { offered, openGoogle, to, user } from './support/google.ts'
import { response } from './support/whole.ts'

type Body = Readonly<Record<string, unknown>>
const body = (more: Partial<ModelRequest>, model = 'gemini-3-flash') => bodyOf({ model, messages: [user('hi')], ...more }) as Body
const settings = (more: Partial<ModelRequest>, model?: string) => body(more, model).generationConfig

describe('the further fields of a request to the Gemini API', () => {
  it('have the names of the API', () => {
    const request = {
      stop: ['a'],
      topP: 0.9,
      topK: 5,
      seed: 7,
      n: 2,
      frequencyPenalty: -1,
      presencePenalty: 1,
      logprobs: 3,
      responseFormat: 'json',
    } as const
    expect(settings(request)).to.deep.equal({
      stopSequences: ['a'],
      topP: 0.9,
      topK: 5,
      seed: 7,
      candidateCount: 2,
      frequencyPenalty: -1,
      presencePenalty: 1,
      responseLogprobs: true,
      logprobs: 3,
      responseMimeType: 'application/json',
    })
    expect(settings({ n: 1, stop: [] })).to.equal(undefined)
  })

  it('choose a tool, and check arguments of strict tools', () => {
    const mode = (more: Partial<ModelRequest>) =>
      (body(more).toolConfig as { functionCallingConfig: unknown }).functionCallingConfig
    const tools = [{ ...offered[0]!, strict: true }]
    expect(mode({ tools, toolChoice: { tool: 'weather' } })).to.deep.equal({ mode: 'ANY', allowedFunctionNames: ['weather'] })
    expect(mode({ tools })).to.deep.equal({ mode: 'VALIDATED' })
    expect(mode({ tools, toolChoice: 'required' })).to.deep.equal({ mode: 'ANY' })
    expect(mode({ tools: offered })).to.deep.equal({ mode: 'AUTO' })
  })

  it('carry files and sounds as data, and images at an address with their type', () => {
    const messages: ModelRequest['messages'] = [
      {
        role: 'user',
        parts: [
          { type: 'file', data: 'JVBE', mimeType: 'application/pdf', name: 'a.pdf' },
          { type: 'audio', data: 'UklG', mimeType: 'audio/wav' },
          { type: 'image_url', url: 'https://a.example/b.PNG?size=2' },
          { type: 'image_url', url: 'https://a.example/photo' },
        ],
      },
    ]
    expect((body({ messages }).contents as [{ parts: unknown }])[0].parts).to.deep.equal([
      { inlineData: { mimeType: 'application/pdf', data: 'JVBE' } },
      { inlineData: { mimeType: 'audio/wav', data: 'UklG' } },
      { fileData: { mimeType: 'image/png', fileUri: 'https://a.example/b.PNG?size=2' } },
      { fileData: { mimeType: 'image/jpeg', fileUri: 'https://a.example/photo' } },
    ])
  })

  for (const [model, more, wanted] of [
    ['gemini-3-flash', { reasoningEffort: 'low' }, { thinkingLevel: 'low', includeThoughts: true }],
    ['gemini-3-flash', { reasoningEffort: 'none' }, { thinkingLevel: 'minimal' }],
    ['gemini-3-flash', { reasoningEffort: 'max' }, { thinkingLevel: 'high', includeThoughts: true }],
    ['gemini-3-flash', { reasoningTokens: 9000 }, { thinkingLevel: 'medium', includeThoughts: true }],
    ['gemini-3-pro-preview', { reasoningEffort: 'medium' }, { thinkingLevel: 'high', includeThoughts: true }],
    ['gemini-2.5-flash', { reasoningEffort: 'medium' }, { thinkingBudget: 8192, includeThoughts: true }],
    ['gemini-2.5-flash', { reasoningEffort: 'none' }, { thinkingBudget: 0 }],
    ['gemini-2.5-pro', { reasoningEffort: 'none' }, { thinkingBudget: 128 }],
    ['gemini-2.5-flash', { reasoningTokens: 500 }, { thinkingBudget: 500, includeThoughts: true }],
  ] as const)
    it(`make ${model} think with ${JSON.stringify(more)}`, () => {
      expect(settings(more, model)).to.deep.equal({ thinkingConfig: wanted })
    })
})

describe('the features of models of the Gemini API', () => {
  it('follow from the list and from the name', async () => {
    await using upstream = await openGeminiApi()
    await using opened = await openGoogle(upstream.url)
    const models = [
      { name: 'models/gemini-2.0-flash' },
      { name: 'models/gemini-2.5-flash' },
      { name: 'models/gemini-9', thinking: false },
      { name: 'models/gemini-embedding-001', supportedGenerationMethods: ['embedContent', 'countTokens'] },
      { name: 'models/aqa', supportedGenerationMethods: 'generateAnswer' },
      { name: 'models/imagen', supportedGenerationMethods: ['predict'] },
    ]
    upstream.answer((_, reply) => reply.json(200, { models }))
    const listed = (await opened.provider.models(testContext())).models
    const has = (id: string) => {
      const supports = listed.find(model => model.id === id)?.features?.supports ?? opened.provider.features.supports ?? []
      return (['reasoning_effort', 'image_urls', 'embeddings'] as const).filter(feature => supports.includes(feature))
    }
    expect(listed.at(-1)?.id).to.equal('gemini-embedding-001')
    expect(['gemini-2.0-flash', 'gemini-2.5-flash', 'gemini-9', 'gemini-embedding-001', 'aqa'].map(has)).to.deep.equal([
      [],
      ['reasoning_effort', 'image_urls'],
      ['image_urls'],
      ['embeddings'],
      ['reasoning_effort', 'image_urls'],
    ])
    expect(listed.map(({ id }) => id)).not.to.include('imagen')
  })
})

describe('an answer of the Gemini API with more than text', () => {
  const eventsOf = async (stream: string, more: Partial<ModelRequest> = {}): Promise<ModelEvent[]> => {
    await using upstream = await openGeminiApi({ own: reply => reply.end(stream) })
    await using opened = await openGoogle(upstream.url)
    return await ask(opened.provider, to('own', more))
  }
  const textOf = (events: readonly ModelEvent[]) => events.map(event => (event.type === 'text' ? event.text : '')).join('')

  it('tells each source once', async () => {
    const web = { uri: 'https://a.example', title: 'A' }
    const grounded = { groundingMetadata: { groundingChunks: [{ web }, { web }, null, { web: 5 }, { other: 1 }] } }
    const quoted = { citationMetadata: { citationSources: [{ startIndex: 1, uri: 'https://b.example' }, web, 'x'] } }
    const events = await eventsOf(
      says([{ text: 'a' }], grounded) + says([{ text: 'b' }], { ...grounded, ...quoted }) + ended('STOP')
    )
    expect(events.flatMap(event => (event.type === 'citation' ? event.citation : []))).to.deep.equal([
      { url: 'https://a.example', title: 'A' },
      { url: 'https://b.example' },
    ])
  })

  it('fails where the server gives fewer answers than n', async () => {
    const error = await failureOf(eventsOf(texts('a') + ended('STOP'), { n: 2 }))
    expect(error.details).to.include({ kind: 'bad_request' })
  })

  it('takes a candidate beyond n for a broken answer', async () => {
    const error = await failureOf(eventsOf(frame({ candidates: [{ index: 5 }] }), { n: 2 }))
    expect(error.details).to.include({ kind: 'network' })
  })

  for (const [what, stream] of [
    ['candidates that are no list', frame({ candidates: 'x' })],
    ['a candidate that is no object', frame({ candidates: [5] })],
    [
      'log probabilities of another form',
      says([], { logprobsResult: { chosenCandidates: [5, { token: 7 }], topCandidates: 'x' } }),
    ],
    ['sources that are no list', says([], { citationMetadata: { citationSources: {} }, groundingMetadata: [] })],
    ['huge counts', says([], {}, { promptTokenCount: 1e300, candidatesTokenCount: -1, thoughtsTokenCount: '5' })],
  ] as const)
    it(`survives ${what}`, async () => {
      const events = await eventsOf(texts('a') + stream + ended('STOP'))
      expect(textOf(events)).to.equal('a')
      expect(events.at(-1)).to.deep.equal({ type: 'finish', reason: 'stop' })
    })
})

describe('an original request to the Gemini API', () => {
  it('reaches the server as it is, with no header of the client', async () => {
    await using upstream = await openGeminiApi({ own: reply => reply.json(200, response([{ text: 'Hi' }], 'STOP')) })
    await using opened = await openGoogle(upstream.url)
    const original = {
      contents: [{ parts: [{ text: 'hi', videoMetadata: { fps: 1 } }] }],
      tools: [{ googleSearch: {} }],
      labels: { a: 'b' },
    }
    const headers = { 'x-goog-api-key': 'theirs', 'x-goog-user-project': 'theirs', 'anthropic-beta': 'x' }
    const native = { protocol: 'google', body: original, headers } as const
    await ask(opened.provider, to('own', { native, gathered: true, temperature: 1 }))
    const [received] = upstream.received
    expect(received!.body).to.deep.equal(original)
    expect(received!.path).to.equal('/v1beta/models/own:generateContent')
    expect(received!.headers).not.to.have.any.keys('x-goog-user-project', 'anthropic-beta')
    await ask(opened.provider, to('own', { native: { ...native, protocol: 'anthropic' }, gathered: true }))
    expect(upstream.received.at(-1)!.body).not.to.have.property('labels')
  })
})

describe('embeddings of the Gemini API', () => {
  const embed = async (request: Partial<EmbedRequest>, by?: Answerer) => {
    await using upstream = await openGeminiApi()
    if (by) upstream.answer(by)
    await using opened = await openGoogle(upstream.url)
    const reply = await opened.provider.embed!({ model: 'embedding-1', input: ['a', 'bb'], ...request }, testContext())
    return { reply, received: upstream.received }
  }

  it('take as many requests as there are hundreds of texts, in order', async () => {
    const { reply, received } = await embed({ input: Array.from({ length: 250 }, (_, at) => 'x'.repeat(at + 1)) })
    expect(received).to.have.lengthOf(3)
    expect(reply.vectors.map(vector => vector[0])).to.deep.equal(Array.from({ length: 250 }, (_, at) => at + 1))
    expect(reply.usage.input).to.be.above(250)
  })

  it('are made of texts only', async () => {
    expect((await failureOf(embed({ input: [[1, 2]] }))).details).to.include({ kind: 'bad_request', requestOnly: true })
  })

  for (const [what, answer] of [
    ['fewer vectors', { embeddings: [{ values: [1] }] }],
    ['no list', { embeddings: { values: [1] } }],
    ['something else', { embeddings: [5, { values: 'x' }] }],
    ['lengths that differ', { embeddings: [{ values: [1] }, { values: [1, 2] }] }],
  ] as const)
    it(`fail for ${what}`, async () => {
      expect((await failureOf(embed({}, (_, reply) => reply.json(200, answer)))).details).to.include({ kind: 'network' })
    })

  it('count what the server counts, if it does', async () => {
    const { reply } = await embed({}, (_, answer) =>
      answer.json(200, { embeddings: [{ values: [1] }, { values: [2] }], usageMetadata: { promptTokenCount: 12 } })
    )
    expect(reply.usage).to.deep.equal({ input: 12, output: 0 })
  })
})
