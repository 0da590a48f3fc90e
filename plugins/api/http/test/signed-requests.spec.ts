import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { svcError } from '@svc/core'
import { type AuthScheme, AuthSchemes, type CredentialRequest, Mounts, type Route } from '@svc/core/contracts'
import { item } from '@svc/testing'
import { expect } from 'chai'
import { createDigestBody } from '../src/body-digest.ts'
import { type Context, createState } from '../src/context.ts'
import { call, open, post, raw, serve } from './support/client.ts'
import { GOOD, say } from './support/routes.ts'

const SECRET = 'the-secret-of-anna'
const sha256 = (text: string | Uint8Array) => createHash('sha256').update(text).digest('hex')

/** The signature of a request: over method, path, query and the digest of the body. */
const signed = (method: string, target: string, body: string | Uint8Array = '', secret = SECRET) => {
  const [path, query = ''] = target.split('?')
  const text = [method, path, query, sha256(body)].join('\n')
  return { 'x-signature': `anna ${createHmac('sha256', secret).update(text).digest('hex')}` }
}

/** What the scheme of the tests was called with. */
const seen: CredentialRequest[] = []

const hmac: AuthScheme = {
  headers: ['x-signature'],
  challenge: 'Signature',
  async authenticate(request) {
    seen.push(request)
    const { headers, method, path, query, bodyDigest } = request
    const [id, signature = ''] = headers['x-signature']!.split(' ')
    if (id !== 'anna') throw svcError('AUTHENTICATION_FAILED', 'the key is not known')
    if (!bodyDigest) return { needs: 'sha256' }
    const expected = createHmac('sha256', SECRET).update([method, path, query, bodyDigest.hex].join('\n')).digest()
    const given = Buffer.from(signature, 'hex')
    if (given.length !== expected.length || !timingSafeEqual(given, expected))
      throw svcError('AUTHENTICATION_FAILED', 'the signature does not match')
    return { id: 'hmac:anna', scopes: ['*'] }
  },
}

const guardedSay: Route = { ...say, scope: 'chat' }
const blob: Route = {
  method: 'POST',
  path: '/blob',
  summary: 'Takes bytes',
  scope: 'chat',
  accepts: 'bytes',
  bodyLimit: 100_000,
  handle: async ({ bytes }) => ({ body: { digest: sha256(bytes!), size: bytes!.length } }),
}
const find: Route = {
  method: 'GET',
  path: '/find/:id',
  summary: 'Finds',
  scope: 'read',
  handle: async ({ params }, { principal }) => ({ body: { params, id: principal.id } }),
}
const none: Route = { method: 'POST', path: '/none', summary: 'Takes no body', scope: 'chat', handle: async () => ({ body: {} }) }
const mount = {
  path: '/raw',
  scope: 'tools' as const,
  async handle(request: AsyncIterable<Uint8Array>, response: { end(text: string): void }) {
    const chunks: Uint8Array[] = []
    for await (const chunk of request) chunks.push(chunk)
    response.end(`${sha256(Buffer.concat(chunks))}`)
  },
}
const LIMIT = 50_000

describe('a signed request', () => {
  let served: Awaited<ReturnType<typeof serve>>
  let url = ''
  before(async () => {
    const gifts = [item(AuthSchemes, 'hmac', hmac), item(Mounts, 'raw', mount)]
    const server = { auth: { enabled: true }, body_limit: LIMIT, max_requests_per_second: 0 }
    served = await serve({ say: guardedSay, blob, find, none }, server, undefined, gifts)
    url = served.url
  })
  after(() => served.host.close())
  beforeEach(() => void (seen.length = 0))
  const JSON_TYPE = { 'content-type': 'application/json' }
  const statusOf = async (work: Promise<{ status: number }>) => (await work).status

  it('is accepted, and its route reads the body that was verified', async () => {
    const { status, body } = await post(`${url}/say`, GOOD, { ...JSON_TYPE, ...signed('POST', '/say', GOOD) })
    expect([status, body]).to.deep.equal([200, { said: JSON.parse(GOOD) }])
    const bytes = new Uint8Array(LIMIT).map((_, at) => at % 256)
    const answer = await post(`${url}/blob`, bytes, signed('POST', '/blob', bytes))
    expect(answer.body).to.deep.equal({ digest: sha256(bytes), size: LIMIT })
    const passed = await post(`${url}/raw/x`, bytes, signed('POST', '/raw/x', bytes))
    expect(passed.text, 'a mount reads it, too').to.equal(sha256(bytes))
  })

  it('gives the scheme path and query as the client sent them, and the digest only when it asks', async () => {
    const target = '/find/caf%C3%A9%2F1?b=2&a=%20x&b=3'
    const { status, body } = await call(`${url}${target}`, { headers: signed('GET', target) })
    expect([status, body]).to.deep.equal([200, { params: { id: 'café/1' }, id: 'hmac:anna' }])
    const [first, second] = seen
    expect(first)
      .to.include({ method: 'GET', path: '/find/caf%C3%A9%2F1', query: 'b=2&a=%20x&b=3' })
      .and.not.have.property('bodyDigest')
    expect(second?.bodyDigest).to.deep.equal({ algorithm: 'sha256', hex: sha256('') })
    expect(Object.keys(second!.headers)).to.deep.equal(['x-signature'])
  })

  it('is rejected with another body, path, query or method', async () => {
    const other = GOOD.replace('hi', 'ho')
    const cases = {
      body: post(`${url}/say`, other, { ...JSON_TYPE, ...signed('POST', '/say', GOOD) }),
      secret: post(`${url}/say`, GOOD, { ...JSON_TYPE, ...signed('POST', '/say', GOOD, 'x') }),
      path: call(`${url}/find/2`, { headers: signed('GET', '/find/1') }),
      query: call(`${url}/find/1?a=2`, { headers: signed('GET', '/find/1?a=1') }),
      method: call(`${url}/find/1`, { method: 'HEAD', headers: signed('GET', '/find/1') }),
    }
    for (const [what, work] of Object.entries(cases)) expect(await statusOf(work), what).to.equal(401)
  })

  it('is not read when the scheme rejects it without its body, however large it claims to be', async () => {
    const head = `POST /blob HTTP/1.1\r\nhost: localhost\r\nx-signature: eve 00\r\ncontent-length: 40000\r\nconnection: close\r\n\r\n`
    expect((await raw(url, head)).status, 'the answer comes before the body').to.equal(401)
    expect(seen).to.have.length(1)
  })

  it('needs no more memory than the limit of a body: a larger one is 413 before it is verified', async () => {
    const large = new Uint8Array(LIMIT + 1)
    expect(await statusOf(post(`${url}/blob`, large, signed('POST', '/blob', large)))).to.equal(413)
    const chunked = (size: number) => `${size.toString(16)}\r\n${'x'.repeat(size)}\r\n`
    const { 'x-signature': signature } = signed('POST', '/blob', 'x'.repeat(LIMIT + 10_000))
    const text = `POST /blob HTTP/1.1\r\nhost: localhost\r\nx-signature: ${signature}\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n${chunked(LIMIT)}${chunked(10_000)}0\r\n\r\n`
    expect((await raw(url, text)).status, 'without a length').to.equal(413)
    expect(seen.every(({ bodyDigest }) => bodyDigest === undefined)).to.equal(true)
  })

  it('works without a body, with an empty one in chunks, and where the route reads none; the connection stays usable', async () => {
    const { 'x-signature': empty } = signed('POST', '/say')
    const { 'x-signature': unread } = signed('POST', '/none', 'never read')
    const { 'x-signature': last } = signed('GET', '/find/7')
    const head = (line: string, signature: string) => `${line} HTTP/1.1\r\nhost: localhost\r\nx-signature: ${signature}\r\n`
    const text = [
      `${head('POST /say', empty)}transfer-encoding: chunked\r\ncontent-type: application/json\r\n\r\n0\r\n\r\n`,
      `${head('POST /none', unread)}content-length: 10\r\n\r\nnever read`,
      `${head('GET /find/7', last)}connection: close\r\n\r\n`,
    ]
    const socket = await open(url)
    let answer = ''
    socket.setEncoding('utf8').on('data', chunk => (answer += chunk))
    socket.write(text.join(''))
    await once(socket, 'close')
    expect(answer.match(/HTTP\/1\.1 \d+/g)).to.deep.equal(['HTTP/1.1 400', 'HTTP/1.1 200', 'HTTP/1.1 200'])
    expect(answer).to.include('MISSING_FIELD').and.include('"id":"hmac:anna"')
  })

  it('that arrives slowly costs the scheme no time, and a client that leaves frees its bytes', async () => {
    const server = { auth: { enabled: true, timeout_ms: 250 } }
    await using quick = await serve({ blob }, server, undefined, [item(AuthSchemes, 'hmac', hmac)])
    const body = 'x'.repeat(1000)
    const { 'x-signature': signature } = signed('POST', '/blob', body)
    const head = `POST /blob HTTP/1.1\r\nhost: localhost\r\nx-signature: ${signature}\r\ncontent-length: 1000\r\nconnection: close\r\n\r\n`
    const slow = await open(quick.url)
    let answer = ''
    slow.setEncoding('utf8').on('data', chunk => (answer += chunk))
    slow.write(head)
    for (let at = 0; at < 1000; at += 200) {
      await wait(100)
      slow.write(body.slice(at, at + 200))
    }
    await once(slow, 'close')
    expect(answer).to.match(/^HTTP\/1\.1 200/)
    const gone = await open(url)
    gone.write(head + body.slice(0, 10))
    await wait(20)
    gone.destroy()
    expect(await statusOf(post(`${url}/blob`, body, signed('POST', '/blob', body)))).to.equal(200)
  })

  it('shows a scheme nothing of requests without one of its headers', async () => {
    await call(`${url}/find/1?token=of-somebody-else`, { headers: { authorization: 'Bearer x' } })
    await call(`${url}/find/1`)
    expect(seen).to.deep.equal([])
  })
})

describe('a scheme that asks for a digest', () => {
  const answering = async (answer: unknown) => {
    const scheme = { ...hmac, authenticate: async () => answer } as unknown as AuthScheme
    await using server = await serve({ find }, { auth: { enabled: true } }, { level: 'silent' }, [
      item(AuthSchemes, 'odd', scheme),
    ])
    return (await call(`${server.url}/find/1`, { headers: { 'x-signature': 'x' } })).status
  }
  it('of an unknown kind, or twice, rejects the request', async () => {
    for (const answer of [
      { needs: 'md5' },
      { needs: 'constructor' },
      { needs: 5 },
      { needs: 'sha256' },
      { needs: 'md5', id: 'a', scopes: ['*'] },
    ])
      expect(await answering(answer), JSON.stringify(answer)).to.equal(500)
  })
})

describe('an open stream of a signed request', () => {
  it('is checked again as the same request, not as a replay, and closes when the credential is revoked', async () => {
    const nonces = new Set<string>()
    const rechecked: CredentialRequest[] = []
    const [accepted, revoked] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let isRevoked = false
    const scheme: AuthScheme = {
      ...hmac,
      async authenticate(request, ctx) {
        const nonce = request.headers['x-signature']!
        if (isRevoked) throw svcError('AUTHENTICATION_FAILED', 'the key is revoked')
        if (!request.isRecheck && nonces.has(nonce)) throw svcError('AUTHENTICATION_FAILED', 'the request was repeated')
        const holder = await hmac.authenticate(request, ctx)
        if (request.bodyDigest) nonces.add(nonce)
        if (request.isRecheck && request.bodyDigest) {
          rechecked.push(request)
          accepted.resolve()
        }
        return holder
      },
      async *changes() {
        yield null
        await revoked.promise
        yield null
      },
    }
    const ticks: Route = {
      method: 'POST',
      path: '/ticks',
      summary: 'Ticks',
      scope: 'read',
      accepts: 'bytes',
      streams: 'text/event-stream',
      endless: true,
      async *stream({ bytes }, { signal }) {
        yield `data: ${bytes!.length}\n\n`
        await new Promise(resolve => signal.addEventListener('abort', resolve))
      },
    }
    await using server = await serve({ ticks }, { auth: { enabled: true } }, undefined, [item(AuthSchemes, 'once', scheme)])
    const init = { method: 'POST', body: 'abc', headers: signed('POST', '/ticks', 'abc') }
    const response = await fetch(`${server.url}/ticks`, init)
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
    expect([response.status, (await reader.read()).value]).to.deep.equal([200, 'data: 3\n\n'])
    await accepted.promise
    expect(rechecked[0]?.bodyDigest?.hex).to.equal(sha256('abc'))
    expect((await fetch(`${server.url}/ticks`, init)).status, 'a replay').to.equal(401)
    isRevoked = true
    revoked.resolve()
    expect(
      await reader.read().then(
        ({ done }) => (done ? 'ended' : 'more'),
        () => 'closed'
      )
    ).to.equal('closed')
  })
})

describe('unverified bodies', () => {
  it('together take no more memory than their limit, and give it back', async () => {
    const digestBody = createDigestBody(10_000, 15_000)
    const answers: string[] = []
    const server = createServer((req, res) => {
      digestBody({ req, res, state: createState() } as unknown as Context, 'sha256').then(
        ({ hex }) => (answers.push(hex), res.end()),
        (error: { code: string }) => (answers.push(error.code), res.writeHead(503).end())
      )
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    const send = async (length: number, sent: number) => {
      const socket = await open(`http://127.0.0.1:${port}`)
      socket.write(`POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${length}\r\nconnection: close\r\n\r\n${'x'.repeat(sent)}`)
      return socket
    }
    const first = await send(10_000, 9_000)
    await wait(50)
    const second = await send(10_000, 10_000)
    await once(second.resume(), 'close')
    expect(answers).to.deep.equal(['UNAVAILABLE'])
    first.write('x'.repeat(1_000))
    await once(first.resume(), 'close')
    const third = await send(10_000, 10_000)
    await once(third.resume(), 'close')
    const digest = sha256('x'.repeat(10_000))
    expect(answers).to.deep.equal(['UNAVAILABLE', digest, digest])
    const tiny = await send(10_000, 0)
    for (let at = 0; at < 100 && answers.length === 3; at++) {
      tiny.write('x')
      await wait(2)
    }
    expect(answers[3], 'tiny chunks').to.equal('UNAVAILABLE')
    tiny.destroy()
    server.close()
  })
})
