import type { Json, ModelMessage, ModelRequest } from '@svc/core/contracts'
import { FAILURE_KINDS, type ProviderRequests, weatherRound } from '@svc/testing'
import { UNICODE } from './whole.ts'
import { NATIVE } from './wire.ts'

export const user = (text: string): ModelMessage => ({ role: 'user', parts: [{ type: 'text', text }] })
export const asks = (model: string, more: Partial<ModelRequest> = {}): ModelRequest => ({
  model,
  messages: [user('What is it?')],
  ...more,
})
export const offered = (...names: string[]) =>
  names.map(name => ({ name, description: `the tool ${name}`, parameters: { type: 'object' } }))

/** What the provider kit asks: the fake server knows each model by what it does. */
export const REQUESTS: ProviderRequests = {
  plain: asks('plain'),
  endless: asks('endless'),
  silent: asks('silent'),
  stalled: asks('stalled'),
  tools: weatherRound(asks('tools', { tools: offered('weather') })),
  pieces: {
    request: asks('pieces', { tools: offered('weather', 'news') }),
    calls: [
      { tool: 'weather', arguments: { city: 'Ülm' } },
      { tool: 'news', arguments: { days: [1, 2] } },
    ],
  },
  badArguments: asks('badArguments', { tools: offered('weather') }),
  length: asks('length', { maxTokens: 2 }),
  unicode: { request: asks('unicode'), text: UNICODE },
  usage: { request: asks('plain'), usage: { input: 12, output: 7, cached: 5, reasoning: 3 } },
  reasoning: { request: asks('reasoning'), text: 'Let me think' },
  filtered: asks('filtered'),
  failures: Object.fromEntries(FAILURE_KINDS.map(kind => [kind, asks(kind)])),
  retryAfter: { request: asks('rate_limited'), ms: 3000 },
  midway: { request: asks('midway'), kind: 'overloaded' },
  cut: asks('cut'),
  endsEarly: asks('endsEarly'),
  malformed: asks('malformed'),
  features: {
    stop: { request: asks('stop', { stop: [' wo'] }), text: 'Hello,' },
    seed: asks('plain', { seed: 7 }),
    n: asks('choices', { n: 3 }),
    logprobs: asks('logprobs', { logprobs: 2 }),
    tool_choice: asks('choice', { tools: offered('weather', 'news'), toolChoice: { tool: 'news' } }),
    tool_call_deltas: asks('pieces', { tools: offered('weather', 'news') }),
    json: asks('data', { responseFormat: 'json' }),
    response_schema: asks('data', {
      responseSchema: { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] },
    }),
    embeddings: { model: 'text-embedding-3', input: ['one', 'second text'], dimensions: 3 },
  },
  native: {
    request: asks('native', { native: { protocol: 'openai-chat', body: { messages: [], service_tier: 'flex' } } }),
    events: NATIVE.map(text => ({ data: JSON.parse(text.slice('data: '.length)) as Json })),
  },
}
