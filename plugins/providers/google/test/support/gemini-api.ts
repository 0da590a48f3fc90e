import { type FakeUpstream, openUpstream, type Received, type Reply } from '@svc/testing'
import { response, UNICODE, WHOLE } from './whole.ts'

/** The key that the fake server wants. */
export const KEY = 'AIzaCanary0123456789'

type Part = { readonly [key: string]: unknown }
type Body = {
  readonly contents: readonly { readonly role: string; readonly parts: readonly Part[] }[]
  readonly generationConfig?: { readonly [key: string]: unknown }
  readonly toolConfig?: unknown
}

const raw = (body: object): string => `data: ${JSON.stringify(body)}\r\n\r\n`
/** A frame of the stream. */
export const frame = (body: object): string => `data: ${JSON.stringify({ ...body, modelVersion: 'fake' })}\r\n\r\n`
const failure = (code: number, status: string, message: string, details: readonly object[] = []) => ({
  error: { code, message, status, ...(details.length > 0 ? { details } : {}) },
})

const USAGE = { promptTokenCount: 5, candidatesTokenCount: 4, totalTokenCount: 9 }
/** A response with these parts; `finishReason` and other members of the candidate in `rest`. */
export const says = (parts: readonly Part[], rest: object = {}, usageMetadata: object = USAGE): string =>
  frame({ candidates: [{ content: { role: 'model', parts }, index: 0, ...rest }], usageMetadata })
export const texts = (...pieces: string[]): string => pieces.map(text => says([{ text }])).join('')
export const ended = (finishReason: string, rest: object = {}): string => says([{ text: '' }], { finishReason, ...rest })
export const call = (name: string, args: object, rest: object = {}): Part => ({ functionCall: { name, args }, ...rest })

const RETRY = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '34.4s' }
const BAD_KEY = { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID' }

/** The frames of an original answer, also what svc does not read. */
export const NATIVE = [
  {
    candidates: [{ content: { role: 'model', parts: [{ text: 'Hello' }] }, index: 0, urlContextMetadata: {} }],
    responseId: 'r1',
  },
  {
    candidates: [{ content: { parts: [{ executableCode: { code: '1' } }] }, finishReason: 'STOP', index: 0 }],
    usageMetadata: USAGE,
  },
]
const settings = (body: Body) => body.generationConfig ?? {}
const tokens = (...all: string[]) => ({
  chosenCandidates: all.map(token => ({ token, tokenId: 1, logProbability: -0.5 })),
  topCandidates: all.map(token => ({
    candidates: [
      { token, logProbability: -0.5 },
      { token: 'x', logProbability: -3 },
    ],
  })),
})
const candidate = (index: number, rest: object = {}) => ({
  content: { role: 'model', parts: [{ text: `Hello ${index}` }] },
  index,
  ...rest,
})

/** Answers by the name of the model. */
const ANSWERS: { readonly [model: string]: (reply: Reply, body: Body, isWhole: boolean) => unknown } = {
  plain: reply => reply.end(texts('Hello', ' there') + ended('STOP')),
  endless: reply => reply.endless(at => texts(`word ${at} `)),
  silent: reply => reply.silence(),
  tools(reply, { contents }) {
    if (contents.length > 1) return reply.end(texts('Both are', ' sunny.') + ended('STOP'))
    const calls = [call('weather', { city: 'Ulm' }, { thoughtSignature: 'c2ln' }), call('weather', { city: 'Bern' })]
    reply.end(texts('I look.') + says([calls[0]!]) + says([calls[1]!]) + ended('STOP'))
  },
  bad: reply =>
    reply.end(ended('MALFORMED_FUNCTION_CALL', { finishMessage: 'Malformed function call: print(default_api.weather(city=Ulm' })),
  reasoning: reply =>
    reply.end(says([{ text: 'Let me', thought: true }]) + says([{ text: ' see.', thought: true }]) + texts('Hi') + ended('STOP')),
  stop: (reply, body, isWhole) => {
    const said = 'Hello there'.split((settings(body).stopSequences as string[])[0]!)[0]!
    return isWhole ? reply.json(200, response([{ text: said }], 'STOP')) : reply.end(texts(said) + ended('STOP'))
  },
  choices: (reply, body, isWhole) => {
    const all = Array.from({ length: Number(settings(body).candidateCount) }, (_, at) => at)
    if (isWhole)
      return reply.json(200, { candidates: all.map(at => candidate(at, { finishReason: 'STOP' })), usageMetadata: USAGE })
    const frames = all.toReversed().map(at => frame({ candidates: [candidate(at)] }))
    return reply.end(
      frames.join('') + frame({ candidates: all.map(index => ({ index, finishReason: 'STOP' })), usageMetadata: USAGE })
    )
  },
  logprobs: (reply, _, isWhole) => {
    const made = (text: string, finishReason?: string) =>
      response([{ text }], finishReason, { logprobsResult: tokens(...text.split(/(?=!)/)) })
    return isWhole ? reply.json(200, made('Hello!', 'STOP')) : reply.end(frame(made('Hello')) + frame(made('!', 'STOP')))
  },
  choice: (reply, body) => {
    const { functionCallingConfig } = body.toolConfig as { functionCallingConfig: { allowedFunctionNames: string[] } }
    reply.end(says([call(functionCallingConfig.allowedFunctionNames[0]!, {})]) + ended('STOP'))
  },
  data: reply => reply.end(texts('{"a":', '"b"}') + ended('STOP')),
  native: (reply, _, isWhole) =>
    isWhole
      ? reply.json(200, { ...response([{ text: 'Hello' }], 'STOP'), responseId: 'r1' })
      : reply.end(NATIVE.map(raw).join('')),
  filtered: reply => reply.end(texts('Hel', 'lo') + ended('SAFETY')),
  async cut(reply) {
    await reply.write(texts('Hi'))
    reply.cut()
  },
  'ends-early': reply => reply.end(texts('Hi')),
  malformed: reply => reply.end(`${texts('Hi')}data: {"candidates":[{"cont\n\n`),
  async stalled(reply) {
    await reply.write(texts('Hi'))
    await reply.silence()
  },
  length: reply => reply.end(texts('one two') + ended('MAX_TOKENS')),
  async unicode(reply) {
    await reply.split(texts(...Array.from(UNICODE)) + ended('STOP'))
    reply.end()
  },
  'fail-rate_limited': reply => reply.json(429, failure(429, 'RESOURCE_EXHAUSTED', 'You exceeded your quota', [RETRY])),
  'fail-overloaded': reply => reply.json(503, failure(503, 'UNAVAILABLE', 'The model is overloaded.')),
  'fail-bad_request': reply => reply.json(400, failure(400, 'INVALID_ARGUMENT', `Unknown name "x" ${KEY}`)),
  'fail-authentication': reply =>
    reply.json(400, failure(400, 'INVALID_ARGUMENT', `API key not valid: ${KEY}. Please pass a valid API key.`, [BAD_KEY])),
  'fail-context_too_long': reply =>
    reply.json(400, [
      failure(400, 'INVALID_ARGUMENT', 'The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).'),
    ]),
  'fail-content_refused': reply =>
    reply.end(frame({ promptFeedback: { blockReason: 'PROHIBITED_CONTENT' }, usageMetadata: { promptTokenCount: 9 } })),
  'fail-network': reply => reply.cut(),
  'fail-timeout': reply => reply.json(504, failure(504, 'DEADLINE_EXCEEDED', 'Deadline expired')),
  midway: reply => reply.end(texts('a', ' b') + frame(failure(503, 'UNAVAILABLE', 'The model is overloaded.'))),
}

const METHOD = /^\/v1beta\/models\/([\w.-]+):(?:streamGenerateContent\?alt=sse|(generateContent))$/

const EMBED = /^\/v1beta\/models\/embedding-1:batchEmbedContents$/

interface AskedVector {
  readonly model: string
  readonly content: { readonly parts: readonly { readonly text: string }[] }
  readonly outputDimensionality?: number
}
const vectorsOf = (body: unknown) =>
  (body as { requests: readonly AskedVector[] }).requests.map(({ content, outputDimensionality = 4 }) => ({
    values: Array.from({ length: outputDimensionality }, (_, at) => (at === 0 ? content.parts[0]!.text.length : at / 8)),
  }))

/** A server that speaks the generateContent API, and refuses what the real one refuses. */
export function openGeminiApi(answers: typeof ANSWERS = {}): Promise<FakeUpstream> {
  return openUpstream((received, reply) => {
    const fault = faultOf(received)
    if (fault) return reply.json(fault.error.code, fault)
    if (received.method === 'GET') return reply.json(200, { models: MODELS })
    if (EMBED.test(received.path)) return reply.json(200, { embeddings: vectorsOf(received.body) })
    const [, model = '', whole] = METHOD.exec(received.path) ?? []
    const answer = answers[model] ?? (whole ? WHOLE[model] : undefined) ?? ANSWERS[model]
    return answer
      ? answer(reply, received.body as Body, whole !== undefined)
      : reply.json(404, failure(404, 'NOT_FOUND', `models/${model} is not found`))
  })
}

const MODELS = [
  {
    name: 'models/plain',
    inputTokenLimit: 1_048_576,
    outputTokenLimit: 65_536,
    supportedGenerationMethods: ['generateContent'],
    thinking: true,
  },
  { name: 'models/embedding-1', inputTokenLimit: 2048, outputTokenLimit: 1, supportedGenerationMethods: ['embedContent'] },
]

function faultOf({ method, path, headers, body }: Received) {
  const wrong = (message: string) => failure(400, 'INVALID_ARGUMENT', message)
  if (headers['x-goog-api-key'] !== KEY)
    return failure(400, 'INVALID_ARGUMENT', 'API key not valid. Please pass a valid API key.')
  if (path.includes(KEY)) return wrong('the key is in the address')
  if (EMBED.test(path)) {
    const { requests } = body as { requests: readonly AskedVector[] }
    return requests.length <= 100 && requests.every(one => one.model === 'models/embedding-1') ? undefined : wrong('requests')
  }
  if (!(method === 'GET' ? /^\/v1beta\/models\?pageSize=/ : METHOD).test(path)) return failure(404, 'NOT_FOUND', path)
  if (method === 'GET') return undefined
  const { contents } = body as Body
  if (contents.length === 0 || contents.some(content => content.parts.length === 0))
    return wrong('contents.parts must not be empty.')
  const lost = contents.some(
    (content, at) => count(content.parts, 'functionCall') !== count(contents[at + 1]?.parts, 'functionResponse')
  )
  if (lost) return wrong('the number of function response parts is not equal to the number of function call parts')
  return contents.some(content => unsigned(content.parts)) ? wrong('Function call is missing a thought_signature') : undefined
}

const count = (parts: readonly Part[] = [], member: string) => parts.filter(part => part[member] !== undefined).length
const unsigned = (parts: readonly Part[]) => {
  const first = parts.find(part => part.functionCall !== undefined)
  return first !== undefined && typeof first.thoughtSignature !== 'string'
}
