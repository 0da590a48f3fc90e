import { expect } from 'chai'
import { AuthSchemes, Limits } from '@svc/core/contracts'
import { type Answerer, item, service } from '@svc/testing'
import { send, startApi, type Tree, user } from './support/api.ts'

const KEYS: Readonly<Record<string, readonly string[]>> = { good: ['chat'], reader: ['read'] }
const scheme = item(AuthSchemes, 'key', {
  headers: ['x-test-key'],
  challenge: 'TestKey',
  async authenticate({ headers }: { headers: Readonly<Record<string, string>> }) {
    const key = headers['x-test-key']
    if (key === undefined) return null
    const scopes = KEYS[key]
    if (!scopes) throw Object.assign(new Error('wrong'), { code: 'AUTHENTICATION_FAILED' })
    return { id: key, scopes }
  },
} as never)

const chunk = (delta: object, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason }] })}\n\n`
const failing =
  (status: number, error: object, headers = {}): Answerer =>
  (_, reply) =>
    reply.json(status, { error: { message: 'it failed', ...error } }, headers)
const M = { model: 'up/m', messages: [user('hi')] }

describe('an error', () => {
  it('of the server has the form of the API, with its status', async () => {
    await using api = await startApi({ give: [scheme], config: { server: { auth: { enabled: true } } } })
    const good = { 'x-test-key': 'good' }
    const shape = async (asked: Promise<{ status: number; headers: Headers; body: Tree }>) => {
      const { status, body, headers } = await asked
      expect(Object.keys(body)).to.deep.equal(['error'])
      expect(Object.keys(body.error)).to.deep.equal(['message', 'type', 'code', 'param'])
      expect(headers.get('x-request-id')).to.be.a('string')
      return [status, body.error.code, body.error.param]
    }
    expect(await shape(api.post('/v1/chat/completions', M))).to.deep.equal([401, 'invalid_api_key', null])
    expect(await shape(api.get('/v1/models'))).to.deep.equal([401, 'invalid_api_key', null])
    expect(await shape(api.get('/v1/models/a/b'))).to.deep.equal([401, 'invalid_api_key', null])
    expect(await shape(api.post('/v1/embeddings', M, { 'x-test-key': 'reader' }))).to.deep.equal([403, 'permission_denied', null])
    expect(
      await shape(
        api
          .get('/v1/models', good)
          .then(got => ({ ...got, body: { error: { message: 1, type: 1, code: got.status, param: 1 } } }))
      )
    ).to.deep.equal([200, 200, 1])
    expect(await shape(api.get('/v1/nothing/here', good))).to.deep.equal([404, 'unknown_url', null])
    expect(await shape(api.post('/v1/completions', {}, good))).to.deep.equal([404, 'unknown_url', null])
    expect(await shape(api.get('/v1/chat/completions', good))).to.deep.equal([405, 'method_not_supported', null])
    expect(await shape(api.post('/v1/models/a/b', {}, good))).to.deep.equal([405, 'method_not_supported', null])
    expect(await shape(api.post('/v1/chat/completions', M, { ...good, 'content-type': 'text/plain' }))).to.deep.equal([
      415,
      'unsupported_media_type',
      null,
    ])
    expect(await shape(api.post('/v1/chat/completions', '{', good))).to.deep.equal([400, 'invalid_value', 'body'])
    expect(await shape(api.post('/v1/chat/completions', { messages: [] }, good))).to.deep.equal([
      400,
      'missing_required_parameter',
      'model',
    ])
    expect(await shape(api.post('/v1/chat/completions', { ...M, model: '' }, good))).to.deep.equal([
      400,
      'invalid_value',
      'model',
    ])
    expect(await shape(api.post('/v1/chat/completions', { ...M, model: 'up2/x' }, good))).to.deep.equal([
      404,
      'model_not_found',
      'model',
    ])
    expect(await shape(api.get('/v1/models/nope', good))).to.deep.equal([404, 'model_not_found', 'model'])
  })

  it('of a limit of svc tells when to try again', async () => {
    const limits: Limits = {
      isActive: async () => true,
      take: async () => ({ allowed: false, limit: 1, window: 60, remaining: 0, reset: 1, retryAfter: 9 }),
    }
    await using api = await startApi({ give: [service(Limits, limits)] })
    const { status, headers, body } = await api.chat({ messages: [user('x')] })
    expect([status, body.error.code, headers.get('retry-after'), headers.get('x-should-retry')]).to.deep.equal([
      429,
      'rate_limit_exceeded',
      '9',
      'true',
    ])
    expect(headers.get('x-ratelimit-limit')).to.equal('1')
  })

  const FAILURES: Readonly<
    Record<
      string,
      readonly [Answerer, expected: readonly [number, string, string?], headers?: Readonly<Record<string, string | null>>]
    >
  > = {
    'a rate limit': [
      failing(429, { code: 'rate_limit_exceeded' }, { 'retry-after': '7' }),
      [429, 'rate_limit_exceeded'],
      { 'retry-after': '7', 'x-should-retry': 'true' },
    ],
    'an empty account': [
      failing(429, { code: 'insufficient_quota' }),
      [429, 'insufficient_quota'],
      { 'x-should-retry': 'false', 'retry-after': null },
    ],
    'a context that is too long': [
      failing(400, { code: 'context_length_exceeded' }),
      [400, 'context_length_exceeded', 'messages'],
      { 'x-should-retry': null },
    ],
    'a request that the model rejects': [failing(400, { code: 'x' }), [400, 'rejected_by_model']],
    'a wrong credential of svc': [
      failing(401, { code: 'invalid_api_key' }),
      [502, 'upstream_authentication_failed'],
      { 'x-should-retry': 'false' },
    ],
    'an overloaded server': [failing(503, {}), [503, 'overloaded'], { 'x-should-retry': 'true' }],
    'a broken server': [(_, reply) => reply.cut(), [502, 'upstream_error']],
    'a body that is no JSON': [(_, reply) => reply.raw(200, 'text/html', '<p>'), [502, 'upstream_error']],
  }
  for (const [what, [by, [status, code, param = null], headers = {}]] of Object.entries(FAILURES))
    it(`of a model before its first part has a status: ${status} for ${what}, with and without a stream`, async () => {
      await using api = await startApi({ upstream: by })
      for (const stream of [false, true]) {
        const got = await api.chat({ ...M, stream })
        expect([got.status, got.body.error.code, got.body.error.param], got.text).to.deep.equal([status, code, param])
        for (const [name, value] of Object.entries(headers)) expect(got.headers.get(name), name).to.equal(value)
        expect(got.headers.get('content-type')).to.equal('application/json; charset=utf-8')
        expect(got.text).to.not.include('sk-test')
      }
    })

  it('of provider-local has the same codes', async () => {
    await using api = await startApi()
    const fails = async (kind: string) => {
      const { status, body } = await api.chat({ messages: [user(`/fail ${kind}`)] })
      return [status, body.error.code]
    }
    expect(await fails('rate_limited')).to.deep.equal([429, 'rate_limit_exceeded'])
    expect(await fails('context_too_long')).to.deep.equal([400, 'context_length_exceeded'])
    expect(await fails('content_refused')).to.deep.equal([400, 'content_policy_violation'])
    expect(await fails('timeout')).to.deep.equal([504, 'upstream_timeout'])
    const long = await api.chat({ model: 'local/local-small', messages: [user('word '.repeat(20_000))] })
    expect([long.status, long.body.error.code, long.body.error.param]).to.deep.equal([400, 'context_length_exceeded', 'messages'])
  })

  it('in the middle of a stream is a frame, and the stream ends without [DONE]', async () => {
    const upstream: Answerer = async (_, reply) => {
      await reply.write(chunk({ role: 'assistant', content: 'Hel' }))
      reply.cut()
    }
    await using api = await startApi({ upstream })
    for (const body of [M, { messages: [user('hello you\n/fail overloaded after 2')] }]) {
      const { status, chunks, isDone, text } = await api.stream(body)
      expect([status, isDone]).to.deep.equal([200, false])
      expect(chunks.length).to.be.greaterThan(1)
      const { error } = chunks.at(-1)!
      expect(Object.keys(error)).to.deep.equal(['message', 'type', 'code', 'param'])
      expect(error.type).to.equal('server_error')
      expect(text.endsWith('\n\n')).to.equal(true)
    }
  })

  it('of a model that is late is a frame: the head of the stream and heartbeats go before', async () => {
    const config = { server: { heartbeat_ms: 50 }, api: { openai: { hold_ms: 100 } } }
    await using api = await startApi({ config })
    const late = await api.stream({ user: 'u', messages: [user('hello\n/delay 500')] })
    expect([late.status, late.content, late.isDone]).to.deep.equal([200, 'You said: hello', true])
    expect(late.headers.get('x-svc-dropped')).to.equal('user')
    expect(late.text.startsWith(':\n\n')).to.equal(true)
    const failed = await api.stream({ messages: [user('hello\n/delay 500\n/fail rate_limited')] })
    expect([failed.status, failed.isDone, failed.chunks.length]).to.deep.equal([200, false, 1])
    expect(failed.chunks[0]!.error.code).to.equal('rate_limit_exceeded')
  })

  it('of a server that stops in the middle of a stream is a frame, too', async () => {
    await using api = await startApi({ config: { server: { shutdown_timeout: 0.1 } } })
    const response = await send(`${api.url}/v1/chat/completions`, {
      model: 'local/local-1',
      stream: true,
      messages: [user('one two three four five\n/pace 2000')],
    })
    const reader = response.body!.getReader()
    await reader.read()
    const closing = api.host.close()
    let text = ''
    for (let step = await reader.read(); !step.done; step = await reader.read()) text += Buffer.from(step.value).toString()
    await closing
    expect(text).to.include('data: {"error":{')
    expect(text).to.include('"code":"unavailable"')
    expect(text).to.not.include('[DONE]')
  })
})
