import type { ModelFailureKind } from '@svc/core/contracts'
import type { ProviderRequests } from '@svc/core/testing'
import { offered, says } from './local.ts'

const KINDS = 'rate_limited overloaded bad_request authentication context_too_long content_refused network timeout'.split(
  ' '
) as ModelFailureKind[]
const tools = says('/tool weather {"city": "Ulm"}\n/tool weather {"city": "Bern"}', { tools: offered('weather', 'news') })

/** What the provider kit asks the local provider. */
export const LOCAL_REQUESTS: ProviderRequests = {
  plain: says('a message of a few words'),
  endless: says(`/pace 5\n${'many words '.repeat(1000)}`),
  silent: says('/delay 3600000\nnever'),
  stalled: says('/pace 3600000\nsome words'),
  tools: {
    request: tools,
    calls: [
      { tool: 'weather', arguments: { city: 'Ulm' } },
      { tool: 'weather', arguments: { city: 'Bern' } },
    ],
    results: calls => ({
      ...tools,
      messages: [
        ...tools.messages,
        { role: 'assistant', parts: calls },
        {
          role: 'tool',
          parts: calls.map(call => ({
            type: 'tool_result',
            id: call.id,
            tool: call.tool,
            content: [{ type: 'text', text: 'sunny' }],
            isError: false,
          })),
        },
      ],
    }),
  },
  length: says('one two three four five six seven eight nine', { maxTokens: 5 }),
  unicode: { request: says('Grüße, 👩‍👩‍👧 🏳️‍🌈 e\u0301 한국어 𝕏'), text: 'You said: Grüße, 👩‍👩‍👧 🏳️‍🌈 e\u0301 한국어 𝕏' },
  failures: Object.fromEntries(KINDS.map(kind => [kind, says(`/fail ${kind}`)])),
  midway: { request: says('a few words\n/fail network after 2'), kind: 'network' },
}
