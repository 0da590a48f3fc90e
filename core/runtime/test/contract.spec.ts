import { defineService, systemContext, type CallContext } from '@svc/core'
import { type Channel, memoryTransport, openChannel } from '@svc/runtime'
import { expect } from 'chai'
import { Clock, Gadgets } from './support/clock.ts'
import { createClock } from './support/create-clock.ts'
import { failureOf } from '../../../test/support/failure.ts'

const ctx = systemContext(new AbortController().signal)

describe('a channel', () => {
  const pair = (onError?: (error: unknown, where: string) => void): [Channel, Channel] => {
    const [a, b] = memoryTransport()
    const log = onError ? { onError } : {}
    return [openChannel(a, { name: 'far', self: 'near', graceMs: 300 }), openChannel(b, { name: 'near', self: 'far', ...log })]
  }

  it('aborts what runs on this side, and ends its streams, when the far side goes', async () => {
    const [near, far] = pair()
    const log = { produced: 0, finished: [] as string[], aborted: [] as string[] }
    far.offer('clock', Clock, createClock(log))
    const clock = near.reach('clock', Clock)
    const waiting = failureOf(clock.wait(ctx))
    const stream = clock.count(1000, ctx)[Symbol.asyncIterator]()
    await stream.next()
    near.close()
    await waiting
    await new Promise<void>(resolve => far.signal.addEventListener('abort', () => setImmediate(resolve)))
    expect(log).to.deep.include({ aborted: ['PLUGIN_GONE'], finished: ['count'] })
  })

  it('offers both ways, and takes back', async () => {
    const [near, far] = pair()
    near.offer('clock', Clock, createClock())
    const remove = far.offer('clock', Clock, createClock())
    expect(await far.reach('clock', Clock).echo('to near', ctx)).to.equal('to near')
    expect(await near.reach('clock', Clock).echo('to far', ctx)).to.equal('to far')
    remove()
    expect(await failureOf(near.reach('clock', Clock).echo(1, ctx))).to.include({ code: 'NOT_OFFERED' })
    near.close()
  })

  it('gives a stub the data of an item and only the methods it has', async () => {
    const [near, far] = pair()
    far.offer('gadgets.bell', Gadgets, { colour: 'red', press: async times => 'ding'.repeat(times), async *hum() {} })
    const bell = near.reach('gadgets.bell', Gadgets, { data: { colour: 'red' }, only: ['press', 'hum'] })
    expect(Object.keys(bell)).to.deep.equal(['colour', 'press', 'hum'])
    expect(await bell.press(2, ctx)).to.equal('dingding')
    const whole = near.reach('gadgets.bell', Gadgets)
    expect(await failureOf(whole.extra!(ctx))).to.include({ code: 'METHOD_UNKNOWN', plugin: 'far' })
    near.close()
  })

  it('prevents no call, but refuses a contract of another form', async () => {
    const Older = defineService<{ echo(value: unknown, ctx: CallContext): Promise<unknown> }>('clock', {
      api: 1,
      methods: { echo: 'call' },
    })
    const [near, far] = pair()
    far.offer('clock', Clock, createClock())
    const clock = near.reach('clock', Older)
    for (const error of [await failureOf(near.handshake(ctx)), await failureOf(clock.echo(1, ctx))]) {
      expect(error).to.include({ code: 'CONTRACT_MISMATCH', plugin: 'near' })
      expect(error.message).to.include('{echo: call}').and.include(' cheat: stream')
      expect(error.hint).to.include('built for this version of svc')
    }
    near.close()
  })

  it('refuses another api version and another name', async () => {
    const Newer = defineService<Clock>('clock', { api: 2, methods: Clock.methods as never })
    const [near, far] = pair()
    far.offer('clock', Clock, createClock())
    near.reach('clock', Newer)
    expect((await failureOf(near.handshake(ctx))).message).to.include('api 2 instead of 1')
    near.reach('clock', Gadgets)
    expect((await failureOf(near.handshake(ctx))).message).to.include('"clock" here and "gadgets" there')
    near.close()
  })

  it('gives errors without a code, and their stack, to the log of the side where they happen', async () => {
    const problems: [unknown, string][] = []
    const [near, far] = pair((error, where) => problems.push([error, where]))
    far.offer('clock', Clock, createClock())
    await failureOf(near.reach('clock', Clock).fail('foreign', ctx))
    await failureOf(near.reach('clock', Clock).fail('coded', ctx))
    expect(problems).to.have.length(1)
    expect(problems[0]![0]).to.be.instanceOf(TypeError)
    expect(problems[0]![1]).to.equal('clock.fail')
    near.close()
  })

  it('freezes what arrives over memory, and names unplain details of an error', async () => {
    const [near, far] = pair()
    far.offer('clock', Clock, createClock())
    const clock = near.reach('clock', Clock)
    expect(Object.isFrozen(await clock.echo({ a: [1] }, ctx))).to.equal(true)
    expect(await failureOf(clock.fail('unplain', ctx))).to.include({
      code: 'NOT_PLAIN',
      plugin: 'far',
      message: 'clock.fail.error.details.why is a function',
    })
    near.close()
  })
})
