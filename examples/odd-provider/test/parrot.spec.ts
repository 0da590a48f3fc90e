import { type ModelRequest, Providers } from '@svc/core/contracts'
import { type Answerer, openUpstream, providerKit, testHost } from '@svc/testing'

const KEY = 'canary-of-the-parrot'
const TEXT = 'Grüße aus Köln 👋🏽, 世界'

const line = (item: object) => `${JSON.stringify(item)}\n`
const soFar = (text: string) => line({ so_far: text })
const DONE = line({ done: 'end' })

/** What the server does when a voice of this name is asked. */
const VOICES: Readonly<Record<string, Answerer>> = {
  plain: async (_, reply) => {
    await reply.write(soFar('Hello') + soFar('Hello, you'))
    reply.end(line({ so_far: 'Hello, you.', done: 'end', cost: { heard: 3, said: 4 } }))
  },
  limited: (_, reply) => reply.end(soFar('Hel') + line({ done: 'limit', cost: { heard: 3, said: 1 } })),
  unicode: async (_, reply) => {
    // each piece ends within a character, each chunk within a byte sequence
    const lines = [...Array(TEXT.length).keys()].map(at => soFar(TEXT.slice(0, at + 1)))
    await reply.split(lines.join('') + DONE, 3)
    reply.end()
  },
  endless: (_, reply) => reply.endless(at => soFar('a'.repeat(at + 1))),
  silent: (_, reply) => reply.silence(),
  stalled: async (_, reply) => {
    await reply.write(soFar('Hm'))
    await reply.silence()
  },
  hoarse: (_, reply) => reply.end(line({ oops: 'hoarse' })),
  long: (_, reply) => reply.end(line({ oops: 'too much' })),
  refused: (_, reply) => reply.end(line({ oops: 'not saying that' })),
  busy: (_, reply) => reply.json(429, { secret: KEY }, { 'retry-after': '2' }),
  unknown: (_, reply) => reply.json(404, {}),
  locked: (_, reply) => reply.json(401, { key: KEY }),
  late: (_, reply) => reply.json(504, {}),
  gone: (_, reply) => reply.cut(),
  midway: (_, reply) => reply.end(soFar('Hm') + line({ oops: 'hoarse' })),
  cut: async (_, reply) => {
    await reply.write(soFar('Hm'))
    reply.cut()
  },
  early: (_, reply) => reply.end(soFar('Hm')),
  // it takes back what it has said
  malformed: (_, reply) => reply.end(soFar('Hello') + soFar('Bye') + DONE),
}

async function open() {
  const upstream = await openUpstream((request, reply) => {
    if (request.headers.authorization !== `Bearer ${KEY}`) return reply.json(401, {})
    if (request.path === '/voices') return reply.json(200, { voices: Object.keys(VOICES) })
    return VOICES[(request.body as { voice: string }).voice]?.(request, reply)
  })
  process.env.PARROT_KEY = KEY
  const host = await testHost([new URL('..', import.meta.url)], {
    config: { providers: { parrot: { base_url: upstream.url, api_key_env: 'PARROT_KEY' } } },
  })
  const close = async () => {
    delete process.env.PARROT_KEY
    await host.close()
    await upstream.close()
  }
  return { provider: host.slot(Providers).get('parrot')!, connections: () => upstream.open(), close }
}

const asks = (model: string, more: Partial<ModelRequest> = {}): ModelRequest => ({
  model,
  messages: [{ role: 'user', parts: [{ type: 'text', text: 'Say hello' }] }],
  ...more,
})

describe('parrot', () => {
  const cases = providerKit(
    open,
    {
      plain: asks('plain'),
      length: asks('limited', { maxTokens: 1 }),
      unicode: { request: asks('unicode'), text: TEXT },
      usage: { request: asks('plain'), usage: { input: 3, output: 4 } },
      endless: asks('endless'),
      silent: asks('silent'),
      stalled: asks('stalled'),
      failures: {
        overloaded: asks('hoarse'),
        context_too_long: asks('long'),
        content_refused: asks('refused'),
        rate_limited: asks('busy'),
        bad_request: asks('unknown'),
        authentication: asks('locked'),
        timeout: asks('late'),
        network: asks('gone'),
      },
      retryAfter: { request: asks('busy'), ms: 2000 },
      midway: { request: asks('midway'), kind: 'overloaded' },
      cut: asks('cut'),
      endsEarly: asks('early'),
      malformed: asks('malformed'),
    },
    { secrets: [KEY], concurrent: 100 }
  )
  for (const testCase of cases) if (testCase.skipped === undefined) it(testCase.title, testCase.run)
})
