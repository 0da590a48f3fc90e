import { expect } from 'chai'
import { FAILURE_KINDS, providerKit, weatherRound } from '@svc/testing'
import { offered, openGoogle, to } from './support/google.ts'
import { KEY, NATIVE, openGeminiApi } from './support/gemini-api.ts'
import { UNICODE } from './support/whole.ts'

const tools = to('tools', { tools: offered })

describe('provider-google, by the provider kit', () => {
  const open = async () => {
    const upstream = await openGeminiApi()
    const { provider, close } = await openGoogle(upstream.url)
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
      failures: Object.fromEntries(FAILURE_KINDS.map(kind => [kind, to(`fail-${kind}`)])),
      midway: { request: to('midway'), kind: 'overloaded' },
      features: {
        stop: { request: to('stop', { stop: [' there'] }), text: 'Hello' },
        seed: to('plain', { seed: 7 }),
        n: to('choices', { n: 3 }),
        logprobs: to('logprobs', { logprobs: 2 }),
        tool_choice: to('choice', { tools: [...offered, { ...offered[0]!, name: 'news' }], toolChoice: { tool: 'news' } }),
        json: to('data', { responseFormat: 'json' }),
        response_schema: to('data', {
          responseSchema: { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] },
        }),
        embeddings: { model: 'embedding-1', input: ['one', 'second text'], dimensions: 3 },
      },
      native: {
        request: to('native', { native: { protocol: 'google', body: { contents: [{ parts: [{ text: 'hi' }] }] } } }),
        events: NATIVE.map(data => ({ data: data as never })),
      },
    },
    { secrets: [KEY], concurrent: 200 }
  )
  it('leaves nothing of the kit out but what its wire has not', () => {
    const leftOut = new Set(cases.flatMap(testCase => testCase.skipped ?? []))
    expect([...leftOut]).to.deep.equal(['`pieces`', '`features.tool_call_deltas`'])
  })
  for (const testCase of cases) if (testCase.skipped === undefined) it(testCase.title, testCase.run)
})
