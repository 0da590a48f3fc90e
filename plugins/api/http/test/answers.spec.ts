import { expect } from 'chai'
import type { Route } from '@svc/core/contracts'
import { type Principal, svcError } from '@svc/core'
import { call, open, serve, signalOf } from './support/client.ts'

const failing = (throwing: () => unknown): Record<string, Route> => ({
  fail: {
    method: 'GET',
    path: '/fail',
    summary: 'Fails',
    async handle() {
      throw throwing()
    },
  },
})

const CASES: [string, object, number, string, object][] = [
  [
    'CONVERSATION_UNKNOWN',
    { conversationId: 'c1' },
    404,
    'INVALID_VALUE',
    { field: 'conversation_id', value: 'c1', reason: 'not found' },
  ],
  [
    'CONVERSATION_FULL',
    { limit: 10, unit: 'messages' },
    400,
    'INVALID_VALUE',
    { field: 'conversation_id', limit: 10, unit: 'messages' },
  ],
  ['CONVERSATION_BUSY', {}, 503, 'UNAVAILABLE', { retry_after: 1 }],
  ['STORE_UNAVAILABLE', { path: '/secret/place' }, 503, 'UNAVAILABLE', { reason: 'the store cannot be reached' }],
  [
    'STORE_UNSURE',
    { path: '/secret/place' },
    503,
    'UNAVAILABLE',
    { reason: 'it is unknown whether the request was done: read the present state before you repeat it', retryable: false },
  ],
  ['STORE_FENCED', {}, 503, 'UNAVAILABLE', {}],
  ['PLUGIN_GONE', {}, 503, 'UNAVAILABLE', {}],
  ['SCOPE_CLOSED', {}, 503, 'UNAVAILABLE', { reason: 'the server is stopping' }],
  [
    'MODEL_FAILED',
    { kind: 'rate_limited', provider: 'p', upstreamStatus: 429, retryable: true },
    503,
    'PROVIDER_ERROR',
    { provider: 'p', upstream_status: 429, retryable: true },
  ],
  [
    'MODEL_FAILED',
    { kind: 'network', provider: 'p', retryable: false },
    503,
    'PROVIDER_ERROR',
    { provider: 'p', retryable: false },
  ],
  [
    'MODEL_FAILED',
    { kind: 'context_too_long', provider: 'p', limit: 5, count: 9 },
    400,
    'INVALID_VALUE',
    { field: 'message', limit: 5, count: 9 },
  ],
  ['PROVIDER_NOT_FOUND', { provider: 'p', available: ['q'] }, 503, 'PROVIDER_NOT_FOUND', { provider: 'p', available: ['q'] }],
  ['MODEL_NOT_FOUND', { provider: 'p', model: 'm', available: [] }, 404, 'MODEL_NOT_FOUND', { model: 'm' }],
  [
    'INVALID_VALUE',
    { field: 'mode', reason: 'unknown', allowed: ['a'] },
    400,
    'INVALID_VALUE',
    { field: 'mode', allowed: ['a'] },
  ],
  ['INVALID_VALUE', { field: 'workflow_id', value: 'w', reason: 'not found' }, 404, 'INVALID_VALUE', { field: 'workflow_id' }],
  ['AUTHENTICATION_FAILED', {}, 401, 'AUTHENTICATION_FAILED', {}],
  ['RATE_LIMITED', { limit: 60, window: 60, retry_after: 7 }, 429, 'RATE_LIMITED', { retry_after: 7 }],
  ['TOOL_EXECUTION_FAILED', { tool: 't', reason: 'r' }, 500, 'TOOL_EXECUTION_FAILED', { tool: 't' }],
  ['TIMEOUT', { tool: 't' }, 504, 'TIMEOUT', {}],
  ['TAP_TIMEOUT', { hook: 'chat.turn' }, 500, 'INTERNAL_ERROR', {}],
  ['toString', {}, 500, 'INTERNAL_ERROR', {}],
]

describe('an answer', () => {
  for (const [code, details, status, error_code, expected] of CASES)
    it(`tells ${code} ${JSON.stringify(details)} as ${status} ${error_code}`, async () => {
      await using served = await serve(failing(() => svcError(code, 'it went wrong', { details: { ...details } })))
      const reply = await call(`${served.url}/fail`)
      expect([reply.status, reply.body.success, reply.body.error_code]).to.deep.equal([status, false, error_code])
      expect(reply.body.details).to.deep.include(expected)
      expect(Object.keys(reply.body)).to.deep.equal(['success', 'error', 'error_code', 'details'])
      expect(reply.text).not.to.include('/secret/place')
    })

  it('says when to come back', async () => {
    await using served = await serve(failing(() => svcError('RATE_LIMITED', 'slow down', { details: { retry_after: 7 } })))
    expect((await call(`${served.url}/fail`)).headers.get('retry-after')).to.equal('7')
  })

  it('tells nothing of an internal fault but the id under which the log has it', async () => {
    const lines: string[] = []
    await using served = await serve(
      failing(() => new TypeError('secret of /etc/place')),
      {},
      { destination: { write: line => void lines.push(line) } }
    )
    const reply = await call(`${served.url}/fail`, { headers: { 'x-request-id': 'r-1' } })
    expect(reply.body).to.deep.equal({
      success: false,
      error: 'an internal error; the log has it under the request id',
      error_code: 'INTERNAL_ERROR',
      details: { request_id: 'r-1' },
    })
    const logged = lines.map(line => JSON.parse(line)).find(line => line.err)
    expect(logged).to.include({ request_id: 'r-1', level: 50 })
    expect(logged.err.stack).to.include('answers.spec.ts')
  })

  it('carries the request id that was given, or one of its own where that is absurd', async () => {
    await using served = await serve({})
    const idFor = async (id: string) =>
      (await call(`${served.url}/x`, { headers: { 'x-request-id': id } })).headers.get('x-request-id')
    expect(await idFor('a.b_c-9')).to.equal('a.b_c-9')
    expect(await idFor('x'.repeat(128))).to.equal('x'.repeat(128))
    for (const absurd of ['', 'a b', 'x'.repeat(129), 'a"b', 'é']) expect(await idFor(absurd)).to.match(/^[0-9a-f-]{36}$/)
  })

  it('is one line in the log: route and figures, no query', async () => {
    const lines: string[] = []
    await using served = await serve(
      { thing: { method: 'GET', path: '/things/:id', summary: 'Finds', handle: async () => ({ text: 'x' }) } },
      {},
      { destination: { write: line => void lines.push(line) } }
    )
    await call(`${served.url}/things/private?key=secret`, { headers: { 'x-request-id': 'r-2', authorization: 'Bearer hidden' } })
    await served.host.close()
    const requests = lines.map(line => JSON.parse(line)).filter(line => line.msg === 'request')
    expect(requests).to.have.lengthOf(1)
    expect(requests[0]).to.deep.include({
      method: 'GET',
      route: '/things/:id',
      status: 200,
      request_id: 'r-2',
      address: '127.0.0.1',
      principal: 'anonymous',
    })
    expect(requests[0].ms).to.be.a('number')
    expect(lines.join('')).not.to.match(/secret|private|hidden/)
  })

  it('is a line of the level debug if it is that of a health check, and of info if the check fails', async () => {
    const lines: string[] = []
    let status = 200
    const probe = (path: string): Route => ({ method: 'GET', path, summary: 'Probes', handle: async () => ({ status }) })
    const paths = ['/health', '/health/live', '/health/ready', '/healthy']
    await using served = await serve(
      Object.fromEntries(paths.map(path => [path.slice(1).replace('/', '_'), probe(path)])),
      {},
      { level: 'debug', destination: { write: line => void lines.push(line) } }
    )
    for (const path of paths) await call(`${served.url}${path}`)
    status = 503
    for (const path of paths) await call(`${served.url}${path}`)
    await served.host.close()
    const levels = lines
      .map(line => JSON.parse(line))
      .filter(line => line.msg === 'request')
      .map(({ level, status: answered, route }) => `${level} ${answered} ${route}`)
    expect(levels).to.have.members([
      ...['/health', '/health/live', '/health/ready'].map(path => `20 200 ${path}`),
      '30 200 /healthy',
      ...paths.map(path => `30 503 ${path}`),
    ])
  })

  it('knows who asks, from where, and with which trace and its state', async () => {
    const seen: { principal: Principal; trace: string | undefined; traceState: string | undefined }[] = []
    const who: Route = {
      method: 'GET',
      path: '/who',
      summary: 'Who',
      handle: async (_request, { principal, trace, traceState }) => {
        seen.push({ principal, trace, traceState })
        return {}
      },
    }
    await using served = await serve({ who })
    const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
    const bad = [trace.replace(/^00/, 'ff'), trace.replaceAll(/[1-9a-f]/g, '0'), 'x', `${trace}, ${trace}`]
    const ask = (traceparent: string, tracestate = 'a=1,b=2') =>
      call(`${served.url}/who`, { headers: { traceparent, tracestate } })
    for (const traceparent of [trace, ...bad]) expect((await ask(traceparent)).status).to.equal(204)
    const principal = { id: 'anonymous', scopes: ['*'], address: '127.0.0.1' }
    expect(seen[0]).to.deep.equal({ principal, trace, traceState: 'a=1,b=2' })
    const none = bad.map(() => ({ principal, trace: undefined, traceState: undefined }))
    expect(seen.slice(1), 'a state without a trace').to.deep.equal(none)
    await ask(trace, `a=${'x'.repeat(300)},b=${'y'.repeat(206)},c=3`)
    await ask(trace, 'x'.repeat(513))
    expect(seen.slice(-2).map(item => item.traceState)).to.deep.equal([`a=${'x'.repeat(300)},b=${'y'.repeat(206)}`, undefined])
  })

  it('comes with the headers and status that its route says', async () => {
    const handle: Route['handle'] = async () => ({
      status: 201,
      headers: { 'X-More': 'yes', 'content-type': 'text/csv' },
      text: 'a,b',
    })
    await using served = await serve({ csv: { method: 'GET', path: '/csv', summary: 'CSV', handle } })
    const { status, headers, text } = await call(`${served.url}/csv`)
    expect([status, headers.get('x-more'), headers.get('content-type'), text]).to.deep.equal([201, 'yes', 'text/csv', 'a,b'])
  })

  it('is an error record although its route gives headers that are none', async () => {
    await using served = await serve({
      bad: { method: 'GET', path: '/bad', summary: 'Bad', handle: async () => ({ headers: { 'x-a': 'b\r\nc: d' }, body: {} }) },
    })
    const { status, body } = await call(`${served.url}/bad`)
    expect([status, body.error_code]).to.deep.equal([500, 'INTERNAL_ERROR'])
  })
})

describe('a large answer', () => {
  it('is cut off when its reader takes nothing', async () => {
    const left = signalOf()
    const written = (line: string) => void (line.includes('"gone":true') && left.resolve())
    const large: Route = {
      method: 'GET',
      path: '/large',
      summary: 'Large',
      handle: async () => ({ text: 'x'.repeat(32 * 1024 * 1024) }),
    }
    await using served = await serve({ large }, { stall_timeout_ms: 200 }, { destination: { write: written } })
    const socket = await open(served.url)
    socket.pause()
    socket.write('GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await left.promise
    socket.destroy()
  })

  it('reaches a reader who takes it', async () => {
    const text = 'x'.repeat(8 * 1024 * 1024)
    await using served = await serve({
      large: { method: 'GET', path: '/large', summary: 'Large', handle: async () => ({ text }) },
    })
    expect((await call(`${served.url}/large`)).text.length).to.equal(text.length)
  })
})
