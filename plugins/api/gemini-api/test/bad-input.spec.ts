import { once } from 'node:events'
import { connect } from 'node:net'
import { type ModelEvent, Providers } from '@svc/core/contracts'
import { item } from '@svc/testing'
import { expect } from 'chai'
import { type Body, LOCAL, model, scripted, serveApi, user } from './support/api.ts'

const NO_IMAGE = Buffer.from('this is no image').toString('base64')
const blob = (mimeType: unknown, data: unknown) => ({ contents: [user({ inlineData: { mimeType, data } })] })
const call = (more: object = {}) => model({ functionCall: { name: 'weather', args: {}, ...more } })
const result = (more: object = {}) => user({ functionResponse: { name: 'weather', response: {}, ...more } })
const contents = [user('hi')]
const config = (generationConfig: object) => ({ contents, generationConfig })
const WEATHER = { name: 'weather', parametersJsonSchema: { type: 'object' } }
const tools = (...functionDeclarations: unknown[]) => ({ contents, tools: [{ functionDeclarations }] })
const choice = (functionCallingConfig: object) => ({ ...tools(WEATHER), toolConfig: { functionCallingConfig } })

/** Bodies that are refused, and how the error begins. */
const REFUSED: readonly [Body, string][] = [
  [{}, 'contents must be a list'],
  [{ contents: [] }, 'contents must have at least one'],
  [{ contents: [{ role: 'user', parts: [{ text: '' }] }] }, 'contents must have at least one part'],
  [{ contents: 'hi' }, 'contents must be a list'],
  [{ contents: [null] }, 'contents[0] must be an object'],
  [{ contents: [{ role: 'system', parts: [] }] }, 'contents[0].role must be "user" or "model"'],
  [{ contents: [{ role: 5, parts: [] }] }, 'contents[0].role must be a string'],
  [{ contents: [{ parts: 'x' }] }, 'contents[0].parts must be a list'],
  [{ contents: [user(5)] }, 'contents[0].parts[0] must be an object'],
  [{ contents: [user({})] }, 'contents[0].parts[0] must have a text'],
  [{ contents: [user({ text: 5 })] }, 'contents[0].parts[0].text must be a string'],
  [{ contents: [user({ text: 'a', inlineData: {} })] }, 'contents[0].parts[0] must have one of text, inlineData'],
  [{ contents: [result()] }, 'contents[0].parts[0].functionResponse must be of an earlier functionCall'],
  [{ contents: [...contents, call(), result(), result()] }, 'contents[3].parts[0].functionResponse must be of an earlier'],
  [{ contents: [...contents, call({ id: 'a' }), result({ id: 'b' })] }, 'contents[2].parts[0].functionResponse must be of'],
  [{ contents: [...contents, call(), result({ name: 'other' })] }, 'contents[2].parts[0].functionResponse must be of'],
  [{ contents: [...contents, call({ id: 'a' }), call({ id: 'a' })] }, 'contents[2].parts[0].functionCall.id must be unique'],
  [{ contents: [...contents, call({ args: 'x' })] }, 'contents[1].parts[0].functionCall.args must be an object'],
  [{ contents: [...contents, call({ name: '' })] }, 'contents[1].parts[0].functionCall.name must have'],
  [{ contents: [...contents, call(), result({ response: 'x' })] }, 'contents[2].parts[0].functionResponse.response must be'],
  [{ contents: [model({ inlineData: { mimeType: 'image/png', data: 'x' } })] }, 'contents must have at least one part'],
  [{ contents: [...contents, model({ fileData: {} })] }, 'contents[1].parts[0].fileData is not supported'],
  [blob('image/png', NO_IMAGE), 'contents[0].parts[0].inlineData.data is not an image of the type image/png'],
  [blob('image/png', '%%%'), 'contents[0].parts[0].inlineData.data must be base64'],
  [blob('image/png', ''), 'contents[0].parts[0].inlineData.data must be base64'],
  [blob('image/tiff', 'AAAA'), 'contents[0].parts[0].inlineData.mimeType must be one of'],
  [blob('png', 'AAAA'), 'contents[0].parts[0].inlineData.mimeType must be a media type'],
  [blob(5, 'AAAA'), 'contents[0].parts[0].inlineData.mimeType must be a string'],
  [
    { contents: [user({ fileData: { fileUri: 'file:///etc/passwd' } })] },
    'contents[0].parts[0].fileData.fileUri must be an http',
  ],
  [
    { contents: [user({ fileData: { fileUri: 'https://generativelanguage.googleapis.com/v1beta/files/x' } })] },
    'contents[0].parts[0].fileData.fileUri must be an http',
  ],
  [{ contents, systemInstruction: 5 }, 'systemInstruction must be an object'],
  [{ contents, systemInstruction: { parts: [{ inlineData: {} }] } }, 'systemInstruction.parts[0] must have a text'],
  [{ contents, cachedContent: 'cachedContents/x' }, 'cachedContent is not supported'],
  [config([]), 'generationConfig must be an object'],
  [config({ candidateCount: 2 }), 'generationConfig.candidateCount must be 1'],
  [config({ temperature: 2.5 }), 'generationConfig.temperature must be a number from 0 to 2'],
  [config({ temperature: '1' }), 'generationConfig.temperature must be a number'],
  [config({ topP: 0 }), 'generationConfig.topP must be above 0'],
  [config({ topK: -1 }), 'generationConfig.topK must be an integer'],
  [config({ maxOutputTokens: 0 }), 'generationConfig.maxOutputTokens must be an integer of at least 1'],
  [config({ seed: 1.5 }), 'generationConfig.seed must be an integer'],
  [config({ stopSequences: 'x' }), 'generationConfig.stopSequences must be a list'],
  [config({ stopSequences: [''] }), 'generationConfig.stopSequences[0] must have 1 to'],
  [config({ stopSequences: ['1', '2', '3', '4', '5'] }), 'generationConfig.stopSequences must have at most 4'],
  [config({ presencePenalty: 3 }), 'generationConfig.presencePenalty must be a number from -2 to 2'],
  [config({ frequencyPenalty: 1 }), 'generationConfig.frequencyPenalty is not supported'],
  [config({ logprobs: 5 }), 'generationConfig.responseLogprobs must be true'],
  [config({ responseLogprobs: true, logprobs: 21 }), 'generationConfig.logprobs must be an integer from 0 to 20'],
  [config({ responseMimeType: 'text/x.enum' }), 'generationConfig.responseMimeType must be text/plain or'],
  [config({ responseSchema: { type: 'OBJECT' } }), 'generationConfig.responseMimeType must be application/json'],
  [
    config({ responseMimeType: 'application/json', responseSchema: {}, responseJsonSchema: {} }),
    'generationConfig.responseJsonSchema must be absent',
  ],
  [config({ responseModalities: ['IMAGE'] }), 'generationConfig.responseModalities must be TEXT'],
  [config({ speechConfig: {} }), 'generationConfig.speechConfig is not supported'],
  [config({ thinkingConfig: 5 }), 'generationConfig.thinkingConfig must be an object'],
  [config({ thinkingConfig: { includeThoughts: 1 } }), 'generationConfig.thinkingConfig.includeThoughts must be true or false'],
  [config({ thinkingConfig: { thinkingBudget: -2 } }), 'generationConfig.thinkingConfig.thinkingBudget must be'],
  [config({ thinkingConfig: { thinkingLevel: 'much' } }), 'generationConfig.thinkingConfig.thinkingLevel must be one of'],
  [
    config({ thinkingConfig: { thinkingLevel: 'LOW', thinkingBudget: 5 } }),
    'generationConfig.thinkingConfig.thinkingLevel must be absent',
  ],
  [{ contents, tools: {} }, 'tools must be a list'],
  [{ contents, tools: [5] }, 'tools[0] must be an object'],
  [tools(5), 'tools[0].functionDeclarations[0] must be an object'],
  [tools({}), 'tools[0].functionDeclarations[0].name must be a string'],
  [tools({ name: 'a b' }), 'tools[0].functionDeclarations[0].name must have'],
  [tools(WEATHER, WEATHER), 'tools[0].functionDeclarations[1].name must be unique'],
  [tools({ ...WEATHER, parameters: {} }), 'tools[0].functionDeclarations[0].parametersJsonSchema must be absent'],
  [choice({ mode: 'SOME' }), 'toolConfig.functionCallingConfig.mode must be AUTO'],
  [choice({ mode: 'ANY', allowedFunctionNames: ['x'] }), 'toolConfig.functionCallingConfig.allowedFunctionNames[0] must be'],
  [{ contents, toolConfig: { functionCallingConfig: { mode: 'ANY' } } }, 'toolConfig.functionCallingConfig.mode is "ANY"'],
]

describe('a request that is not valid', () => {
  it('is refused with 400 in the form of Google, by the name of the field', async () => {
    await using api = await serveApi()
    for (const [body, message] of REFUSED) {
      const { status, body: answer, headers, text } = await api.ask(body)
      expect([status, answer?.error?.code, answer?.error?.status], `${message}: ${text}`).to.deep.equal([
        400,
        400,
        'INVALID_ARGUMENT',
      ])
      expect(answer.error.message.slice(0, message.length)).to.equal(message)
      expect(answer.error.details.map((one: { '@type': string }) => one['@type'])).to.deep.equal([
        'type.googleapis.com/google.rpc.ErrorInfo',
        'type.googleapis.com/google.rpc.BadRequest',
      ])
      expect(headers.get('x-should-retry')).to.equal('false')
    }
  })

  it('is refused by the server in the same form', async () => {
    await using api = await serveApi()
    const bad: [string, Record<string, string>, number][] = [
      ['{', {}, 400],
      ['[]', {}, 400],
      ['x', { 'content-type': 'text/plain' }, 415],
      [`{"contents":${'['.repeat(500)}${']'.repeat(500)}}`, {}, 400],
    ]
    for (const [body, headers, status] of bad) {
      const response = await api.call(`${LOCAL}:generateContent`, body, headers)
      expect([response.status, response.body.error.status], body.slice(0, 40)).to.deep.equal([status, 'INVALID_ARGUMENT'])
    }
    for (const path of [`${LOCAL}:nope`, LOCAL, ':generateContent:', `${LOCAL}:__proto__`]) {
      const { status, body } = await api.call(path, { contents })
      expect([status, body.error.status], path).to.deep.equal([404, 'NOT_FOUND'])
    }
    for (const path of ['/v1beta/nothing', '/v1beta/files/x', '/v1beta']) {
      const { status, body } = await api.get(path)
      expect([status, body.error.status], path).to.deep.equal([404, 'NOT_FOUND'])
    }
    const empty = await api.call(':generateContent', { contents })
    expect([empty.status, empty.body.error.status]).to.deep.equal([400, 'INVALID_ARGUMENT'])
    const deleted = await fetch(`${api.url}/v1beta/models/${LOCAL}`, { method: 'DELETE' })
    expect([deleted.status, ((await deleted.json()) as { error: { code: number } }).error.code]).to.deep.equal([405, 405])
  })

  it('names a model that does not exist, for each method', async () => {
    await using api = await serveApi()
    for (const method of ['generateContent', 'streamGenerateContent', 'streamGenerateContent?alt=sse', 'countTokens']) {
      const { status, body } = await api.call(`local/nope:${method}`, { contents })
      expect([status, body.error?.status], method).to.deep.equal([404, 'NOT_FOUND'])
    }
    const { status } = await api.call('local/nope:embedContent', { content: { parts: [{ text: 'x' }] } })
    expect(status).to.equal(404)
  })

  it('may have long lists, deep schemas and odd signatures', async () => {
    await using api = await serveApi()
    const many = Array.from({ length: 5_000 }, (_, at) => ({ ...WEATHER, name: `tool_${at}`, description: 'x'.repeat(100) }))
    const listed = await api.ask(tools(...many))
    expect([listed.status, listed.body.error.status], listed.text.slice(0, 300)).to.deep.equal([400, 'INVALID_ARGUMENT'])
    expect(listed.body.error.message).to.contain('tools must have at most 1024 tools')
    const split = { contents, tools: [many.slice(0, 600), many.slice(600, 1_025)].map(part => ({ functionDeclarations: part })) }
    expect((await api.ask(split)).status).to.equal(400)
    expect((await api.ask(tools(...many.slice(0, 1_024)))).status).to.equal(200)
    let schema: object = { type: 'STRING' }
    for (let depth = 0; depth < 40; depth++) schema = { type: 'OBJECT', properties: { a: schema } }
    expect((await api.ask(tools({ name: 'deep', parameters: schema }))).status).to.equal(200)
    const names = Object.fromEntries(Array.from({ length: 3_000 }, (_, at) => [`field_${at}_é\n`, 1]))
    const { status, headers } = await api.ask({ contents, ...names })
    expect(status).to.equal(200)
    expect(headers.get('x-svc-dropped')!.length).to.be.at.most(1_000)
    const mark = Buffer.from('svc-1.').toString('base64')
    const forged = [
      '',
      `${mark}%%`,
      mark,
      mark + Buffer.from('{"provider":"local","entries":[{"of":"x"}]}').toString('base64'),
      5,
      {},
    ]
    for (const thoughtSignature of forged) {
      const signed = await api.ask({ contents: [user('a'), model({ text: 'b', thoughtSignature }), user('c')] })
      expect(signed.status, signed.text).to.equal(200)
      expect(signed.headers.has('x-svc-dropped')).to.equal(thoughtSignature !== '')
    }
  })

  it('may be as long as 32 MiB, and no longer', async () => {
    await using api = await serveApi()
    const limit = 32 * 1024 * 1024
    const body = (size: number) => {
      const empty = JSON.stringify({ contents: [user({ inlineData: { mimeType: 'application/pdf', data: '' } })] })
      return empty.replace('"data":""', `"data":"${'A'.repeat(size - empty.length)}"`)
    }
    const fits = await api.call(`${LOCAL}:generateContent`, body(limit))
    expect(fits.status, fits.text.slice(0, 300)).to.equal(200)
    const long = await api.call(`${LOCAL}:generateContent`, body(limit + 1)).catch((error: Error) => error)
    if (!(long instanceof Error)) expect([long.status, long.body.error.status]).to.deep.equal([413, 'INVALID_ARGUMENT'])
  })
})

describe('credentials', () => {
  it('are in x-goog-api-key or another header of svc, and never in the query', async () => {
    const KEY = 'key-canary-of-gemini-4711'
    process.env.SVC_API_KEY = KEY
    try {
      await using api = await serveApi({ plugins: ['auth-api-key'], config: { server: { auth: { enabled: true } } } as never })
      for (const [header, value] of [
        ['x-goog-api-key', KEY],
        ['authorization', `Bearer ${KEY}`],
        ['x-api-key', KEY],
      ] as const)
        expect((await api.get('/v1beta/models', { [header]: value })).status).to.equal(200)
      const refused: [string, Record<string, string>][] = [
        ['/v1beta/models', {}],
        [`/v1beta/models?key=${KEY}`, {}],
        ['/v1beta/models', { 'x-goog-api-key': 'wrong' }],
        ['/v1beta/models', { 'x-goog-api-key': KEY, authorization: 'Bearer other' }],
      ]
      for (const [path, headers] of refused) {
        const { status, body, text } = await api.get(path, headers)
        expect([status, body.error?.status], JSON.stringify(headers)).to.deep.equal([401, 'UNAUTHENTICATED'])
        expect(text).to.not.contain(KEY)
      }
    } finally {
      delete process.env.SVC_API_KEY
    }
  })
})

describe('a client', () => {
  it('that never reads does not stop others, and a client that leaves ends its call', async () => {
    const piece: ModelEvent = { type: 'text', text: 'x'.repeat(10_000) }
    let isEnded = false
    const endless = scripted([])
    endless.chat = async function* () {
      try {
        for (;;) {
          yield piece
          await new Promise(resolve => setImmediate(resolve))
        }
      } finally {
        isEnded = true
      }
    }
    await using api = await serveApi({ give: [item(Providers, 'endless', endless)] })
    const { port } = new URL(api.url)
    const socket = connect(Number(port), '127.0.0.1')
    const body = JSON.stringify({ contents })
    socket.write(
      `POST /v1beta/models/endless/m:streamGenerateContent HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
    )
    await once(socket, 'readable')
    expect((await api.ask({ contents })).status).to.equal(200)
    socket.destroy()
    const until = Date.now() + 20_000
    while (!isEnded && Date.now() < until) await new Promise(resolve => setTimeout(resolve, 20))
    expect(isEnded).to.equal(true)
  })
})
