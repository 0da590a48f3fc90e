import { expect } from 'chai'
import type { ModelFailureKind } from '@svc/core/contracts'
import { type ProviderRequests, providerKit, weatherRound } from '@svc/testing'
import { MESSAGES } from './support/anthropic-wire.ts'
import { DIALECTS } from './support/dialects.ts'
import { CHAT } from './support/openai-wires.ts'
import { behaving, CANARY, type Dialect, openRig, says, UNICODE, WEATHER } from './support/rig.ts'

const round = weatherRound(says('tools', { tools: [WEATHER] }), 'mine')

const requestsOf = ({ wire }: Dialect): ProviderRequests => ({
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
const LACKS = new Map([
  [CHAT, ['`reasoning`']],
  [MESSAGES, ['`failures.content_refused`']],
])

for (const dialect of DIALECTS)
  describe(`provider-ai-sdk by the provider kit, ${dialect.title}`, () => {
    const open = async () => {
      const { provider, upstream, close } = await openRig(dialect, behaving(dialect.wire))
      return { provider, connections: () => upstream.open(), close }
    }
    const cases = providerKit(open, requestsOf(dialect), { secrets: [CANARY], concurrent: 200 })
    it('leaves nothing of the kit out but what its wire has not', () => {
      const leftOut = new Set(cases.flatMap(testCase => testCase.skipped ?? []))
      expect([...leftOut]).to.deep.equal(LACKS.get(dialect.wire) ?? [])
    })
    for (const testCase of cases) if (testCase.skipped === undefined) it(testCase.title, testCase.run)
  })
