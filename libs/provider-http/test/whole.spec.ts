import { svcError } from '@svc/core'
import { type FrameReader, malformed, type UpstreamOptions } from '@svc/provider-http'
import type { Answerer } from '@svc/testing'
import { expect } from 'chai'
import { abortable, becomes, DONE, frame, idle, open, readAll, reader, textOf } from './support/rig.ts'

const wholeReader = (): FrameReader => ({
  ...reader(),
  whole(body, emit) {
    const { t, secret } = (body ?? {}) as { t?: string; secret?: string }
    if (secret !== undefined) throw svcError('MODEL_FAILED', `it said ${secret}`, { details: { kind: 'overloaded' } })
    if (t === undefined) throw malformed('acme')
    emit({ type: 'text', text: t })
  },
  end: emit => emit({ type: 'finish', reason: 'stop' }),
})

async function answerTo(by: Answerer, limits: UpstreamOptions['limits'] = {}) {
  await using rig = await open(by, { limits })
  const { all, error } = await readAll(rig.upstream.whole('/chat', { q: 1 }, wholeReader(), abortable().ctx))
  await idle(rig.fake)
  return { text: textOf(all), error, received: rig.fake.received }
}

describe('an upstream, asked for a whole answer', () => {
  it('says so, and gives the events of the one JSON', async () => {
    const { text, received } = await answerTo((_, reply) => reply.json(200, { t: 'all at once' }))
    expect(text).to.equal('all at once|<finish>')
    expect(received[0]).to.deep.include({ method: 'POST', path: '/v1/chat', body: { q: 1 } })
    expect(received[0]?.headers.accept).to.equal('application/json')
  })

  it('sends a list of tools as it is, the first time and again, beside whatever else and alone', async () => {
    await using rig = await open((_, reply) => reply.json(200, { t: 'yes' }))
    const [first, other] = [[{ name: 'wetter', description: 'Für Köln – “heute”' }], [{ name: 'news' }]]
    const bodies = [
      { q: 'größer', tools: first },
      { tools: first, q: 2 },
      { tools: first },
      { q: 3, tools: other },
      { tools: [] },
      { tools: 7 },
    ]
    for (const body of bodies) await readAll(rig.upstream.whole('/chat', body, wholeReader(), abortable().ctx))
    expect(rig.fake.received.map(({ body }) => body)).to.deep.equal(bodies)
  })

  it('reads a stream that comes all the same, and a JSON that comes for a stream or is not called one', async () => {
    const streaming: Answerer = (_, reply) => reply.end(frame('a') + frame('b'))
    expect((await answerTo(streaming)).text).to.equal('a|b|<finish>')
    expect((await answerTo((_, reply) => reply.raw(200, 'text/plain', frame('a')))).text).to.equal('a|<finish>')
    expect((await answerTo((_, reply) => reply.raw(200, 'text/plain', '{"t": "a"}'))).text).to.equal('a|<finish>')
    await using rig = await open((_, reply) => reply.json(200, { t: 'all at once' }))
    const { all } = await readAll(rig.upstream.stream('/chat', {}, wholeReader(), abortable().ctx))
    expect(textOf(all)).to.equal('all at once|<finish>')
  })

  for (const [what, by, failure] of [
    ['a JSON of another form', (_, reply) => reply.json(200, { x: 1 }), { kind: 'network', retryable: true }],
    ['half a JSON', (_, reply) => reply.raw(200, 'application/json', '{"t": "a'), { kind: 'network', retryable: true }],
    ['nothing', (_, reply) => reply.raw(200, 'application/json', ''), { kind: 'network', retryable: true }],
    ['a page', (_, reply) => reply.raw(200, 'text/html', '<h1>Log in</h1>'), { kind: 'bad_request', retryable: false }],
    ['an error', (_, reply) => reply.json(200, { error: 'it sleeps' }), { kind: 'overloaded', retryable: true }],
    ['more than the limit', (_, reply) => reply.json(200, { t: 'x'.repeat(2000) }), { kind: 'network', retryable: false }],
    [
      'a body that breaks',
      async (_, reply) => {
        reply.begin({ 'content-type': 'application/json' })
        await reply.write('{"t": "a"}')
        reply.cut()
      },
      { kind: 'network', retryable: true },
    ],
  ] as const satisfies readonly (readonly [string, Answerer, object])[])
    it(`fails for ${what}`, async () => {
      const { text, error } = await answerTo(by, { bodyBytes: 1000 })
      expect(text).to.equal('')
      expect(error?.details).to.deep.equal(failure)
    })

  it('says no secret that its reader repeats', async () => {
    const { error } = await answerTo((_, reply) => reply.json(200, { secret: 'sk-canary-0123456789' }))
    expect(error?.message).to.equal('it said [secret]')
  })

  it('closes the socket when it is aborted, before the answer and within it', async () => {
    for (const begun of [false, true]) {
      await using rig = await open(async (_, reply) => {
        if (begun) {
          reply.begin({ 'content-type': 'application/json' })
          await reply.write('{"t": ')
        }
        await reply.silence()
      })
      const { ctx, controller } = abortable()
      const reading = readAll(rig.upstream.whole('/chat', {}, wholeReader(), ctx))
      await becomes(() => rig.fake.open() === 1)
      controller.abort(new Error('enough'))
      expect((await reading).error?.message).to.equal('enough')
      await idle(rig.fake)
    }
  })

  it('asks for the same as a stream in all but one header', async () => {
    await using rig = await open((_, reply) => reply.end(DONE))
    for (const way of ['stream', 'whole'] as const) await readAll(rig.upstream[way]('/chat', {}, reader(), abortable().ctx))
    const [streamed, whole] = rig.fake.received.map(({ headers }) => headers)
    expect({ ...whole, accept: '' }).to.deep.equal({ ...streamed, accept: '' })
  })
})
