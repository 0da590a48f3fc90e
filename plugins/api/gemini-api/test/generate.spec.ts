import { type ModelEvent, Providers } from '@svc/core/contracts'
import { item } from '@svc/testing'
import { expect } from 'chai'
import { type Any, LOCAL, model, partsOf, scripted, serveApi, STOP, textOf, USAGE, user } from './support/api.ts'

const WEATHER = {
  name: 'weather',
  description: 'the weather',
  parameters: { type: 'OBJECT', properties: { city: { type: 'STRING', nullable: true } }, required: ['city'] },
}
const TOOLS = { tools: [{ functionDeclarations: [WEATHER] }] }

describe('generateContent', () => {
  it('answers with one response', async () => {
    await using api = await serveApi()
    const { status, body, headers } = await api.ask({ contents: [user('hello')] })
    expect(status).to.equal(200)
    const { candidates, usageMetadata, modelVersion, responseId, ...rest } = body
    expect(rest).to.deep.equal({})
    expect(candidates).to.deep.equal([
      { content: { parts: [{ text: 'You said: hello' }], role: 'model' }, finishReason: 'STOP', index: 0 },
    ])
    expect(modelVersion).to.equal(LOCAL)
    expect(responseId).to.be.a('string')
    expect(usageMetadata.totalTokenCount).to.equal(usageMetadata.promptTokenCount + usageMetadata.candidatesTokenCount)
    expect(headers.has('x-svc-dropped')).to.equal(false)
  })

  it('takes all settings in both forms of their names', async () => {
    const provider = scripted([[{ type: 'text', text: 'x' }, USAGE, STOP]], {
      supports: [
        'stop',
        'top_p',
        'top_k',
        'seed',
        'frequency_penalty',
        'presence_penalty',
        'logprobs',
        'reasoning_effort',
        'response_schema',
        'tool_choice',
        'high_temperature',
      ],
    })
    await using api = await serveApi({ give: [item(Providers, 'scripted', provider)] })
    const settings = {
      temperature: 1.5,
      topP: 0.9,
      topK: 40,
      candidateCount: 1,
      maxOutputTokens: 100,
      stopSequences: ['END'],
      seed: -7,
      presencePenalty: 1,
      frequencyPenalty: -1,
      responseLogprobs: true,
      logprobs: 3,
      responseMimeType: 'application/json',
      responseSchema: { type: 'OBJECT', properties: { a: { type: 'INTEGER', format: 'int32' } }, propertyOrdering: ['a'] },
      thinkingConfig: { thinkingBudget: 2048, includeThoughts: true },
    }
    const snake = (name: string) => name.replaceAll(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
    const snaked = Object.fromEntries(Object.entries(settings).map(([name, value]) => [snake(name), value]))
    const forms = [
      { contents: [user('hi')], systemInstruction: { parts: [{ text: 'Be kind.' }] }, generationConfig: settings, ...TOOLS },
      {
        contents: [user('hi')],
        system_instruction: { parts: { text: 'Be kind.' } },
        generation_config: snaked,
        tools: [{ function_declarations: [WEATHER] }],
      },
    ]
    for (const body of forms) {
      const { status, text, headers } = await api.ask(body, 'scripted/m')
      expect([status, headers.get('x-svc-dropped')], text).to.deep.equal([200, null])
    }
    for (const { native: _native, ...request } of provider.requests)
      expect(request).to.deep.equal({
        model: 'm',
        messages: [
          { role: 'system', parts: [{ type: 'text', text: 'Be kind.' }] },
          { role: 'user', parts: [{ type: 'text', text: 'hi' }] },
        ],
        tools: [
          {
            name: 'weather',
            description: 'the weather',
            parameters: { type: 'object', properties: { city: { type: ['string', 'null'] } }, required: ['city'] },
          },
        ],
        temperature: 1.5,
        topP: 0.9,
        topK: 40,
        maxTokens: 100,
        stop: ['END'],
        seed: -7,
        presencePenalty: 1,
        frequencyPenalty: -1,
        logprobs: 3,
        responseSchema: { type: 'object', properties: { a: { type: 'integer', format: 'int32' } } },
        reasoningTokens: 2048,
        gathered: true,
      })
  })

  it('lists what a model does not get, and refuses what would change the answer', async () => {
    const provider = scripted([[{ type: 'text', text: 'x' }, USAGE, STOP]], { supports: [] })
    await using api = await serveApi({ give: [item(Providers, 'scripted', provider)] })
    const { status, headers } = await api.ask(
      {
        contents: [user('hi')],
        safetySettings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }],
        labels: {},
        tools: [{ googleSearch: {} }],
        generationConfig: { topP: 0.95, topK: 64, mediaResolution: 'LOW', thinkingConfig: { thinkingLevel: 'HIGH' } },
      },
      'scripted/m'
    )
    expect(status).to.equal(200)
    expect(headers.get('x-svc-dropped')!.split(', ').toSorted()).to.deep.equal([
      'generationConfig.mediaResolution',
      'generationConfig.thinkingConfig',
      'generationConfig.topK',
      'generationConfig.topP',
      'labels',
      'safetySettings',
      'tools.googleSearch',
    ])
    const refused = await api.ask({ contents: [user('hi')], generationConfig: { seed: 1 } }, 'scripted/m')
    expect([refused.status, refused.body.error.status]).to.deep.equal([400, 'INVALID_ARGUMENT'])
    expect(refused.body.error.message).to.contain('generationConfig.seed is not supported')
  })

  it('shows thoughts only if the client asks for them', async () => {
    await using api = await serveApi()
    const ask = (thinkingConfig: object) => api.ask({ contents: [user('why?')], generationConfig: { thinkingConfig } })
    const { body } = await ask({ thinkingLevel: 'low', includeThoughts: true })
    expect(body.candidates[0].content.parts[0].thought).to.equal(true)
    expect(body.usageMetadata.thoughtsTokenCount).to.be.above(0)
    const hidden = await ask({ thinkingLevel: 'low' })
    expect(
      hidden.body.candidates[0].content.parts.some((part: { thought?: true; text: string }) => part.thought && part.text)
    ).to.equal(false)
  })

  it('returns log probabilities and sources', async () => {
    const provider = scripted(
      [
        [
          { type: 'text', text: 'Hi' },
          { type: 'logprobs', tokens: [{ token: 'Hi', logprob: -0.5, top: [{ token: 'Ho', logprob: -1 }] }] },
          { type: 'citation', citation: { url: 'https://a.example', title: 'A' } },
          USAGE,
          STOP,
        ],
      ],
      { supports: ['logprobs'] }
    )
    await using api = await serveApi({ give: [item(Providers, 'scripted', provider)] })
    const order = { contents: [user('hi')], generationConfig: { responseLogprobs: true, logprobs: 1 } }
    const { body } = await api.ask(order, 'scripted/m')
    const [candidate] = body.candidates
    expect(candidate.logprobsResult).to.deep.equal({
      topCandidates: [{ candidates: [{ token: 'Ho', logProbability: -1 }] }],
      chosenCandidates: [{ token: 'Hi', logProbability: -0.5 }],
    })
    expect(candidate.groundingMetadata.groundingChunks).to.deep.equal([{ web: { uri: 'https://a.example', title: 'A' } }])
    expect(body.usageMetadata).to.deep.equal({
      promptTokenCount: 9,
      cachedContentTokenCount: 2,
      candidatesTokenCount: 3,
      thoughtsTokenCount: 1,
      totalTokenCount: 13,
    })
    const { chunks } = await api.stream(order, 'scripted/m')
    expect(chunks.some(chunk => chunk.candidates[0].logprobsResult)).to.equal(true)
    expect(chunks.at(-1).candidates[0].groundingMetadata).to.deep.equal(candidate.groundingMetadata)
  })

  it('answers with JSON of a schema, in each of its fields', async () => {
    await using api = await serveApi()
    const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] }
    for (const field of ['responseSchema', 'responseJsonSchema', '_responseJsonSchema', 'response_json_schema']) {
      const generationConfig = { responseMimeType: 'application/json', [field]: schema }
      const { body, headers, text } = await api.ask({ contents: [user('hi')], generationConfig })
      expect(JSON.parse(textOf(body.candidates[0].content.parts)), `${field}: ${text}`).to.have.property('n')
      expect(headers.has('x-svc-dropped')).to.equal(false)
    }
  })

  it('ends with MAX_TOKENS at the limit', async () => {
    await using api = await serveApi()
    const { body } = await api.ask({ contents: [user('a b c d e f g')], generationConfig: { maxOutputTokens: 2 } })
    expect(body.candidates[0].finishReason).to.equal('MAX_TOKENS')
  })
})

describe('streamGenerateContent', () => {
  it('streams server-sent events with alt=sse, the last with the end and the usage', async () => {
    await using api = await serveApi()
    const { status, chunks, headers } = await api.stream({ contents: [user('hello there')] })
    expect(status).to.equal(200)
    expect(headers.get('content-type')).to.match(/^text\/event-stream/)
    expect(chunks.length).to.be.above(2)
    expect(textOf(partsOf(chunks))).to.equal('You said: hello there')
    expect(chunks.at(-1).candidates[0].finishReason).to.equal('STOP')
    expect(chunks.at(-1).usageMetadata.totalTokenCount).to.be.above(0)
    expect(new Set(chunks.map(({ responseId }) => responseId)).size).to.equal(1)
    expect(chunks.slice(0, -1).some(({ usageMetadata }) => usageMetadata)).to.equal(false)
  })

  it('writes a JSON array without it', async () => {
    await using api = await serveApi()
    const response = await api.post(`${LOCAL}:streamGenerateContent`, { contents: [user('hello "there"\n')] })
    expect(response.headers.get('content-type')).to.match(/^application\/json/)
    const chunks = (await response.json()) as object[]
    expect(chunks.length).to.be.above(2)
    expect(textOf(partsOf(chunks))).to.equal('You said: hello "there"\n')
  })

  it('calls functions of the client, and goes on with their responses', async () => {
    await using api = await serveApi()
    const question = user('/tool weather {"city":"Ulm"}')
    const { chunks } = await api.stream({ contents: [question], ...TOOLS })
    const parts = partsOf(chunks)
    const { functionCall } = parts.find(part => part.functionCall)
    expect([functionCall.name, functionCall.args]).to.deep.equal(['weather', { city: 'Ulm' }])
    expect(chunks.at(-1).candidates[0].finishReason).to.equal('STOP')
    for (const id of [{ id: functionCall.id }, {}, { id: 'of-the-client' }]) {
      const contents = [
        question,
        // clients keep the id of a call, or none
        model({ functionCall: 'id' in id && id.id !== 'of-the-client' ? functionCall : { ...functionCall, id: undefined } }),
        user({ functionResponse: { ...id, name: 'weather', response: { output: 'sunny' } } }),
      ]
      const { status, body, text } = await api.ask({ contents, ...TOOLS })
      expect(status, text).to.equal(200)
      expect(JSON.stringify(body.candidates)).to.contain('sunny')
    }
  })

  it('chooses functions as toolConfig says', async () => {
    await using api = await serveApi()
    const other = { name: 'other', parametersJsonSchema: { type: 'object' } }
    const ask = async (functionCallingConfig: object) => {
      const { body, text } = await api.ask({
        contents: [user('hi')],
        tools: [{ functionDeclarations: [WEATHER, other] }],
        toolConfig: { functionCallingConfig },
      })
      expect(body.candidates, text).to.have.length(1)
      return body.candidates[0].content.parts.map((part: { functionCall?: { name: string } }) => part.functionCall?.name)
    }
    expect(await ask({ mode: 'ANY', allowedFunctionNames: ['other'] })).to.deep.equal(['other'])
    expect((await ask({ mode: 'any' }))[0]).to.be.a('string')
    expect(await ask({ mode: 'NONE' })).to.deep.equal([undefined])
    expect(await ask({ mode: 'AUTO' })).to.deep.equal([undefined])
    expect(await ask({ mode: 'VALIDATED' })).to.deep.equal([undefined])
  })
})

describe('names of models', () => {
  it('can have slashes and colons: the last colon is before the method', async () => {
    const provider = scripted([[{ type: 'text', text: 'yes' }, USAGE, STOP]])
    const odd = { ...provider, models: async () => ({ models: [{ id: 'a/b/c:4b' }], open: false }) }
    await using api = await serveApi({ give: [item(Providers, 'odd', odd)] })
    for (const name of ['odd/a/b/c:4b', 'odd%2Fa%2Fb%2Fc%3A4b', 'a/b/c:4b']) {
      const { status, body, text } = await api.ask({ contents: [user('hi')] }, name)
      expect(status, text).to.equal(200)
      expect(textOf(body.candidates[0].content.parts)).to.equal('yes')
      const found = await api.get(`/v1beta/models/${name}`)
      expect([found.status, found.body.name]).to.deep.equal([200, `models/${decodeURIComponent(name)}`])
    }
  })

  it('of agents run the tools of svc inside', async () => {
    await using api = await serveApi({ profiles: { plain: { tools: ['current_time'] } } })
    for (const name of ['profile:plain', 'agent:plain']) {
      const { status, body, text } = await api.ask({ contents: [user('/tool current_time {}')] }, name)
      expect(status, text).to.equal(200)
      expect(body.candidates[0].content.parts.some((part: object) => 'functionCall' in part)).to.equal(false)
      expect(body.candidates[0].finishReason).to.equal('STOP')
    }
  })

  it('of agents show the reasoning of their model, and list what it does not get', async () => {
    const thinking: ModelEvent[] = [
      { type: 'reasoning', text: 'Let me' },
      { type: 'reasoning', text: ' see.', providerData: { signature: 'x' } },
      { type: 'text', text: 'yes' },
      USAGE,
      STOP,
    ]
    const provider = scripted([thinking], { supports: [] })
    await using api = await serveApi({
      give: [item(Providers, 'scripted', provider)],
      profiles: { own: { provider: 'scripted', model: 'm', tools: [] } },
    })
    const order = {
      contents: [user('hi')],
      safetySettings: [{}],
      generationConfig: { topK: 4, thinkingConfig: { includeThoughts: true, thinkingLevel: 'LOW' } },
    }
    const whole = await api.ask(order, 'profile:own')
    expect(whole.body.candidates[0].content.parts, whole.text).to.deep.equal([
      { text: 'Let me see.', thought: true },
      { text: 'yes' },
    ])
    const { chunks, headers } = await api.stream(order, 'profile:own')
    const thoughts = partsOf(chunks).filter(({ thought }) => thought)
    expect(thoughts.map(({ text }) => text).join('')).to.equal('Let me see.')
    for (const got of [whole.headers, headers])
      expect(got.get('x-svc-dropped')!.split(', ').toSorted()).to.deep.equal([
        'generationConfig.thinkingConfig',
        'generationConfig.topK',
        'safetySettings',
      ])
  })

  it('of agents: calls of the client come out, and the hidden steps are kept for the next request', async () => {
    await using api = await serveApi({ profiles: { plain: { tools: ['current_time'] } } })
    const question = user('/tool weather {"city":"Ulm"}')
    const first = await api.stream({ contents: [question], ...TOOLS }, 'profile:plain')
    const { functionCall } = partsOf(first.chunks).find(part => part.functionCall)
    expect(functionCall.id).to.match(/^svc_/)
    const response = { id: functionCall.id, name: 'weather', response: { result: 'rain' } }
    const contents = [question, model({ functionCall }), user({ functionResponse: response })]
    const { status, body, text } = await api.ask({ contents, ...TOOLS }, 'profile:plain')
    expect(status, text).to.equal(200)
    expect(JSON.stringify(body.candidates)).to.contain('rain')
  })
})

describe('version 1 of the API', () => {
  it('has the methods of models too, and its errors for clients that name an SDK of Google', async () => {
    await using api = await serveApi({ plugins: ['openai-api'], config: { api: { openai: { enabled: true } } } as never })
    const call = async (name: string, headers: Record<string, string> = {}) => {
      const response = await fetch(`${api.url}/v1/models/${name}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify({ contents: [user('hello')] }),
      })
      return { status: response.status, body: (await response.json()) as Any }
    }
    const { status, body } = await call(`${LOCAL}:generateContent`)
    expect([status, textOf(body.candidates[0].content.parts)]).to.deep.equal([200, 'You said: hello'])
    const sdk = { 'x-goog-api-client': 'google-genai-sdk/3.3.0' }
    expect((await call('local/none:generateContent', sdk)).body.error).to.include({ code: 404, status: 'NOT_FOUND' })
    expect((await call('local/none:generateContent')).body.error.code).to.equal('model_not_found')
    for (const [path, type] of [
      ['/v1/models/local/local-1', 'model'],
      ['/v1/models', 'list'],
    ] as const)
      expect((await api.get(path)).body.object).to.equal(type)
    expect((await api.get('/v1/models')).body.models).to.deep.equal([])
    const wanted = { name: 'models/local/local-1', displayName: LOCAL, inputTokenLimit: 1_048_576, outputTokenLimit: 4096 }
    expect((await api.get('/v1/models', sdk)).body.models[0]).to.include(wanted)
    expect((await api.get('/v1/models/local/local-1', sdk)).body).to.include(wanted)
  })
})

describe('the list of models', () => {
  it('has models and agents, page by page', async () => {
    await using api = await serveApi()
    const { status, body } = await api.get('/v1beta/models')
    expect(status).to.equal(200)
    const names = body.models.map(({ name }: { name: string }) => name)
    expect(names).to.include.members(['models/local/local-1', 'models/profile:default'])
    const local = body.models.find(({ name }: { name: string }) => name === 'models/local/local-1')
    expect(local.inputTokenLimit).to.equal(1_048_576)
    expect(local.supportedGenerationMethods).to.include.members(['generateContent', 'embedContent'])
    const paged: string[] = []
    for (let token = ''; ; ) {
      const page = await api.get(`/v1beta/models?pageSize=2&pageToken=${token}`)
      paged.push(...page.body.models.map(({ name }: { name: string }) => name))
      token = page.body.nextPageToken
      if (!token) break
    }
    expect(paged).to.deep.equal(names)
    const wrong = await api.get('/v1beta/models?pageToken=x')
    expect([wrong.status, wrong.body.error.status]).to.deep.equal([400, 'INVALID_ARGUMENT'])
    const unknown = await api.get('/v1beta/models/local/nope')
    expect([unknown.status, unknown.body.error.status]).to.deep.equal([404, 'NOT_FOUND'])
  })
})

describe('tokens and embeddings', () => {
  it('counts the tokens of a request, also one with a system instruction', async () => {
    await using api = await serveApi()
    const contents = [user('hello there')]
    const plain = await api.call(`${LOCAL}:countTokens`, { contents })
    expect(plain.body.totalTokens).to.be.above(0)
    const inner = {
      generateContentRequest: { model: `models/${LOCAL}`, contents, systemInstruction: { parts: [{ text: 'Be kind.' }] } },
    }
    const more = await api.call(`${LOCAL}:countTokens`, inner)
    expect(more.body.totalTokens).to.be.above(plain.body.totalTokens)
  })

  it('makes embeddings of one content, and of several in order', async () => {
    await using api = await serveApi()
    const one = await api.call(`${LOCAL}:embedContent`, { content: { parts: [{ text: 'a' }] }, taskType: 'RETRIEVAL_QUERY' })
    expect(one.status, one.text).to.equal(200)
    expect(one.headers.get('x-svc-dropped')).to.equal('taskType')
    const requests = ['a', 'b'].map(text => ({
      model: `models/${LOCAL}`,
      content: { parts: [{ text }] },
      outputDimensionality: 16,
    }))
    const many = await api.call(`${LOCAL}:batchEmbedContents`, { requests })
    expect(many.body.embeddings.map(({ values }: { values: number[] }) => values.length)).to.deep.equal([16, 16])
    expect(one.body.embedding.values.length).to.be.above(16)
    expect(many.body.usageMetadata.promptTokenCount).to.be.above(0)
    for (const [body, field] of [
      [{ requests: [] }, 'requests'],
      [{ requests: [{ ...requests[0], model: 'models/other' }] }, 'requests[0].model'],
      [{ requests: [requests[0], { ...requests[1], outputDimensionality: 8 }] }, 'requests[1].outputDimensionality'],
    ] as const) {
      const refused = await api.call(`${LOCAL}:batchEmbedContents`, body)
      expect([refused.status, refused.body.error.message]).to.satisfy(
        ([status, message]: [number, string]) => status === 400 && message.startsWith(field)
      )
    }
  })
})
