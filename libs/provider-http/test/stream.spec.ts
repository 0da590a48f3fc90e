import { expect } from 'chai'
import { abortable, becomes, DONE, failing, frame, idle, open, reader, readAll, SECRET, textOf } from './support/rig.ts'

describe('an upstream, streaming', () => {
  it('gives the events of the frames in order, and says what it asks', async () => {
    await using rig = await open(async (_, reply) => {
      await reply.write(frame('a') + frame('b'))
      reply.end(`event: named\ndata: c\n\n${DONE}`)
    })
    const { all } = await readAll(rig.upstream.stream('/chat?v=1', { hello: 'ä' }, reader(), abortable().ctx))
    expect(textOf(all)).to.equal('a|b|named: c|<finish>')
    const [asked] = rig.fake.received
    expect([asked?.method, asked?.path, asked?.body]).to.deep.equal(['POST', '/v1/chat?v=1', { hello: 'ä' }])
    expect(asked?.headers).to.include({
      authorization: `Bearer ${SECRET}`,
      accept: 'text/event-stream',
      'content-type': 'application/json',
      'accept-encoding': 'identity',
      'x-request-id': 'request-1',
    })
    expect(asked?.headers.traceparent).to.match(/^00-a+-b+-01$/)
    expect(asked?.headers.tracestate).to.equal('a=1')
  })

  it('keeps characters whole that are cut anywhere, with each kind of line end', async () => {
    await using rig = await open(async ({ body }, reply) => {
      const { end } = body as { end: string }
      await reply.split(`: hi\ndata: {"t":\ndata: "ä€😀"}\n\n${DONE}`.replaceAll('\n', end))
      reply.end()
    })
    for (const end of ['\n', '\r\n', '\r']) {
      const { all } = await readAll(rig.upstream.stream('/chat', { end }, reader(), abortable().ctx))
      expect(textOf(all)).to.equal('ä€😀|<finish>')
    }
  })

  it('ends with the last frame though the upstream does not end the body, and lets the connection go', async () => {
    await using rig = await open(async (_, reply) => {
      await reply.write(frame('a') + DONE)
      await reply.silence()
    })
    const { all } = await readAll(rig.upstream.stream('/chat', {}, reader(), abortable().ctx))
    expect(textOf(all)).to.equal('a|<finish>')
    await idle(rig.fake)
  })

  it('uses connections again', async () => {
    await using rig = await open((_, reply) => reply.end(frame('a') + DONE))
    for (let times = 0; times < 5; times++) {
      await readAll(rig.upstream.stream('/chat', {}, reader(), abortable().ctx))
      await idle(rig.fake)
    }
    // the end of a body may still be on its way when the next call begins
    expect(rig.fake.connected()).to.be.at.most(2)
  })

  it('pauses the socket of a reader that is slow, and loses nothing', async () => {
    const big = 'x'.repeat(10_000)
    let written = 0
    await using rig = await open(async (_, reply) => {
      for (; written < 3000; written++) await reply.write(frame(big))
      reply.end(DONE)
    })
    const events = rig.upstream.stream('/chat', {}, reader(), abortable().ctx)
    await events.next()
    // What fits into the buffers of two sockets is written; then the server waits.
    let [before, quiet] = [-1, 0]
    await becomes(() => {
      quiet = written === before ? quiet + 1 : 0
      before = written
      return quiet > 100
    })
    expect(written).to.be.below(3000)
    const { all } = await readAll(events)
    expect(all).to.have.lengthOf(3000)
  })

  it('closes the socket when it is aborted, wherever it is', async () => {
    await using rig = await open(async ({ path }, reply) => {
      if (path.endsWith('/silent')) await reply.silence()
      else await reply.endless(at => frame(`${at}`))
    })
    for (const path of ['/silent', '/endless']) {
      const { ctx, controller } = abortable()
      const events = rig.upstream.stream(path, {}, reader(), ctx)
      const first = events.next()
      await becomes(() => rig.fake.open() === 1)
      if (path === '/endless') await first
      controller.abort(new Error('away'))
      const { error } = await readAll({ [Symbol.asyncIterator]: () => events })
      if (path === '/silent') expect((await failing(first)).message).to.equal('away')
      else expect(error?.message).to.equal('away')
      expect((await events.next()).done).to.equal(true)
      await idle(rig.fake)
    }
  })

  it('asks nothing for a call that is aborted while it waits for a connection, and serves the next', async () => {
    await using rig = await open(
      async ({ path }, reply) => {
        if (path.endsWith('/first')) await reply.endless(at => frame(`${at}`))
        else reply.end(frame('third') + DONE)
      },
      { limits: { connections: 1 } }
    )
    const first = rig.upstream.stream('/first', {}, reader(), abortable().ctx)
    await first.next()
    const { ctx, controller } = abortable()
    const second = failing(rig.upstream.stream('/second', {}, reader(), ctx).next())
    const third = readAll(rig.upstream.stream('/third', {}, reader(), abortable().ctx))
    controller.abort(new Error('away'))
    expect((await second).message).to.equal('away')
    await first.return?.()
    expect(textOf((await third).all)).to.equal('third|<finish>')
    expect(rig.fake.received.map(request => request.path)).to.deep.equal(['/v1/first', '/v1/third'])
  })

  it('asks nothing when it is aborted before, or without a reader', async () => {
    await using rig = await open((_, reply) => reply.end(DONE))
    const { ctx, controller } = abortable()
    controller.abort(new Error('away'))
    expect((await failing(rig.upstream.stream('/chat', {}, reader(), ctx).next())).message).to.equal('away')
    const unread = rig.upstream.stream('/chat', {}, reader(), abortable().ctx)
    await unread.return?.()
    expect((await unread.next()).done).to.equal(true)
    expect(rig.fake.received).to.deep.equal([])
  })

  it('closes the socket when its reader leaves', async () => {
    await using rig = await open((_, reply) => reply.endless(at => frame(`${at}`)))
    for await (const event of rig.upstream.stream('/chat', {}, reader(), abortable().ctx)) {
      expect(event.type).to.equal('text')
      break
    }
    await idle(rig.fake)
  })

  it('gives what came before a cut, and then says that the connection broke', async () => {
    await using rig = await open(async (_, reply) => {
      await reply.write(frame('a'))
      reply.cut()
    })
    const { all, error } = await readAll(rig.upstream.stream('/chat', {}, reader(), abortable().ctx))
    expect(textOf(all)).to.equal('a')
    expect(error?.details).to.deep.equal({ kind: 'network', retryable: true })
  })

  for (const [what, piece, words] of [
    ['that ends too soon', frame('b'), /ended its answer early/],
    ['with a frame that is no JSON', `data: {"t":\n\n${DONE}`, /cannot be read/],
    ['with a frame of another form', `data: null\n\n${DONE}`, /cannot be read/],
    ['with a frame that never ends', `data: ${'x'.repeat(5000)}`, /too large/],
  ] as const)
    it(`fails in words for a stream ${what}`, async () => {
      await using rig = await open(
        async (_, reply) => {
          await reply.write(frame('a'))
          reply.end(piece)
        },
        { limits: { frameBytes: 4000 } }
      )
      const { all, error } = await readAll(rig.upstream.stream('/chat', {}, reader(), abortable().ctx))
      expect(textOf(all)).to.match(/^a/)
      expect(error).to.include({ code: 'MODEL_FAILED' })
      expect(error?.details).to.include({ kind: 'network' })
      expect(error?.message).to.match(words)
    })
})
