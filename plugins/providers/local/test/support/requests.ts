import type { MessagePart, ModelRequest } from '@svc/core/contracts'
import { FAILURE_KINDS, type ProviderRequests, weatherRound } from '@svc/testing'
import { offered, says } from './local.ts'

const tools = says('/tool weather {"city": "Ulm"}\n/tool weather {"city": "Bern"}', { tools: offered('weather', 'news') })

const city = {
  type: 'object',
  properties: { city: { type: 'string' }, days: { type: 'integer', minimum: 1 } },
  required: ['city', 'days'],
}
const typed = [...offered('news'), { name: 'weather', description: 'the weather', parameters: city }]
const schema = {
  type: 'object',
  properties: { title: { type: 'string' }, kind: { enum: ['a', 'b'] }, size: { type: 'integer', minimum: 3, multipleOf: 5 } },
  required: ['title', 'kind', 'size', 'more'],
  additionalProperties: { type: 'boolean' },
}
const words = (more: Partial<ModelRequest> = {}): ModelRequest => says('a few words of a message', more)
const pair = (more: Partial<ModelRequest>, without: Partial<ModelRequest> = {}) => [words(more), words(without)] as const
const twice = (more: Partial<ModelRequest> = {}) => ({ ...tools, ...more })
const having = (part: MessagePart): readonly [ModelRequest, ModelRequest] => {
  const [first] = words().messages
  return [{ ...words(), messages: [{ ...first!, parts: [...first!.parts, part] }] }, words()]
}

/** What the provider kit asks the local provider. */
export const LOCAL_REQUESTS: ProviderRequests = {
  plain: says('a message of a few words'),
  endless: says(`/pace 5\n${'many words '.repeat(1000)}`),
  silent: says('/delay 3600000\nnever'),
  stalled: says('/pace 3600000\nsome words'),
  tools: weatherRound(tools),
  length: says('one two three four five six seven eight nine', { maxTokens: 5 }),
  unicode: { request: says('Grüße, 👩‍👩‍👧 🏳️‍🌈 e\u0301 한국어 𝕏'), text: 'You said: Grüße, 👩‍👩‍👧 🏳️‍🌈 e\u0301 한국어 𝕏' },
  failures: Object.fromEntries(FAILURE_KINDS.map(kind => [kind, says(`/fail ${kind}`)])),
  reasoning: {
    request: words({ reasoningEffort: 'minimal' }),
    text: 'Thought 1 of 1: the message is "a few words of a message".\n',
  },
  features: {
    stop: { request: words({ stop: ['never', ' of', 'message'] }), text: 'You said: a few words', stopText: ' of' },
    seed: words({ seed: 7, temperature: 1 }),
    n: words({ n: 3 }),
    logprobs: words({ logprobs: 3 }),
    tool_choice: words({ tools: typed, toolChoice: { tool: 'weather' } }),
    tool_call_deltas: tools,
    json: words({ responseFormat: 'json' }),
    response_schema: words({ responseSchema: schema }),
    embeddings: { model: 'local-1', input: ['a cat', 'a dog sits', [9906, 1917]], dimensions: 64 },
  },
  effects: {
    stop: pair({ stop: ['words'] }),
    top_p: pair({ topP: 0.1 }),
    top_k: pair({ topK: 1 }),
    seed: pair({ seed: 7 }),
    n: pair({ n: 2 }),
    logprobs: pair({ logprobs: 0 }),
    reasoning_effort: pair({ reasoningEffort: 'high' }, { reasoningEffort: 'low' }),
    parallel_tool_calls: [twice({ parallelToolCalls: false }), twice()],
    strict_tools: [
      says('/tool weather {"city": 1}', { tools: [{ ...typed[1]!, strict: true }] }),
      says('/tool weather {"city": 1}', { tools: [typed[1]!] }),
    ],
    tool_choice: pair({ tools: typed, toolChoice: { tool: 'weather' } }, { tools: typed }),
    json: pair({ responseFormat: 'json' }),
    response_schema: pair({ responseSchema: schema }),
    high_temperature: pair({ temperature: 1.9 }, { temperature: 0.2 }),
    image_urls: having({ type: 'image_url', url: 'https://images.example/cat.png' }),
    files: having({ type: 'file', data: 'aGVsbG8=', mimeType: 'application/pdf', name: 'report.pdf' }),
    audio: having({ type: 'audio', data: 'aGVsbG8=', mimeType: 'audio/wav' }),
  },
  midway: { request: says('a few words\n/fail network after 2'), kind: 'network' },
}
