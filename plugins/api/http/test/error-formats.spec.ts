import { expect } from 'chai'
import { svcError } from '@svc/core'
import { AuthSchemes, type ErrorFormat, ErrorFormats, type FailedRequest, Limits, Mounts, type Route } from '@svc/core/contracts'
import { item, service } from '@svc/testing'
import { call, open, post, raw, serve, signalOf } from './support/client.ts'
import { keys } from './support/who.ts'

const openai: ErrorFormat = {
  path: '/v1',
  async format({ record, status, retryAfter, requestId }) {
    const type = status === 401 ? 'authentication_error' : status >= 500 ? 'server_error' : 'invalid_request_error'
    const error = { message: record.error, type, code: record.error_code, param: record.details.field ?? null }
    return {
      body: { error },
      headers: { 'X-Should-Retry': String(retryAfter !== undefined), 'request-id': requestId, 'x-ratelimit-limit-tokens': '7' },
      event: `data: ${JSON.stringify({ error })}\n\n`,
    }
  },
}
const anthropic: ErrorFormat = {
  path: '/v1',
  header: 'anthropic-version',
  async format({ record, requestId }) {
    return { body: { type: 'error', error: { type: 'api_error', message: record.error }, request_id: requestId } }
  },
}
const messages: ErrorFormat = { ...anthropic, path: '/v1/messages' }
Reflect.deleteProperty(messages, 'header')

const failing =
  (code: string, details = {}) =>
  async () => {
    throw svcError(code, `it is ${code}`, { details })
  }
const route = (path: string, more: Partial<Route> = {}): Route => ({
  method: 'POST',
  path,
  summary: 'Fails',
  scope: 'chat',
  handle: async () => ({ body: {} }),
  ...more,
})
const ROUTES: Record<string, Route> = {
  chat: route('/v1/chat', {
    body: { type: 'object', required: ['model'], properties: { model: { type: 'string' }, n: { type: 'integer' } } },
    bodyLimit: 100,
  }),
  messages: route('/v1/messages'),
  models: route('/v1/models/:id', { method: 'GET' }),
  busy: route('/v1/busy', { handle: failing('CONVERSATION_BUSY') }),
  limited: route('/v1/limited', { handle: failing('RATE_LIMITED', { retry_after: 7 }) }),
  late: route('/v1/late', { handle: failing('TIMEOUT') }),
  broken: route('/v1/broken', { handle: async () => Promise.reject(new Error('a secret inside')) }),
  admin: route('/v1/admin', { scope: 'admin' }),
  other: route('/other', { handle: failing('CONVERSATION_BUSY') }),
}
const scheme = keys('x-key', { good: { id: 'good', scopes: ['chat'] } })
const JSON_BODY = { 'content-type': 'application/json', 'x-key': 'good' }

const serveFormats = (formats: Record<string, ErrorFormat>, server = {}, lines: string[] = []) =>
  serve(ROUTES, { auth: { enabled: true }, ...server }, { destination: { write: line => void lines.push(line) } }, [
    item(AuthSchemes, 'key', scheme),
    ...Object.entries(formats).map(([name, format]) => item(ErrorFormats, name, format)),
    item(Mounts, 'raw', { path: '/v1/raw', scope: 'chat', handle: failing('UNAVAILABLE') } as never),
  ])

describe('the format of errors below a path', () => {
  const lines: string[] = []
  let served: Awaited<ReturnType<typeof serve>>
  let url = ''
  before(async () => {
    served = await serveFormats({ openai, anthropic, messages }, { trusted_proxies: ['127.0.0.1'] }, lines)
    url = served.url
  })
  after(() => served.host.close())
  const errorOf = (body: Record<string, unknown>) => body.error as Record<string, unknown>

  const REFUSALS: Readonly<Record<string, readonly [number, string, () => ReturnType<typeof call>]>> = {
    'without a credential': [401, 'AUTHENTICATION_FAILED', () => post(`${url}/v1/chat`, '{}')],
    'for a missing scope': [403, 'FORBIDDEN', () => post(`${url}/v1/admin`, '{}', JSON_BODY)],
    'for a page of another origin': [
      403,
      'FORBIDDEN',
      () => post(`${url}/v1/chat`, '{}', { ...JSON_BODY, origin: 'https://x.example' }),
    ],
    'for an unknown path': [404, 'NOT_FOUND', () => post(`${url}/v1/nothing/here`, '{}', JSON_BODY)],
    'for the path itself': [404, 'NOT_FOUND', () => call(`${url}/v1`, { headers: JSON_BODY })],
    'for another method': [405, 'METHOD_NOT_ALLOWED', () => call(`${url}/v1/chat`, { headers: JSON_BODY })],
    'for a body that is too large': [
      413,
      'PAYLOAD_TOO_LARGE',
      () => post(`${url}/v1/chat`, `{"model":"${'x'.repeat(200)}"}`, JSON_BODY),
    ],
    'for another content type': [
      415,
      'UNSUPPORTED_MEDIA_TYPE',
      () => post(`${url}/v1/chat`, '{}', { 'x-key': 'good', 'content-type': 'text/plain' }),
    ],
    'for invalid JSON': [400, 'INVALID_VALUE', () => post(`${url}/v1/chat`, '{', JSON_BODY)],
    'for a missing field': [400, 'MISSING_FIELD', () => post(`${url}/v1/chat`, '{}', JSON_BODY)],
    'for a wrong field': [400, 'INVALID_VALUE', () => post(`${url}/v1/chat`, '{"model":"m","n":"x"}', JSON_BODY)],
    'for an error of the route': [503, 'UNAVAILABLE', () => post(`${url}/v1/busy`, '{}', JSON_BODY)],
    'for a limit': [429, 'RATE_LIMITED', () => post(`${url}/v1/limited`, '{}', JSON_BODY)],
    'for a time-out': [504, 'TIMEOUT', () => post(`${url}/v1/late`, '{}', JSON_BODY)],
    'for a bug of the route': [500, 'INTERNAL_ERROR', () => post(`${url}/v1/broken`, '{}', JSON_BODY)],
    'for an error of a mount': [503, 'UNAVAILABLE', () => post(`${url}/v1/raw/x`, '{}', JSON_BODY)],
  }
  for (const [what, [expected, code, send]] of Object.entries(REFUSALS))
    it(`is that of its plugin, with the status of the server: ${expected} ${what}`, async () => {
      const { status, body, headers, text } = await send()
      expect([status, Object.keys(body), errorOf(body).code], text).to.deep.equal([expected, ['error'], code])
      expect(Object.keys(errorOf(body))).to.deep.equal(['message', 'type', 'code', 'param'])
      expect(headers.get('content-type')).to.equal('application/json; charset=utf-8')
      expect(headers.get('request-id')).to.equal(headers.get('x-request-id'))
      expect(headers.get('x-ratelimit-limit-tokens')).to.equal('7')
      expect(text).to.not.include('secret')
    })

  it('keeps the headers of the server, and names the field', async () => {
    const { headers } = await post(`${url}/v1/limited`, '{}', JSON_BODY)
    expect([headers.get('retry-after'), headers.get('x-should-retry')]).to.deep.equal(['7', 'true'])
    expect((await post(`${url}/v1/chat`, '{}')).headers.get('www-authenticate')).to.equal('Key header="x-key"')
    expect((await call(`${url}/v1/chat`, { headers: JSON_BODY })).headers.get('allow')).to.equal('POST, OPTIONS')
    expect(errorOf((await post(`${url}/v1/chat`, '{"model":"m","n":"x"}', JSON_BODY)).body).param).to.equal('n')
  })

  it('is that of the longest path, then that with a header that the request has', async () => {
    const shape = async (path: string, headers = {}) => (await post(`${url}${path}`, '{}', headers)).body
    expect(await shape('/v1/models/x')).to.have.nested.property('error.code')
    expect(await shape('/v1/models/x', { 'anthropic-version': '2023-06-01' })).to.include({ type: 'error' })
    expect(await shape('/v1/messages')).to.include({ type: 'error' })
    expect(await shape('/v1/messages/count')).to.include({ type: 'error' })
    expect(await shape('/v1/messages2')).to.have.nested.property('error.code')
    expect((await shape('/v1/messages')).request_id).to.be.a('string')
  })

  it('is that of the server elsewhere, also for paths that only look like the path', async () => {
    const line = (path: string) => raw(url, `GET ${path} HTTP/1.1\r\nHost: localhost\r\nX-Key: good\r\nConnection: close\r\n\r\n`)
    for (const path of [
      '/v1x',
      '/V1/chat',
      '//v1/chat',
      '/v1%2Fchat',
      '/%761/chat',
      '/other/v1/chat',
      '/v1;x/chat',
      '/',
      '/v1%00',
      '*',
    ]) {
      const { status, body } = await line(path)
      expect([status, body.success], path).to.deep.equal([404, false])
    }
    expect((await post(`${url}/other`, '{}', JSON_BODY)).body).to.include({ success: false, error_code: 'UNAVAILABLE' })
  })

  it('follows the path as sent, which is also what routes follow', async () => {
    const line = (path: string) =>
      raw(url, `POST ${path} HTTP/1.1\r\nHost: localhost\r\nX-Key: good\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`)
    for (const path of [
      '/v1/../other',
      '/v1/%2e%2e/other',
      '/v1//chat',
      '/v1/',
      'http://localhost/v1/nothing',
      '/v1/chat/?x=/v2',
    ])
      expect((await line(path)).body, path).to.have.nested.property('error.code')
    for (const path of ['/other/../v1/chat', '/x?y=/v1/chat', '/x#/v1/chat'])
      expect((await line(path)).body, path).to.include({ success: false })
  })

  it('is for the body of the answer alone: HEAD has none', async () => {
    const response = await fetch(`${url}/v1/models/x`, { method: 'HEAD' })
    expect([response.status, await response.text()]).to.deep.equal([401, ''])
    const { status } = await call(`${url}/v1/models/x`, { method: 'HEAD', headers: JSON_BODY })
    expect(status).to.equal(200)
  })

  it('is that of the server for bytes that are not a request', async () => {
    const { status, body } = await raw(url, 'POST /v1/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n')
    expect([status, body.success]).to.deep.equal([400, false])
  })

  it('is that of its plugin for a body that is broken, or too slow', async () => {
    const start =
      'POST /v1/chat HTTP/1.1\r\nHost: localhost\r\nX-Key: good\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n'
    const broken = await raw(url, `${start}2\r\n{"\r\nxyz\r\n`)
    expect([broken.status, errorOf(broken.body).code, errorOf(broken.body).message]).to.deep.equal([
      400,
      'INVALID_VALUE',
      'the request is not valid HTTP',
    ])
    expect(broken.head).to.match(/\r\nrequest-id: [\w-]{36}\r\n/)
    await using quick = await serveFormats({ openai }, { headers_timeout_ms: 200, request_timeout_ms: 400 })
    const slow = await raw(quick.url, `${start}2\r\n{"\r\n`)
    expect([slow.status, errorOf(slow.body).message]).to.deep.equal([400, 'the request was not received in time'])
    await using hanging = await serveFormats({ one: { path: '/v1', format: () => new Promise(() => {}) } })
    expect((await raw(hanging.url, `${start}2\r\n{"\r\nxyz\r\n`)).body).to.include({ success: false })
  })

  it('gets plain data without the caller of the request', async () => {
    const seen: { failed?: FailedRequest; principal?: unknown; keys?: string[] } = {}
    const spy: ErrorFormat = {
      path: '/v1',
      async format(failed, ctx) {
        Object.assign(seen, { failed, principal: ctx.principal, keys: Object.keys(ctx).sort() })
        return { body: {} }
      },
    }
    await using one = await serveFormats({ spy })
    await call(`${one.url}/v1/nowhere?key=hidden`, { headers: { ...JSON_BODY, 'x-request-id': 'r-1' } })
    expect(seen.failed).to.deep.equal({
      record: { success: false, error: 'there is no route GET /v1/nowhere', error_code: 'NOT_FOUND', details: {} },
      status: 404,
      requestId: 'r-1',
      method: 'GET',
      path: '/v1/nowhere',
    })
    expect(seen.principal).to.deep.equal({ id: 'anonymous', scopes: [] })
    expect(seen.keys).to.deep.equal(['deadline', 'principal', 'requestId', 'signal'])
  })
})

describe('a format of errors that misbehaves', () => {
  const huge = 'x'.repeat(10 * 1024 * 1024)
  const cycle: Record<string, unknown> = {}
  cycle.self = cycle
  const body = { error: 'mine' }
  const BAD: Readonly<Record<string, (failed: FailedRequest) => unknown>> = {
    throws: () => {
      throw svcError('NOT_FOUND', 'no')
    },
    rejects: async () => Promise.reject(new Error('no')),
    'returns nothing': () => undefined,
    'returns text': () => 'mine',
    'returns a list': () => [body],
    'returns a list as body': () => ({ body: [1] }),
    'returns no body': () => ({ headers: {} }),
    'returns 10 MB': () => ({ body: { huge } }),
    'returns a cycle': () => ({ body: cycle }),
    'returns a bigint': () => ({ body: { a: 1n } }),
    'returns a body that is no object as JSON': () => ({ body: { toJSON: () => undefined } }),
    'sets the status 200': () => ({ status: 200, body }),
    'sets another member': () => ({ body, text: 'mine' }),
    'sets a header of 10 MB': () => ({ body, headers: { 'request-id': huge } }),
    'sets a header with a line break': () => ({ body, headers: { 'request-id': 'a\r\nSet-Cookie: b=1' } }),
    'sets a header with another character': () => ({ body, headers: { 'request-id': 'é' } }),
    'sets a header that is no text': () => ({ body, headers: { 'request-id': 7 } }),
    'sets a header with a name that is none': () => ({ body, headers: { 'x-ratelimit- a': '1' } }),
    'sets a list of headers': () => ({ body, headers: [['request-id', 'a']] }),
    'sets many headers': () => ({
      body,
      headers: Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`openai-${at}`, ''])),
    }),
    'ends a stream with a part of an event': () => ({ body, event: 'data: 1' }),
    'ends a stream with 10 MB': () => ({ body, event: `${huge}\n\n` }),
  }
  for (const [what, format] of Object.entries(BAD))
    it(`leaves the record of the server: ${what}`, async () => {
      const lines: string[] = []
      const one: ErrorFormat = { path: '/v1', format: async failed => format(failed) as never }
      await using served = await serveFormats({ one }, {}, lines)
      const { status, body: record, headers } = await post(`${served.url}/v1/limited`, '{}', JSON_BODY)
      expect([status, record.success, record.error_code]).to.deep.equal([429, false, 'RATE_LIMITED'])
      expect([headers.get('retry-after'), headers.get('set-cookie'), headers.get('request-id')]).to.deep.equal(['7', null, null])
      expect(lines.some(line => line.includes('an error format failed') && line.includes('"format":"one"'))).to.equal(true)
      expect(lines.join('')).to.have.length.below(100_000)
    })

  it('cannot set headers of the server or of browsers', async () => {
    const headers = {
      'content-type': 'text/html',
      'set-cookie': 'a=1',
      location: '/x',
      connection: 'close',
      'x-request-id': 'forged',
      'access-control-allow-origin': '*',
      'www-authenticate': 'Mine',
      'x-ratelimit-remaining': '99',
      'retry-after': '3',
    }
    await using served = await serveFormats({ one: { path: '/v1', format: async () => ({ body, headers }) } })
    const { headers: answer, text } = await post(`${served.url}/v1/chat`, '{}')
    expect(text).to.equal(JSON.stringify(body))
    expect(answer.get('content-type')).to.equal('application/json; charset=utf-8')
    expect(answer.get('x-request-id')).to.not.equal('forged')
    expect(answer.get('www-authenticate')).to.equal('Key header="x-key"')
    for (const name of ['set-cookie', 'location', 'access-control-allow-origin', 'x-ratelimit-remaining'])
      expect(answer.get(name), name).to.equal(null)
    expect(answer.get('retry-after')).to.equal('3')
  })

  it('is given half a second, and no more than 256 errors at a time', async () => {
    let asked = 0
    await using served = await serveFormats({ one: { path: '/v1', format: () => (asked++, new Promise(() => {})) } })
    const began = performance.now()
    const answers = await Promise.all(Array.from({ length: 300 }, () => post(`${served.url}/v1/chat`, '{}')))
    expect(answers.map(({ status }) => status)).to.deep.equal(Array.from({ length: 300 }, () => 401))
    expect(answers.every(({ body: record }) => record.success === false)).to.equal(true)
    expect(asked).to.equal(256)
    expect(performance.now() - began).to.be.within(450, 10_000)
    const again = performance.now()
    expect((await post(`${served.url}/v1/chat`, '{}')).body).to.include({ success: false })
    expect(performance.now() - again, 'one that hangs is not asked again').to.be.below(400)
  })

  it('is not used with a path or header that is none, or twice for the same requests', async () => {
    const lines: string[] = []
    const good: ErrorFormat = { path: '/v1', format: async () => ({ body }) }
    const wrong = ['/', '/v1/', 'v1', '/v1/:id', '/v1/*', '', '/%76', 7]
    const formats = Object.fromEntries(wrong.map((path, at) => [`wrong-${at}`, { ...good, path: path as string }]))
    const headers = ['Anthropic-Version', 'authorization', 'x-goog-api-key', 'a b', '']
    const more = Object.fromEntries(headers.map((header, at) => [`header-${at}`, { ...good, header }]))
    await using served = await serveFormats(
      { good, ...formats, ...more, twin: { ...good, format: async () => ({ body: {} }) } },
      {},
      lines
    )
    expect((await post(`${served.url}/v1/chat`, '{}')).text).to.equal(JSON.stringify(body))
    expect((await post(`${served.url}/nothing`, '{}')).body).to.include({ success: false })
    const reported = lines.filter(line => line.includes('ignored an invalid error format'))
    expect(reported).to.have.length(wrong.length + headers.length + 1)
    expect(reported.at(-1)).to.include('same requests as good')
  })
})

describe('the format of the end of a stream', () => {
  const streaming = (stream: NonNullable<Route['stream']>, format: ErrorFormat = openai) =>
    serve(
      { flow: { method: 'GET', path: '/v1/flow', summary: 'Flows', streams: 'text/event-stream', stream } },
      {},
      { level: 'silent' },
      [item(ErrorFormats, 'one', format)]
    )
  const read = async (url: string) => (await fetch(`${url}/v1/flow`)).text().catch(() => 'broken')

  it('is the error as an event, after the events that were sent', async () => {
    await using served = await streaming(async function* () {
      yield 'data: 1\n\n'
      throw svcError('MODEL_FAILED', 'the model is gone', { details: { provider: 'p' } })
    })
    const text = await read(served.url)
    expect(text).to.match(
      /^data: 1\n\ndata: \{"error":\{"message":"the model is gone","type":"server_error","code":"PROVIDER_ERROR"/
    )
    expect(text.endsWith('\n\n')).to.equal(true)
  })

  it('says nothing of an internal error but its record', async () => {
    await using served = await streaming(async function* () {
      yield 'data: 1\n\n'
      throw new Error('a secret inside')
    })
    expect(await read(served.url))
      .to.include('INTERNAL_ERROR')
      .and.not.include('secret')
  })

  it('waits for a slow reader, after all that was sent before', async () => {
    await using served = await streaming(async function* () {
      for (let at = 0; at < 100; at++) yield `data: ${'x'.repeat(65_536)}\n\n`
      throw svcError('MODEL_FAILED', 'the model is gone', { details: { provider: 'p' } })
    })
    const text = await read(served.url)
    expect(text.split('\n\n')).to.have.length(102)
    expect(text.slice(-300)).to.include('the model is gone')
  })

  it('does not follow a part of an event: the connection breaks', async () => {
    await using served = await streaming(async function* () {
      yield 'data: 1\n\n'
      yield 'data: 2\n'
      throw svcError('MODEL_FAILED', 'the model is gone', { details: { provider: 'p' } })
    })
    expect(await read(served.url)).to.equal('broken')
  })

  it('does not exist: the connection breaks', async () => {
    const failing = async function* () {
      yield 'data: 1\n\n'
      throw new Error('no')
    }
    await using without = await streaming(failing, anthropic)
    expect(await read(without.url)).to.equal('broken')
    const hanging: ErrorFormat = { path: '/v1', format: () => new Promise(() => {}) }
    await using late = await streaming(failing, hanging)
    expect(await read(late.url)).to.equal('broken')
  })

  it('is not written for a client that has left', async () => {
    const aborted = signalOf()
    let formatted = 0
    const counting: ErrorFormat = { ...openai, format: async (...args) => (formatted++, openai.format(...args)) }
    await using served = await streaming(async function* (_, { signal }) {
      yield 'data: 1\n\n'
      await new Promise<void>(resolve => signal.addEventListener('abort', () => resolve()))
      aborted.resolve()
      throw new Error('no')
    }, counting)
    const socket = await open(served.url)
    socket.write('GET /v1/flow HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await new Promise(resolve => socket.once('data', resolve))
    socket.destroy()
    await aborted.promise
    await new Promise(resolve => setImmediate(resolve))
    expect(formatted).to.equal(0)
  })
})

describe('a rate limit below a path with a format', () => {
  it('has the format and the headers of the limit', async () => {
    const limits: Limits = {
      isActive: async () => true,
      take: async () => ({ allowed: false, limit: 5, window: 60, remaining: 0, reset: 99, retryAfter: 9 }),
    }
    await using served = await serve(ROUTES, {}, undefined, [item(ErrorFormats, 'openai', openai), service(Limits, limits)])
    const { status, body, headers } = await post(`${served.url}/v1/chat`, '{"model":"m"}')
    expect([status, (body.error as { code: string }).code]).to.deep.equal([429, 'RATE_LIMITED'])
    expect([headers.get('retry-after'), headers.get('x-ratelimit-limit'), headers.get('x-ratelimit-limit-tokens')]).to.deep.equal(
      ['9', '5', '7']
    )
  })
})
