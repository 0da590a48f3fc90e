import { definePlugin, svcError } from '@svc/core'
import { ModelCalls, type ModelEvent, Providers } from '@svc/core/contracts'
import { item } from '@svc/testing'
import { expect } from 'chai'
import {
  asked,
  type Any,
  CALLS,
  KEY,
  model,
  NO_RETRY,
  partsOf,
  scripted,
  serveApi,
  serveBefore,
  STOP,
  textOf,
  USAGE,
  user,
} from './support/api.ts'

const frame = (body: object) => `data: ${JSON.stringify(body)}\r\n\r\n`
const candidate = (parts: object[], rest: object = {}) => ({
  candidates: [{ content: { parts, role: 'model' }, index: 0, ...rest }],
})

/** Base64 whose decoded bytes are no text. */
const SIGNATURE = 'CpQB/+8AbEE=' as const
const CHUNKS = [
  { ...candidate([{ text: 'Let me see.', thought: true }]), responseId: 'r1', modelVersion: 'gemini-3' },
  {
    ...candidate([{ functionCall: { name: 'weather', args: { city: 'Ulm' }, id: 'f1' }, thoughtSignature: SIGNATURE }]),
    future: 1,
  },
  {
    ...candidate([{ executableCode: { language: 'PYTHON', code: '1' } }], { finishReason: 'STOP', urlContextMetadata: {} }),
    usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 4, totalTokenCount: 9, serviceTier: 'standard' },
  },
]

/** A request as Gemini CLI sends it, with fields that only Google has. */
const BODY = {
  contents: [
    user('hi'),
    model({ text: 'I look.' }, { functionCall: { name: 'weather', args: { city: 'Bern' } }, thoughtSignature: SIGNATURE }),
    user({ functionResponse: { name: 'weather', response: { output: 'rain' } } }),
  ],
  systemInstruction: { role: 'user', parts: [{ text: 'You are an agent.' }] },
  tools: [{ functionDeclarations: [{ name: 'weather', parametersJsonSchema: { type: 'object' } }] }, { googleSearch: {} }],
  toolConfig: { includeServerSideToolInvocations: true },
  safetySettings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }],
  cachedContent: 'cachedContents/x',
  generationConfig: { topK: 64, speechConfig: {}, thinkingConfig: { includeThoughts: true } },
  unknown_field: { deep: [1, null, 'x'] },
}

describe('a server of the Gemini API behind svc', () => {
  it('gets the request of the client unchanged, and its answers go to the client unchanged', async () => {
    await using api = await serveBefore('google', (_received, reply) => reply.end(CHUNKS.map(frame).join('')))
    const { status, chunks, headers } = await api.stream(BODY, 'up/m')
    expect(status).to.equal(200)
    expect(headers.has('x-svc-dropped')).to.equal(false)
    expect(chunks).to.deep.equal(CHUNKS)
    const sent = api.upstream.received.find(({ method }) => method === 'POST')!
    expect(sent.body).to.deep.equal(BODY)
    expect(sent.path).to.equal('/v1beta/models/m:streamGenerateContent?alt=sse')
    expect(sent.headers['x-goog-api-key']).to.equal(KEY)
    // as an array, too
    const array = await api.post('up/m:streamGenerateContent', BODY)
    expect(await array.json()).to.deep.equal(CHUNKS)
  })

  it('answers a whole request with its own response', async () => {
    const whole = { ...CHUNKS[1], ...CHUNKS[2], candidates: [{ ...CHUNKS[1]!.candidates[0], finishReason: 'STOP' }] }
    await using api = await serveBefore('google', (_received, reply) => reply.json(200, whole))
    const { body, text } = await api.ask(BODY, 'up/m')
    expect(body).to.deep.equal(whole)
    expect(text).to.contain(SIGNATURE)
  })

  it('refuses to answer: the client gets its feedback', async () => {
    const blocked = { promptFeedback: { blockReason: 'PROHIBITED_CONTENT' }, usageMetadata: { promptTokenCount: 9 } }
    await using api = await serveBefore('google', ({ path }, reply) =>
      path.includes('stream') ? reply.end(frame(blocked)) : reply.json(200, blocked)
    )
    expect((await api.stream({ contents: [user('x')] }, 'up/m')).chunks).to.deep.equal([blocked])
    expect((await api.ask({ contents: [user('x')] }, 'up/m')).body).to.deep.equal(blocked)
  })

  it('fails before its answer: the client gets the status in the words of Google', async () => {
    const failures: [number, string, number, string][] = [
      [429, 'RESOURCE_EXHAUSTED', 429, 'RESOURCE_EXHAUSTED'],
      [503, 'UNAVAILABLE', 503, 'UNAVAILABLE'],
      [400, 'INVALID_ARGUMENT', 400, 'INVALID_ARGUMENT'],
      [404, 'NOT_FOUND', 404, 'NOT_FOUND'],
      [401, 'UNAUTHENTICATED', 500, 'INTERNAL'],
    ]
    const details = [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '7s' }]
    for (const [code, status, expected, words] of failures) {
      await using api = await serveBefore(
        'google',
        (_received, reply) =>
          reply.json(code, { error: { code, message: 'no way', status, details: code === 429 ? details : [] } }),
        { config: NO_RETRY }
      )
      for (const method of ['generateContent', 'streamGenerateContent?alt=sse', 'streamGenerateContent']) {
        const { status: got, body, headers, text } = await api.call(`up/m:${method}`, BODY)
        expect([got, body.error.code, body.error.status], `${code} ${method}`).to.deep.equal([expected, expected, words])
        expect(text).to.not.contain(KEY)
        expect(headers.get('x-should-retry')).to.equal(String([429, 503].includes(code)))
        if (code !== 429) continue
        expect(headers.get('retry-after')).to.equal('7')
        expect(body.error.details).to.deep.include(details[0])
      }
    }
  })

  it('says in the words of Google that the conversation is too long', async () => {
    const message = 'The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).'
    await using api = await serveBefore('google', (_received, reply) =>
      reply.json(400, { error: { code: 400, message, status: 'INVALID_ARGUMENT' } })
    )
    const { status, body } = await api.ask({ contents: [user('hi')] }, 'up/m')
    expect([status, body.error.message]).to.deep.equal([400, message])
  })

  it('fails in the middle of its answer: the stream ends with one error', async () => {
    const error = { error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } }
    for (const end of [frame(error), '']) {
      await using api = await serveBefore('google', (_received, reply) => reply.end(frame(candidate([{ text: 'Hi' }])) + end))
      const { status, chunks } = await api.stream({ contents: [user('hi')] }, 'up/m')
      expect(status).to.equal(200)
      expect(textOf(partsOf(chunks))).to.equal('Hi')
      expect(chunks.at(-1).error.code).to.be.at.least(500)
      expect(chunks.filter(chunk => chunk.error)).to.have.length(1)
      const array = (await (await api.post('up/m:streamGenerateContent', { contents: [user('hi')] })).json()) as Any[]
      expect(array.at(-1).error.code).to.be.at.least(500)
    }
  })
})

describe('signatures of other providers', () => {
  const answer: ModelEvent[] = [
    { type: 'reasoning', text: 'Let me' },
    { type: 'reasoning', text: ' see.', providerData: { signature: 'abc+/=' } },
    { type: 'text', text: 'I look.' },
    { type: 'reasoning', text: 'Now.', providerData: { signature: 'def' } },
    { type: 'tool_call', id: 'c1', tool: 'weather', arguments: { city: 'Ulm' }, providerData: { data: [1, 'ü'] } },
    USAGE,
    { ...CALLS, providerData: { message: true } } as ModelEvent,
  ]
  const tools = [{ functionDeclarations: [{ name: 'weather', parametersJsonSchema: { type: 'object' } }] }]
  const RESULT = user({ functionResponse: { id: 'c1', name: 'weather', response: { output: 'rain' } } })
  const WANTED = {
    role: 'assistant',
    provider: 'scripted',
    providerData: { message: true },
    parts: [
      { type: 'reasoning', text: 'Let me see.', providerData: { signature: 'abc+/=' } },
      { type: 'text', text: 'I look.' },
      { type: 'reasoning', text: 'Now.', providerData: { signature: 'def' } },
      { type: 'tool_call', id: 'c1', tool: 'weather', arguments: { city: 'Ulm' }, providerData: { data: [1, 'ü'] } },
    ],
  }

  for (const includeThoughts of [true, false])
    it(`return to their provider unchanged, ${includeThoughts ? 'with' : 'without'} thoughts`, async () => {
      const provider = scripted([answer, [{ type: 'text', text: 'done' }, USAGE, STOP]])
      await using api = await serveApi({ give: [item(Providers, 'scripted', provider)] })
      const order = { contents: [user('hi')], tools, generationConfig: { thinkingConfig: { includeThoughts } } }
      const streamed = await api.stream(order, 'scripted/m')
      provider.requests.length = 0
      const whole = await api.ask(order, 'scripted/m')
      const contents: Any[][] = [
        // an SDK keeps the content of each chunk
        streamed.chunks.flatMap(chunk => chunk.candidates?.[0].content ?? []),
        [whole.body.candidates[0].content],
        // others keep no thoughts, except those with a signature, and decode and encode bytes
        [
          model(
            ...whole.body.candidates[0].content.parts.map((part: Any) =>
              part.thoughtSignature
                ? { ...part, thoughtSignature: Buffer.from(part.thoughtSignature, 'base64').toString('base64url') }
                : part
            )
          ),
        ],
      ]
      for (const kept of contents) {
        provider.requests.length = 1
        const next = await api.ask({ contents: [user('hi'), ...kept, RESULT], tools }, 'scripted/m')
        expect(next.status, next.text).to.equal(200)
        expect(provider.requests[1]!.messages[1]).to.deep.equal(WANTED)
        expect(next.headers.has('x-svc-dropped')).to.equal(false)
      }
    })

  it('do not reach a server of the Gemini API', async () => {
    const provider = scripted([answer])
    const by = (_received: unknown, reply: { json(status: number, body: object): unknown }) =>
      reply.json(200, { ...candidate([{ text: 'ok' }], { finishReason: 'STOP' }) })
    await using api = await serveBefore('google', by, { give: [item(Providers, 'scripted', provider)] })
    const { body } = await api.ask({ contents: [user('hi')], tools }, 'scripted/m')
    const contents = [user('hi'), body.candidates[0].content, RESULT]
    const { status, text } = await api.ask({ contents, tools }, 'up/m')
    expect(status, text).to.equal(200)
    const [sent] = asked(api.upstream.received)
    expect(JSON.stringify(sent)).to.not.contain('c3ZjLTEu')
    expect(sent.contents[1].parts[0]).to.deep.equal({ text: 'I look.' })
    expect(sent.contents[1].parts.at(-1).functionCall).to.deep.include({ name: 'weather', args: { city: 'Ulm' } })
  })

  it('of an agent are unpacked for their own server of the Gemini API', async () => {
    const call = { functionCall: { id: 'f1', name: 'weather', args: {} }, thoughtSignature: SIGNATURE }
    let calls = 0
    await using api = await serveBefore(
      'google',
      (_received, reply) =>
        calls++ === 0
          ? reply.end(frame(candidate([call], { finishReason: 'STOP' })))
          : reply.json(200, candidate([{ text: 'ok' }], { finishReason: 'STOP' })),
      { profiles: { own: { provider: 'up', model: 'm', tools: [] } } }
    )
    const first = await api.stream({ contents: [user('hi')], tools }, 'profile:own')
    const content = model(...partsOf(first.chunks).filter(part => part.functionCall))
    const { id } = (content.parts[0] as Any).functionCall
    const result = user({ functionResponse: { id, name: 'weather', response: { output: 'rain' } } })
    const { status, text } = await api.ask({ contents: [user('hi'), content, result], tools }, 'profile:own')
    expect(status, text).to.equal(200)
    const sent = asked(api.upstream.received)[1]
    expect(sent.contents[1].parts[0].thoughtSignature).to.equal(SIGNATURE)
  })
})

describe('models of other servers', () => {
  it('get images, sound and files, and the media of a response', async () => {
    const provider = scripted([[{ type: 'text', text: 'x' }, USAGE, STOP]], { supports: ['files', 'audio', 'image_urls'] })
    await using api = await serveApi({ give: [item(Providers, 'scripted', provider)] })
    const png = { mimeType: 'image/png', data: 'iVBORw0KGgoAAAANSUhEUg_-' }
    const contents = [
      user(
        { inlineData: png },
        { inline_data: { mime_type: 'audio/wav', data: 'AAAA' } },
        { inlineData: { mimeType: 'application/pdf', data: 'AAAA', displayName: 'a.pdf' } },
        { fileData: { fileUri: 'https://a.example/x.png', mimeType: 'image/png' } }
      ),
      model({ functionCall: { name: 'shot', args: {} } }, { functionCall: { name: 'shot', args: { n: 2 } } }),
      user(
        { functionResponse: { name: 'shot', response: { error: 'dark' } } },
        { functionResponse: { name: 'shot', response: { a: 1, b: 'x' }, parts: [{ inlineData: png }] } },
        'and now?'
      ),
    ]
    const { status, text, headers } = await api.ask({ contents }, 'scripted/m')
    expect([status, headers.get('x-svc-dropped')], text).to.deep.equal([200, null])
    const image = { type: 'image', data: 'iVBORw0KGgoAAAANSUhEUg/+', mimeType: 'image/png' }
    // without members that are undefined
    expect(JSON.parse(JSON.stringify(provider.requests[0]!.messages))).to.deep.equal([
      {
        role: 'user',
        parts: [
          image,
          { type: 'audio', data: 'AAAA', mimeType: 'audio/wav' },
          { type: 'file', data: 'AAAA', mimeType: 'application/pdf', name: 'a.pdf' },
          { type: 'image_url', url: 'https://a.example/x.png' },
        ],
      },
      {
        role: 'assistant',
        parts: [
          { type: 'tool_call', id: 'call_1', tool: 'shot', arguments: {} },
          { type: 'tool_call', id: 'call_2', tool: 'shot', arguments: { n: 2 } },
        ],
      },
      {
        role: 'tool',
        parts: [
          { type: 'tool_result', id: 'call_1', tool: 'shot', content: [{ type: 'text', text: 'dark' }], isError: true },
          {
            type: 'tool_result',
            id: 'call_2',
            tool: 'shot',
            content: [{ type: 'text', text: '{"a":1,"b":"x"}' }, image],
            isError: false,
          },
        ],
      },
      { role: 'user', parts: [{ type: 'text', text: 'and now?' }] },
    ])
  })

  it('that refuse end the answer with SAFETY, or block the request', async () => {
    const refusal = svcError('MODEL_FAILED', 'no', { details: { kind: 'content_refused', retryable: false } })
    const provider = scripted([[refusal], [{ type: 'text', text: 'Hm' }, refusal]])
    await using api = await serveApi({ give: [item(Providers, 'scripted', provider)] })
    const blocked = await api.stream({ contents: [user('x')] }, 'scripted/m')
    expect(blocked.chunks.map(({ promptFeedback }) => promptFeedback)).to.deep.equal([{ blockReason: 'OTHER' }])
    const late = await api.stream({ contents: [user('x')] }, 'scripted/m')
    expect(textOf(partsOf(late.chunks))).to.equal('Hm')
    expect(late.chunks.at(-1).candidates[0].finishReason).to.equal('SAFETY')
  })

  it('answer in place of a server that failed, without the answers of the failed attempt', async () => {
    const provider = scripted([[{ type: 'text', text: 'instead' }, USAGE, STOP]])
    const plugin = definePlugin({
      setup: scope => void scope.tap(ModelCalls.hooks.modelFailed, () => ({ provider: 'other', model: 'm' })),
    })
    const overloaded = { error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } }
    await using api = await serveBefore(
      'google',
      ({ path }, reply) => (path.includes('stream') ? reply.end(frame(overloaded)) : reply.json(503, overloaded)),
      { config: NO_RETRY, give: [item(Providers, 'other', provider), { name: 'test:fallback', use: plugin }] }
    )
    const { status, headers, body, text } = await api.ask(BODY, 'up/m')
    expect(status, text).to.equal(200)
    expect(textOf(body.candidates[0].content.parts)).to.equal('instead')
    const lost = ['safetySettings', 'thoughtSignature', 'cachedContent', 'tools.googleSearch', 'unknownField']
    expect(headers.get('x-svc-dropped')!.split(', ')).to.include.members(lost)
    const { status: streamed, chunks } = await api.stream(BODY, 'up/m')
    expect([streamed, textOf(partsOf(chunks))]).to.deep.equal([200, 'instead'])
  })
})
