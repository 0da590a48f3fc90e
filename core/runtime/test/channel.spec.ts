import { getEventListeners } from 'node:events'
import { systemContext, type CallContext } from '@svc/core'
import { expect } from 'chai'
import { Clock } from './support/clock.ts'
import { FAR_CLOCKS, type FarClock } from './support/far-clock.ts'
import { failureOf } from '../../../test/support/failure.ts'

const ctx = systemContext(new AbortController().signal)

for (const [border, open] of Object.entries(FAR_CLOCKS)) {
  describe(`a channel over ${border}`, () => {
    let far: FarClock
    beforeEach(async () => {
      far = open()
      await far.channel.handshake(ctx)
    })
    afterEach(() => far[Symbol.asyncDispose]())

    it('carries plain values both ways as they are', async () => {
      const value = {
        a: [1, null, undefined, 'ä'],
        big: 2n ** 70n,
        at: new Date(5),
        bytes: new Uint8Array([1, 2]),
        deep: { nan: Number.NaN },
      }
      const back = (await far.clock.echo(value, ctx)) as typeof value
      expect(back).to.deep.equal(value)
      expect(back).to.not.equal(value)
      expect(Object.getPrototypeOf(back.bytes)).to.equal(Uint8Array.prototype)
    })

    it('keeps a key __proto__ a key', async () => {
      const back = await far.clock.echo(JSON.parse('{"__proto__":{"admin":true}}'), ctx)
      expect(Object.hasOwn(back as object, '__proto__')).to.equal(true)
      expect((back as { admin?: boolean }).admin).to.equal(undefined)
    })

    it('carries principal, request id, trace and its state, deadline and idempotency key, and nothing else of use', async () => {
      const deadline = Date.now() + 60_000
      const mine = {
        ...ctx,
        principal: { id: 'ann', scopes: ['chat'] },
        requestId: 'r1',
        trace: '00-1-2-01',
        traceState: 'a=1',
        deadline,
        idempotencyKey: 'once',
        secret: 'x',
      } as CallContext
      const seen = await far.clock.circumstances(mine)
      expect(seen).to.deep.equal({
        principal: { id: 'ann', scopes: ['chat'] },
        requestId: 'r1',
        trace: '00-1-2-01',
        traceState: 'a=1',
        deadline,
        idempotencyKey: 'once',
        aborted: false,
      })
    })

    it('answers many calls at once, each with its own answer', async () => {
      const answers = await Promise.all(Array.from({ length: 200 }, (_, i) => far.clock.echo(i, ctx)))
      expect(answers).to.deep.equal(Array.from({ length: 200 }, (_, i) => i))
    })

    it('carries an error with code, details, plugin, where and hint', async () => {
      const error = await failureOf(far.clock.fail('coded', ctx))
      expect(error).to.include({
        name: 'SvcError',
        code: 'CLOCK_BROKEN',
        message: 'the spring is gone',
        plugin: 'clocks',
        where: 'spring',
        hint: 'wind it',
      })
      expect(error.details).to.deep.equal({ retryable: true, at: new Date(0) })
      expect(error.stack).to.not.include('create-clock')
    })

    it('makes an error without a code an INTERNAL_ERROR', async () => {
      expect(await failureOf(far.clock.fail('foreign', ctx))).to.include({ code: 'INTERNAL_ERROR', message: 'no such thing' })
    })

    it('carries a stream to its end', async () => {
      expect(await Array.fromAsync(far.clock.count(1000, ctx))).to.deep.equal(Array.from({ length: 1000 }, (_, i) => i + 1))
      expect((await far.watch.look(ctx)).finished).to.deep.equal(['count'])
    })

    it('keeps a fast producer within 64 items of a slow reader', async () => {
      let most = 0
      let read = 0
      for await (const item of far.clock.count(10_000, ctx)) {
        read++
        expect(item).to.equal(read)
        if (read % 500 === 0) most = Math.max(most, (await far.watch.look(ctx)).produced - read)
      }
      expect(read).to.equal(10_000)
      expect(most).to.be.within(32, 64)
    })

    it('begins a stream with its first read', async () => {
      const stream = far.clock.count(10, ctx)[Symbol.asyncIterator]()
      expect((await far.watch.look(ctx)).produced).to.equal(0)
      await stream.return?.()
      expect((await far.watch.look(ctx)).finished).to.deep.equal([])
    })

    it('runs the finally of a generator whose reader leaves early, before the reader goes on', async () => {
      for await (const item of far.clock.count(10_000, ctx)) if (item === 3) break
      expect((await far.watch.look(ctx)).finished).to.deep.equal(['count'])
    })

    it('wakes a generator that waits for its source when the reader leaves', async () => {
      for await (const item of far.clock.tick(ctx)) if (item === 1) break
      expect(await far.watch.look(ctx)).to.deep.include({ finished: ['tick'], aborted: ['ABORTED'] })
    })

    it('lets an abort reach a call, whose answer still comes', async () => {
      const controller = new AbortController()
      const answer = far.clock.wait({ ...ctx, signal: controller.signal })
      await far.clock.echo('it runs', ctx)
      controller.abort(Object.assign(new Error('enough'), { code: 'ENOUGH' }))
      expect(await answer).to.equal('ENOUGH')
    })

    it('lets an abort reach a stream', async () => {
      const controller = new AbortController()
      const stream = far.clock.tick({ ...ctx, signal: controller.signal })[Symbol.asyncIterator]()
      expect(await stream.next()).to.deep.equal({ done: false, value: 1 })
      controller.abort(Object.assign(new Error('enough'), { code: 'ENOUGH' }))
      expect(await failureOf(stream.next())).to.include({ code: 'ENOUGH' })
      expect((await far.watch.look(ctx)).finished).to.deep.equal(['tick'])
    })

    it('hands on a signal that has aborted before', async () => {
      expect(
        await far.clock.wait({ ...ctx, signal: AbortSignal.abort(Object.assign(new Error('no'), { code: 'EARLY' })) })
      ).to.equal('EARLY')
    })

    it('aborts what is not answered before its deadline', async () => {
      expect(await far.clock.wait({ ...ctx, deadline: Date.now() + 5 })).to.equal('TIMEOUT')
    })

    it('gives up a far side that does not hear an abort', async () => {
      const error = await failureOf(far.clock.hang({ ...ctx, deadline: Date.now() + 5 }))
      expect(error).to.include({ code: 'TIMEOUT', where: 'clock.hang' })
    })

    it('names the place that may not cross, on either side, and goes on', async () => {
      const whole = far.clock.echo('whole', ctx)
      const error = await failureOf(far.clock.echo({ list: [{ b: () => 1 }] }, ctx))
      expect(error).to.include({ code: 'NOT_PLAIN', plugin: 'tests', message: 'clock.echo.args[0].list[0].b is a function' })
      const stream = far.clock.cheat(ctx)[Symbol.asyncIterator]()
      expect((await stream.next()).value).to.equal(1)
      expect(await failureOf(stream.next())).to.include({ code: 'NOT_PLAIN', message: 'clock.cheat.item.deep[0] is a function' })
      expect(await whole).to.equal('whole')
    })

    it('refuses a call without use', async () => {
      const echo = far.clock.echo as (value: unknown) => Promise<unknown>
      expect(await failureOf(echo(1))).to.include({ code: 'CONTEXT_MISSING', where: 'clock.echo' })
    })

    it('finds the same contracts on both sides', () => far.channel.handshake(ctx))

    it('says so when nothing is offered at a path', async () => {
      expect(await failureOf(far.channel.reach('nowhere', Clock).echo(1, ctx))).to.include({
        code: 'NOT_OFFERED',
        plugin: 'clocks',
      })
    })

    it('fails what waits, and what comes later, with PLUGIN_GONE once the far side is gone', async () => {
      const call = failureOf(far.clock.hang(ctx))
      const stream = far.clock.tick(ctx)[Symbol.asyncIterator]()
      await stream.next()
      const next = failureOf(stream.next())
      if (far.child) far.child.kill('SIGKILL')
      else far.channel.close()
      for (const error of [await call, await next]) expect(error).to.include({ code: 'PLUGIN_GONE', plugin: 'clocks' })
      expect(await failureOf(far.clock.echo(1, ctx))).to.include({ code: 'PLUGIN_GONE' })
      expect(await failureOf(Array.fromAsync(far.clock.count(3, ctx)))).to.include({ code: 'PLUGIN_GONE' })
      expect(far.channel.signal.aborted).to.equal(true)
    })

    it('leaves no listener on a signal that outlives its calls', async () => {
      await Promise.all([
        far.clock.echo(1, ctx),
        Array.fromAsync(far.clock.count(3, ctx)),
        failureOf(far.clock.fail('coded', ctx)),
      ])
      expect(getEventListeners(ctx.signal, 'abort')).to.have.length(0)
    })
  })
}
