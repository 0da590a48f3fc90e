import { codeOf } from '@svc/core'
import { createUpstream, type FrameReader } from '@svc/provider-http'
import { expect } from 'chai'
import { openUpstream } from '@svc/testing'
import { abortable, becomes, DONE, failing, idle, open, reader, readAll, SECRET } from './support/rig.ts'

describe('an upstream, failing', () => {
  for (const [status, headers, body, details] of [
    [
      429,
      { 'retry-after': '7' },
      { error: { message: 'slow down' } },
      { kind: 'rate_limited', retryable: true, retryAfterMs: 7000 },
    ],
    [429, { 'retry-after-ms': '250', 'retry-after': '7' }, {}, { kind: 'rate_limited', retryable: true, retryAfterMs: 250 }],
    [429, { 'retry-after': 'Mon, 01 Jan 2001 00:00:00 GMT' }, {}, { kind: 'rate_limited', retryable: true, retryAfterMs: 0 }],
    [429, { 'retry-after': 'soon' }, 'too many tokens', { kind: 'rate_limited', retryable: true }],
    [401, {}, { error: 'no' }, { kind: 'authentication', retryable: false }],
    [403, {}, {}, { kind: 'authentication', retryable: false }],
    [404, {}, { detail: 'no such model' }, { kind: 'bad_request', retryable: false }],
    [422, {}, {}, { kind: 'bad_request', retryable: false }],
    [408, {}, {}, { kind: 'timeout', retryable: true }],
    [504, {}, '<html>', { kind: 'timeout', retryable: true }],
    [500, {}, '', { kind: 'overloaded', retryable: true }],
    [529, {}, {}, { kind: 'overloaded', retryable: true }],
    [413, {}, {}, { kind: 'context_too_long', retryable: false }],
    [
      400,
      {},
      {
        error: { message: "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens." },
      },
      { kind: 'context_too_long', retryable: false, limit: 8192, count: 9001 },
    ],
    [
      400,
      {},
      { error: { message: 'prompt is too long: 208310 tokens > 200000 maximum' } },
      { kind: 'context_too_long', retryable: false, limit: 200_000, count: 208_310 },
    ],
  ] as const)
    it(`takes ${status} ${JSON.stringify(headers)} ${JSON.stringify(body)} as ${details.kind}`, async () => {
      await using rig = await open((_, reply) =>
        typeof body === 'string' ? reply.raw(status, 'text/html', body, headers) : reply.json(status, body, headers)
      )
      const expected = { upstreamStatus: status, ...details }
      const { all, error } = await readAll(rig.upstream.stream('/chat', {}, reader(), abortable().ctx))
      expect(all).to.deep.equal([])
      expect(error?.details).to.deep.equal(expected)
      expect((await failing(rig.upstream.json('GET', '/models', undefined, abortable().ctx))).details).to.deep.equal(expected)
    })

  it('refuses a redirect with the hint, and asks no other server', async () => {
    await using other = await openUpstream((_, reply) => reply.end(DONE))
    await using rig = await open((_, reply) => reply.redirect(307, `${other.url}/v1/chat`))
    for (const error of [
      await failing(rig.upstream.stream('/chat', {}, reader(), abortable().ctx).next()),
      await failing(rig.upstream.json('GET', '/models', undefined, abortable().ctx)),
    ]) {
      expect(error.details).to.deep.equal({ kind: 'bad_request', retryable: false, upstreamStatus: 307 })
      expect(error.hint).to.include('providers.acme.base_url')
    }
    expect(other.received).to.deep.equal([])
  })

  it('says what it got where no stream came: a page, an error, a JSON', async () => {
    let body: readonly [string, string] = ['text/html', '<h1>Log in</h1>']
    await using rig = await open((_, reply) => reply.raw(200, ...body))
    const ask = async () => (await readAll(rig.upstream.stream('/chat', {}, reader(), abortable().ctx))).error
    expect((await ask())?.message).to.include('a web page')
    body = ['application/json', '{"error": {"message": "the model sleeps"}}']
    expect((await ask())?.message).to.include('the model sleeps')
    body = ['application/json', '{"ok": tr']
    expect((await ask())?.details).to.include({ kind: 'bad_request' })
  })

  it('unpacks nothing that it did not ask for', async () => {
    await using rig = await open((_, reply) => reply.raw(200, 'text/event-stream', 'not really', { 'content-encoding': 'gzip' }))
    const { error } = await readAll(rig.upstream.stream('/chat', {}, reader(), abortable().ctx))
    expect(error?.details).to.deep.equal({ kind: 'bad_request', retryable: false })
    expect(error?.message).to.include('compressed')
  })

  it('waits for no error body that never ends, and keeps little of one that is huge', async () => {
    await using rig = await open(async (_, reply) => {
      reply.raw(500, 'application/json', `{"error": "${'x'.repeat(200_000)}`)
    })
    const { error } = await readAll(rig.upstream.stream('/chat', {}, reader(), abortable().ctx))
    expect(error?.details).to.include({ kind: 'overloaded', upstreamStatus: 500 })
    expect(error?.message.length).to.be.below(1000)
    await idle(rig.fake)
  })

  it('says no secret, whatever the upstream says', async () => {
    const reported = `bad key ${SECRET} (Bearer ${SECRET}), header-secret-1 ${encodeURIComponent('file/secret+1')}`
    let status = 401
    await using rig = await open(
      (_, reply) =>
        status === 200 ? reply.end(`data: ${JSON.stringify({ told: reported })}\n\n`) : reply.json(status, { error: reported }),
      { headers: { authorization: `Bearer ${SECRET}`, 'X-Team-Token': 'header-secret-1' }, secrets: [SECRET, 'file/secret+1'] }
    )
    const telling: FrameReader = {
      frame: data => {
        throw rig.upstream.failed(200, { error: (JSON.parse(data) as { told: string }).told })
      },
      end: () => {},
    }
    const errors = [
      await failing(rig.upstream.stream('/chat', {}, reader(), abortable().ctx).next()),
      await failing(rig.upstream.json('GET', '/models', undefined, abortable().ctx)),
    ]
    status = 200
    errors.push(await failing(rig.upstream.stream('/chat', {}, telling, abortable().ctx).next()))
    for (const error of errors) {
      expect(error.message).to.include('bad key [secret]')
      const words = `${error.message} ${error.hint} ${JSON.stringify(error.details)} ${String(error.cause)}`
      for (const secret of [SECRET, 'header-secret-1', 'file/secret+1', 'secret%2B1']) expect(words).not.to.include(secret)
    }
  })

  it('tells a refused connection and a closed provider', async () => {
    const fake = await openUpstream(() => {})
    await fake.close()
    const upstream = createUpstream({ provider: 'acme', baseUrl: fake.url, headers: {}, secrets: [] })
    const refused = await failing(upstream.stream('/chat', {}, reader(), abortable().ctx).next())
    expect(refused.details).to.deep.equal({ kind: 'network', retryable: true })
    expect(refused.message).to.include('ECONNREFUSED').and.not.include('127.0.0.1')
    await upstream.close()
    expect((await failing(upstream.json('GET', '/', undefined, abortable().ctx))).details).to.deep.equal({
      kind: 'network',
      retryable: false,
    })
  })

  it('ends what runs when it is closed', async () => {
    await using rig = await open((_, reply) => reply.silence())
    const waiting = failing(rig.upstream.stream('/chat', {}, reader(), abortable().ctx).next())
    await becomes(() => rig.fake.open() === 1)
    await rig.upstream.close()
    expect(codeOf(await waiting)).to.equal('MODEL_FAILED')
    await becomes(() => rig.fake.sockets() === 0)
  })
})

describe('an upstream, asked for one JSON', () => {
  it('answers with what the upstream reports', async () => {
    await using rig = await open(({ body }, reply) => reply.json(200, { got: body ?? null }))
    expect(await rig.upstream.json('GET', '/models', undefined, abortable().ctx)).to.deep.equal({ got: null })
    expect(await rig.upstream.json('POST', '/count', { a: 1 }, abortable().ctx)).to.deep.equal({ got: { a: 1 } })
  })

  it('gives up a body that is too long, one that is late, and one that its caller aborted', async () => {
    await using rig = await open(
      async ({ path }, reply) => (path.endsWith('/long') ? reply.json(200, 'x'.repeat(5000)) : reply.silence()),
      { limits: { bodyBytes: 1000, jsonMs: 300 } }
    )
    const { ctx, controller } = abortable()
    expect((await failing(rig.upstream.json('GET', '/long', undefined, ctx))).message).to.include('more than 1000 bytes')
    expect((await failing(rig.upstream.json('GET', '/late', undefined, ctx))).details).to.include({ kind: 'timeout' })
    await idle(rig.fake)
    const left = failing(rig.upstream.json('GET', '/late', undefined, ctx))
    await becomes(() => rig.fake.open() === 1)
    controller.abort(new Error('away'))
    expect((await left).message).to.equal('away')
    await idle(rig.fake)
  })
})
