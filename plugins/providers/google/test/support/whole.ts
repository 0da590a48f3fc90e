import type { Reply } from '@svc/testing'

export const UNICODE = 'Grüße, 👩‍👩‍👧 🏳️‍🌈 e\u0301 한국어 𝕏'

type Part = { readonly [key: string]: unknown }
const USAGE = { promptTokenCount: 5, candidatesTokenCount: 4, totalTokenCount: 9 }
/** A whole response, as `generateContent` answers; without `finishReason` the model never said why it stopped. */
export const response = (parts: readonly Part[], finishReason?: string, more: object = {}) => ({
  candidates: [{ content: { role: 'model', parts }, index: 0, ...(finishReason ? { finishReason } : {}), ...more }],
  usageMetadata: USAGE,
  modelVersion: 'fake',
})
const call = (city: string, rest: Part = {}): Part => ({ functionCall: { name: 'weather', args: { city } }, ...rest })
const HALF = JSON.stringify(response([{ text: 'Hi' }], 'STOP')).slice(0, -30)

type Whole = (reply: Reply, body: { readonly contents: readonly unknown[] }) => unknown
const says =
  (...parts: Parameters<typeof response>): Whole =>
  reply =>
    reply.json(200, response(...parts))

/** How the models answer that answer otherwise where no stream was asked for. */
export const WHOLE: { readonly [model: string]: Whole } = {
  plain: says([{ text: 'Hello there' }], 'STOP'),
  tools: (reply, { contents }) => {
    if (contents.length > 1) return reply.json(200, response([{ text: 'Both are sunny.' }], 'STOP'))
    reply.json(200, response([{ text: 'I look.' }, call('Ulm', { thoughtSignature: 'c2ln' }), call('Bern')], 'STOP'))
  },
  bad: says([], 'MALFORMED_FUNCTION_CALL', {
    finishMessage: 'Malformed function call: print(default_api.weather(city=Ulm',
  }),
  length: says([{ text: 'one two' }], 'MAX_TOKENS'),
  async unicode(reply) {
    reply.begin({ 'content-type': 'application/json' })
    await reply.split(JSON.stringify(response([{ text: UNICODE }], 'STOP')))
    reply.end()
  },
  reasoning: says([{ text: 'Let me see.', thought: true }, { text: 'Hi' }], 'STOP'),
  filtered: says([{ text: 'Hello' }], 'SAFETY'),
  async cut(reply) {
    reply.begin({ 'content-type': 'application/json' })
    await reply.write(HALF)
    reply.cut()
  },
  'ends-early': says([{ text: 'Hi' }]),
  malformed: reply => reply.raw(200, 'application/json', HALF),
  'fail-content_refused': reply =>
    reply.json(200, { promptFeedback: { blockReason: 'PROHIBITED_CONTENT' }, usageMetadata: { promptTokenCount: 9 } }),
  midway: reply => reply.json(200, { error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } }),
}
