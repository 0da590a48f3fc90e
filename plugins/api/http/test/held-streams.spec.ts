import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { expect } from 'chai'
import { svcError } from '@svc/core'
import type { Route, RouteStreamItem } from '@svc/core/contracts'
import { call, open, post, serve, signalOf } from './support/client.ts'

type Make = NonNullable<Route['stream']>
const PING = 'event: ping\ndata: {"type":"ping"}\n\n'
const HEAD = { headers: { 'content-type': 'text/event-stream', 'x-mine': 'kept' }, holdMs: 300 }

/** As the routes of model APIs do: data or a stream, by a field of the body. */
const serveStream = (stream: Make, server = { heartbeat_ms: 20 }, more: Partial<Route> = {}) =>
  serve(
    { flow: { method: 'POST', path: '/flow', summary: 'Flows', body: { type: 'object' }, heartbeat: PING, stream, ...more } },
    server,
    { level: 'silent' }
  )
const send = (url: string, body: object = {}) => post(`${url}/flow`, JSON.stringify(body))
const failed = svcError('MODEL_FAILED', 'the model is gone', { details: { provider: 'p' } })

describe('a stream whose head is held back', () => {
  it('begins with the first item, if that comes in time', async () => {
    await using served = await serveStream(async function* () {
      yield { ...HEAD, holdMs: 60_000 }
      await wait(50)
      yield 'data: 1\n\n'
    })
    const { status, headers, text } = await send(served.url)
    expect([status, headers.get('x-mine'), text]).to.deep.equal([200, 'kept', 'data: 1\n\n'])
  })

  it('becomes an ordinary error response, without the headers of the head, if it fails in time', async () => {
    await using served = await serveStream(async function* () {
      yield { ...HEAD, holdMs: 60_000 }
      await wait(50)
      throw failed
    })
    const { status, headers, body } = await send(served.url)
    expect([status, body.error_code, headers.get('x-mine')]).to.deep.equal([503, 'PROVIDER_ERROR', null])
    expect(headers.get('content-type')).to.match(/json/)
    expect(headers.get('cache-control')).to.equal(null)
  })

  it('sends the head and heartbeats, if the model takes long before its first token', async () => {
    const release = signalOf()
    await using served = await serveStream(async function* () {
      yield HEAD
      await release.promise
      yield 'data: 1\n\n'
    })
    const began = performance.now()
    const response = await fetch(`${served.url}/flow`, {
      method: 'POST',
      body: '{}',
      headers: { 'content-type': 'application/json' },
    })
    expect(performance.now() - began, 'it was held back').to.be.above(250)
    expect([response.status, response.headers.get('x-mine')]).to.deep.equal([200, 'kept'])
    const reader = response.body!.getReader()
    let text = ''
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      text += Buffer.from(part.value).toString()
      if (text.split(PING).length > 3) release.resolve()
    }
    expect(text.startsWith(PING.repeat(3))).to.equal(true)
    expect(text.replaceAll(PING, '')).to.equal('data: 1\n\n')
  })

  it('breaks off, if it fails after its head was sent', async () => {
    await using served = await serveStream(async function* () {
      yield { ...HEAD, holdMs: 1 }
      await wait(100)
      throw failed
    })
    const response = await fetch(`${served.url}/flow`, {
      method: 'POST',
      body: '{}',
      headers: { 'content-type': 'application/json' },
    })
    expect(response.status).to.equal(200)
    expect(await response.text().catch(() => 'broken')).to.equal('broken')
  })

  it('sends its head at once without a time', async () => {
    const release = signalOf()
    await using served = await serveStream(async function* () {
      yield { headers: HEAD.headers }
      await release.promise
      yield 'data: 1\n\n'
    })
    const response = await fetch(`${served.url}/flow`, {
      method: 'POST',
      body: '{}',
      headers: { 'content-type': 'application/json' },
    })
    release.resolve()
    expect((await response.text()).replaceAll(PING, '')).to.equal('data: 1\n\n')
  })

  it('may end without an item, or be data instead', async () => {
    await using served = await serveStream(async function* ({ body }) {
      const { stream } = body as { stream?: boolean }
      if (stream) yield HEAD
      else yield { status: 201, body: { data: true } }
    })
    const stream = await send(served.url, { stream: true })
    expect([stream.status, stream.text, stream.headers.get('content-type')]).to.deep.equal([200, '', 'text/event-stream'])
    const data = await send(served.url)
    expect([data.status, data.body]).to.deep.equal([201, { data: true }])
  })

  it('ends its work when its client leaves meanwhile', async () => {
    const [begun, ended] = [signalOf(), signalOf()]
    await using served = await serveStream(async function* (_, { signal }) {
      try {
        yield { ...HEAD, holdMs: 60_000 }
        begun.resolve()
        await once(signal, 'abort')
        yield 'data: 1\n\n'
      } finally {
        ended.resolve()
      }
    })
    const socket = await open(served.url)
    socket.write('POST /flow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}')
    await begun.promise
    socket.destroy()
    await ended.promise
    expect((await call(`${served.url}/nothing`)).status).to.equal(404)
  })

  for (const [what, items] of Object.entries({
    'a time that is too long': [{ holdMs: 60_001 }, 'a'],
    'a time that is none': [{ holdMs: -1 }],
    'a text as time': [{ holdMs: '5' as never }],
    'a time beside content': [{ text: 'a', holdMs: 5 } as RouteStreamItem],
    'a status that is none': [{ ...HEAD, status: 99 }, 'a'],
    'two heads': [HEAD, HEAD],
    'a header with a line break': [{ ...HEAD, headers: { 'x-mine': 'a\nb' } }, 'a'],
  } satisfies Record<string, RouteStreamItem[]>))
    it(`is an internal error with ${what}`, async () => {
      await using served = await serveStream(async function* () {
        yield* items
      })
      const { status, body, headers } = await send(served.url)
      expect([status, body.error_code, headers.get('x-mine')]).to.deep.equal([500, 'INTERNAL_ERROR', null])
    })

  it('does not end the server if its head is not valid and its work fails later', async () => {
    const release = signalOf()
    await using served = await serveStream(async function* () {
      yield { ...HEAD, status: 99, holdMs: 1 }
      await release.promise
      throw failed
    })
    expect((await send(served.url)).status).to.equal(500)
    release.resolve()
    await wait(20)
    expect((await call(`${served.url}/nothing`)).status).to.equal(404)
  })
})

describe('the heartbeat of a route', () => {
  it('never changes an event that is sent in parts', async () => {
    await using served = await serveStream(async function* () {
      yield HEAD
      for (const part of [
        'data: 1',
        '\n',
        '\n',
        'data: 2\n',
        new TextEncoder().encode('\n'),
        'event: x\r\ndata: 3\r',
        '\n\r\n',
      ]) {
        yield part
        await wait(70)
      }
    })
    const { text } = await send(served.url)
    expect(text.split(PING).length, 'it beats between events').to.be.above(2)
    expect(text.replaceAll(PING, '')).to.equal('data: 1\n\ndata: 2\n\nevent: x\r\ndata: 3\r\n\r\n')
    for (const event of ['data: 1\n\n', 'data: 2\n\n', 'event: x\r\ndata: 3\r\n\r\n']) expect(text).to.include(event)
  })

  it('is a comment unless the route has another, and not sent in other streams', async () => {
    await using plain = await serveStream(
      async function* () {
        yield HEAD
        await wait(400)
        yield 'data: 1\n\n'
      },
      undefined,
      { heartbeat: ': still there\n\n' }
    )
    expect((await send(plain.url)).text).to.match(/^(: still there\n\n)+data: 1\n\n$/)
    await using csv = await serveStream(async function* () {
      yield { headers: { 'content-type': 'text/csv' } }
      await wait(100)
      yield 'a,b\n'
    })
    expect((await send(csv.url)).text).to.equal('a,b\n')
  })

  it('must be events or comments: otherwise the route is not served', async () => {
    for (const heartbeat of ['ping', 'data: 1\n', `:${'x'.repeat(1_000)}\n\n`, 7 as never, '']) {
      const stream: Make = async function* () {
        yield 'data: 1\n\n'
      }
      await using served = await serveStream(stream, undefined, { heartbeat })
      expect((await send(served.url)).status, String(heartbeat)).to.equal(404)
    }
  })
})

describe('a request of a client of a model API', () => {
  const chat: Route = {
    method: 'POST',
    path: '/v1/messages',
    summary: 'Answers',
    body: { type: 'object' },
    query: { type: 'object', properties: { limit: { type: 'integer' } } },
    handle: async ({ query }, ctx) => ({ body: { query, id: ctx.requestId } }),
  }

  it('may have unknown query parameters, as often as it likes, where the schema of the query is open', async () => {
    const closed = { ...chat, path: '/closed', query: { type: 'object', additionalProperties: false, properties: {} } }
    const none: Route = { ...chat, path: '/none' }
    Reflect.deleteProperty(none, 'query')
    await using served = await serve({ chat, closed, none })
    const ask = (path: string) => post(`${served.url}${path}`, '{}')
    for (const path of ['/v1/messages?beta=true&beta=false&alt=sse', '/none?beta=true&beta=false&%E0=1'])
      expect((await ask(path)).status, path).to.equal(200)
    expect((await ask('/v1/messages?limit=x')).status).to.equal(400)
    expect((await ask('/v1/messages?limit=1&limit=2')).status).to.equal(400)
    expect((await ask('/closed?beta=true')).status).to.equal(400)
  })

  it('may begin with HEAD /, whose connection stays usable', async () => {
    await using served = await serve({ chat })
    const socket = await open(served.url)
    let answer = ''
    socket.setEncoding('utf8').on('data', chunk => (answer += chunk))
    socket.write('HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await once(socket, 'data')
    expect(answer).to.match(/^HTTP\/1\.1 404 /)
    socket.write(
      'POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nX-Request-Id: r-9\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}'
    )
    await once(socket, 'close')
    const [head, second, body] = answer.split('\r\n\r\n')
    expect(head).to.not.include('success')
    expect(second)
      .to.match(/^HTTP\/1\.1 200 /)
      .and.include('X-Request-Id: r-9')
    expect(body).to.include('"id":"r-9"')
  })

  it('aborts the signal of its route when its client leaves, before an answer of data too', async () => {
    const [begun, aborted] = [signalOf(), signalOf()]
    const slow: Route = {
      ...chat,
      path: '/slow',
      async handle(_, { signal }) {
        begun.resolve()
        await once(signal, 'abort')
        aborted.resolve()
        return {}
      },
    }
    await using served = await serve({ slow })
    const leaving = new AbortController()
    const answer = fetch(`${served.url}/slow`, {
      method: 'POST',
      body: '{}',
      headers: { 'content-type': 'application/json' },
      signal: leaving.signal,
    }).catch(() => 'left')
    await begun.promise
    leaving.abort()
    await aborted.promise
    expect(await answer).to.equal('left')
  })
})
