import { any, exact, exchange, geminiRefused, GEMINI_BODY, get, ok, post } from '../../exchange.ts'

const MODEL = '/v1beta/models/local/local-1'
const generate = (body: object) => post(`${MODEL}:generateContent`, { ...GEMINI_BODY, ...body })

export default exchange({
  rule: 'answers the Gemini API at /v1beta/models, with errors in its form',
  source: 'issue 24, 6 and 9: errors in the dialect; the Gemini wire as a third plugin',
  steps: [
    {
      request: generate({}),
      expect: ok({
        candidates: [exact({ content: { parts: [{ text: 'You said: hi' }], role: 'model' }, finishReason: 'STOP', index: 0 })],
        usageMetadata: { totalTokenCount: any('number') },
        modelVersion: 'local/local-1',
      }),
    },
    { request: post(`${MODEL}:streamGenerateContent`, GEMINI_BODY), expect: ok(any('array')) },
    { request: post(`${MODEL}:countTokens`, GEMINI_BODY), expect: ok(exact({ totalTokens: any('number') })) },
    {
      request: post(`${MODEL}:embedContent`, { content: { parts: [{ text: 'hi' }] } }),
      expect: ok({ embedding: { values: any('array') } }),
    },
    { request: get('/v1beta/models?pageSize=1'), expect: ok({ models: any('array'), nextPageToken: '1' }) },
    { request: get(MODEL), expect: ok({ name: 'models/local/local-1', outputTokenLimit: 4096 }) },
    { request: generate({ contents: [] }), expect: geminiRefused(400) },
    { request: generate({ generationConfig: { candidateCount: 2 } }), expect: geminiRefused(400) },
    { request: post('/v1beta/models/local/nope:generateContent', GEMINI_BODY), expect: geminiRefused(404) },
    { request: post(`${MODEL}:nothing`, GEMINI_BODY), expect: geminiRefused(404) },
    { request: get('/v1beta/nothing'), expect: geminiRefused(404) },
  ],
})
