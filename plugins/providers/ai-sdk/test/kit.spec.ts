import { expect } from 'chai'
import type { ModelFailureKind } from '@svc/core/contracts'
import { type FeatureSamples, type ProviderRequests, providerKit, weatherRound } from '@svc/testing'
import { MESSAGES } from './support/anthropic-wire.ts'
import { DIALECTS, V2 } from './support/dialects.ts'
import { CHAT, RESPONSES } from './support/openai-wires.ts'
import { behaving, CANARY, type Dialect, openRig, says, UNICODE, WEATHER } from './support/rig.ts'

const round = weatherRound(says('tools', { tools: [WEATHER] }), 'mine')

const NEWS = { ...WEATHER, name: 'news' }
const SCHEMA = {
  type: 'object',
  properties: { a: { type: 'string' } },
  required: ['a'],
  additionalProperties: false,
}

/** The features that a wire has, and its package carries. */
const featuresOf = (dialect: Dialect): FeatureSamples => ({
  ...wireFeatures(dialect),
  ...(tellsLogprobs(dialect) ? { logprobs: says('probable', { logprobs: 2 }) } : {}),
})

/** Version 2 of the package forgets those of all chunks of a chat completion but the last one. */
const tellsLogprobs = (dialect: Dialect) => dialect.wire !== MESSAGES && dialect !== V2

const wireFeatures = ({ wire }: Dialect): FeatureSamples => ({
  ...(wire === RESPONSES ? {} : { stop: { request: says('stop', { stop: [' there'] }), text: 'Hello' } }),
  ...(wire === CHAT ? { seed: says('plain', { seed: 7 }) } : {}),
  tool_choice: says('choice', { tools: [WEATHER, NEWS], toolChoice: { tool: 'news' } }),
  tool_call_deltas: says('tools', { tools: [WEATHER] }),
  ...(wire === MESSAGES ? {} : { json: says('data', { responseFormat: 'json' }) }),
  response_schema: says(wire === MESSAGES ? 'claude-sonnet-4-5-data' : 'data', { responseSchema: SCHEMA }),
  ...(wire === MESSAGES ? {} : { embeddings: { model: 'text-embedding-3-small', input: ['one', 'second text'], dimensions: 3 } }),
})

const requestsOf = (dialect: Dialect): ProviderRequests => ({ ...baseOf(dialect), features: featuresOf(dialect) })

const baseOf = ({ wire }: Dialect): ProviderRequests => ({
  plain: says('plain'),
  endless: says('endless'),
  silent: says('silent'),
  tools: round,
  badArguments: says('bad-arguments', { tools: [WEATHER] }),
  length: says('length', { maxTokens: 20 }),
  unicode: { request: says('unicode'), text: UNICODE },
  failures: Object.fromEntries(
    [...(Object.keys(wire.refusals('')) as ModelFailureKind[]), 'network' as const].map(kind => [kind, says(`fail-${kind}`)])
  ),
  midway: { request: says('cut'), kind: 'network' },
  cut: says('cut'),
  endsEarly: says('early'),
  malformed: says('malformed'),
  stalled: says('stalled'),
  filtered: says('filtered'),
  retryAfter: { request: says('fail-rate_limited'), ms: 2000 },
  usage: { request: says('plain'), usage: wire.usage },
  pieces: round,
  ...(wire.thoughts ? { reasoning: { request: says('thoughts'), text: 'let me think' } } : {}),
})

/** What a wire has no words for, in those of the kit. */
const missing = (...features: readonly string[]) => [...features.map(feature => `\`features.${feature}\``), '`native`']
const LACKS = new Map([
  [CHAT, ['`reasoning`', ...missing('n')]],
  [RESPONSES, missing('stop', 'seed', 'n')],
  [MESSAGES, ['`failures.content_refused`', ...missing('seed', 'n', 'logprobs', 'json', 'embeddings')]],
])

for (const dialect of DIALECTS)
  describe(`provider-ai-sdk by the provider kit, ${dialect.title}`, () => {
    const open = async () => {
      const { provider, upstream, close } = await openRig(dialect, behaving(dialect.wire))
      const sent = () => upstream.received.findLast(({ method }) => method === 'POST')?.body
      return { provider, connections: () => upstream.open(), sent, close }
    }
    const cases = providerKit(open, requestsOf(dialect), { secrets: [CANARY], concurrent: 200 })
    it('leaves nothing of the kit out but what its wire has not', () => {
      const leftOut = new Set(cases.flatMap(testCase => testCase.skipped ?? []))
      const lacks = LACKS.get(dialect.wire) ?? []
      expect([...leftOut]).to.have.members(dialect === V2 ? [...lacks, '`features.logprobs`'] : lacks)
    })
    for (const testCase of cases) if (testCase.skipped === undefined) it(testCase.title, testCase.run)
  })
