import { FAILURE_KINDS, type ProviderRequests, weatherRound } from '@svc/testing'
import { offered, says } from './local.ts'

const tools = says('/tool weather {"city": "Ulm"}\n/tool weather {"city": "Bern"}', { tools: offered('weather', 'news') })

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
  midway: { request: says('a few words\n/fail network after 2'), kind: 'network' },
}
