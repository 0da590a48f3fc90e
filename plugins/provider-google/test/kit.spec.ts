import type { ModelFailureKind, ModelRequest } from '@svc/core/contracts'
import { providerKit } from '@svc/core/testing'
import { offered, openGoogle, to } from './support/google.ts'
import { KEY, openGeminiApi } from './support/gemini-api.ts'
import { UNICODE } from './support/whole.ts'

const KINDS = 'rate_limited overloaded bad_request authentication context_too_long content_refused network timeout'.split(' ')
const tools = to('tools', { tools: offered })
const afterTools = (
  calls: Parameters<NonNullable<NonNullable<Parameters<typeof providerKit>[1]['tools']>['results']>>[0]
): ModelRequest => ({
  ...tools,
  messages: [
    ...tools.messages,
    { role: 'assistant', parts: calls },
    {
      role: 'tool',
      parts: calls.map(({ id, tool }) => ({
        type: 'tool_result',
        id,
        tool,
        content: [{ type: 'text', text: 'sunny' }],
        isError: false,
      })),
    },
  ],
})

describe('provider-google, by the provider kit', () => {
  const open = async () => {
    const upstream = await openGeminiApi()
    const { provider, close } = await openGoogle(upstream.url)
    const closeBoth = async () => {
      await close()
      await upstream.close()
    }
    return { provider, connections: upstream.open, close: closeBoth }
  }
  const cases = providerKit(
    open,
    {
      plain: to('plain'),
      endless: to('endless'),
      silent: to('silent'),
      tools: {
        request: tools,
        calls: [
          { tool: 'weather', arguments: { city: 'Ulm' } },
          { tool: 'weather', arguments: { city: 'Bern' } },
        ],
        results: afterTools,
      },
      // calls of this wire come whole: there are no `pieces`
      badArguments: to('bad', { tools: offered }),
      length: to('length', { maxTokens: 9 }),
      unicode: { request: to('unicode'), text: UNICODE },
      usage: { request: to('plain'), usage: { input: 5, output: 4 } },
      reasoning: { request: to('reasoning'), text: 'Let me see.' },
      filtered: to('filtered'),
      retryAfter: { request: to('fail-rate_limited'), ms: 34_400 },
      cut: to('cut'),
      endsEarly: to('ends-early'),
      malformed: to('malformed'),
      stalled: to('stalled'),
      failures: Object.fromEntries(KINDS.map(kind => [kind, to(`fail-${kind}`)])) as Record<ModelFailureKind, ModelRequest>,
      midway: { request: to('midway'), kind: 'overloaded' },
    },
    { secrets: [KEY], concurrent: 200 }
  )
  for (const one of cases) it(one.title, one.run)
})
