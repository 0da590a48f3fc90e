import { expect } from 'chai'
import { FAILURE_KINDS, providerKit, weatherRound } from '@svc/testing'
import { offered, openAnthropic, to } from './support/anthropic.ts'
import { KEY, NATIVE, openMessagesApi } from './support/messages-api.ts'
import { UNICODE } from './support/whole.ts'

const tools = to('tools', { tools: offered })

describe('provider-anthropic, by the provider kit', () => {
  const open = async () => {
    const upstream = await openMessagesApi()
    const { provider, close } = await openAnthropic(upstream.url)
    const closeBoth = async () => {
      await close()
      await upstream.close()
    }
    const sent = () => upstream.received.findLast(({ method }) => method === 'POST')?.body
    return { provider, connections: upstream.open, sent, close: closeBoth }
  }
  const cases = providerKit(
    open,
    {
      plain: to('plain'),
      endless: to('endless'),
      silent: to('silent'),
      tools: weatherRound(tools),
      pieces: weatherRound(to('pieces', { tools: offered })),
      badArguments: to('bad', { tools: offered }),
      length: to('length', { maxTokens: 9, tools: offered }),
      unicode: { request: to('unicode'), text: UNICODE },
      usage: { request: to('plain'), usage: { input: 10, output: 7, cached: 3, cacheWrite: 2 } },
      reasoning: { request: to('reasoning'), text: 'Let me see.' },
      filtered: to('filtered'),
      retryAfter: { request: to('fail-rate_limited'), ms: 3000 },
      cut: to('cut'),
      endsEarly: to('ends-early'),
      malformed: to('malformed'),
      stalled: to('stalled'),
      failures: Object.fromEntries(FAILURE_KINDS.map(kind => [kind, to(`fail-${kind}`)])),
      midway: { request: to('midway'), kind: 'overloaded' },
      features: {
        stop: { request: to('stop', { stop: [' there'] }), text: 'Hello', stopText: ' there' },
        tool_choice: to('choice', { tools: [...offered, { ...offered[0]!, name: 'news' }], toolChoice: { tool: 'news' } }),
        tool_call_deltas: to('pieces', { tools: offered }),
        response_schema: to('data', {
          responseSchema: { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] },
        }),
      },
      native: {
        request: to('native', {
          native: {
            protocol: 'anthropic',
            body: { max_tokens: 5, messages: [{ role: 'user', content: [{ type: 'text', text: 'hello' }] }] },
          },
        }),
        events: NATIVE,
      },
    },
    { secrets: [KEY], concurrent: 200 }
  )
  it('leaves nothing of the kit out but what the API has not', () => {
    const leftOut = new Set(cases.flatMap(testCase => testCase.skipped ?? []))
    // The API has none of these.
    const missing = ['seed', 'n', 'logprobs', 'json', 'embeddings'].map(feature => `\`features.${feature}\``)
    expect([...leftOut]).to.deep.equal(missing)
  })
  for (const testCase of cases) if (testCase.skipped === undefined) it(testCase.title, testCase.run)
})
