import { once } from 'node:events'
import { createConnection, createServer, type Socket } from 'node:net'
import { systemContext } from '@svc/core'
import { openChannel, socketTransport } from '@svc/runtime'
import { expect } from 'chai'
import { canTap } from '../isolation/contributions.ts'
import { oneAtATime } from '../isolation/isolated-instance.ts'
import { encodeFrame } from '../processes/frames.ts'
import { Clock } from './support/clock.ts'
import { failureOf } from '../../../test/support/failure.ts'
import { lying } from './support/lying.ts'

const [CALL, ABORT, RETURN, ANSWER, ITEM, FAIL, SHAPE] = [1, 2, 4, 5, 6, 7, 8]
const ctx = { principal: { id: 'eve', scopes: [] }, requestId: 'r1' }
const own = systemContext(new AbortController().signal)

describe('a far side that is not trusted', () => {
  it('has so many calls under way and no more, and asks on when one has ended', async () => {
    const peer = lying({ callLimits: { calls: 2, bytes: 1e9 } })
    peer.speak(...[1, 2, 3].map(id => [CALL, id, 'clock', 'wait', [], ctx]))
    expect(await peer.heard(3, FAIL)).to.include({ code: 'ASKED_TOO_MUCH' })
    peer.speak([ABORT, 1, { code: 'LEFT', message: 'left' }])
    expect(await peer.heard(1, ANSWER)).to.equal('LEFT')
    peer.speak([CALL, 4, 'clock', 'echo', ['on'], ctx])
    expect(await peer.heard(4, ANSWER)).to.equal('on')
    peer.channel.close()
  })

  it('has calls of so many bytes under way and no more', async () => {
    const peer = lying({ callLimits: { calls: 100, bytes: 1000 } })
    peer.weigh(1200, [CALL, 1, 'clock', 'wait', [], ctx], [CALL, 2, 'clock', 'wait', [], ctx])
    expect(await peer.heard(2, FAIL)).to.include({ code: 'ASKED_TOO_MUCH' })
    peer.weigh(300, [CALL, 3, 'clock', 'echo', ['on'], ctx])
    expect(await peer.heard(3, ANSWER)).to.equal('on')
    peer.channel.close()
  })

  it('reports a wrong path or method by its beginning alone', async () => {
    const peer = lying()
    const long = 'x'.repeat(1_000_000)
    peer.speak([CALL, 1, long, 'echo', [], ctx], [CALL, 2, 'clock', long, [], ctx])
    for (const id of [1, 2]) expect(JSON.stringify(await peer.heard(id, FAIL)).length).to.be.below(1500)
  })

  it('ends when the forms that it expects are too long to be kept', () => {
    const breaches: string[] = []
    const peer = lying({ callLimits: { calls: 9, bytes: 1000 }, onBreach: why => breaches.push(why) })
    peer.weigh(900, [SHAPE, 'a', { name: 'a', api: 1, methods: {} }])
    expect(peer.isClosed()).to.equal(false)
    peer.weigh(900, [SHAPE, 'b', { name: 'b', api: 1, methods: {} }])
    expect(peer.isClosed()).to.equal(true)
    expect(breaches).to.have.length(1)
  })

  it('fills a stream no further than may wait unread: that stream fails, and others go on', async () => {
    const peer = lying({ callLimits: { calls: 9, bytes: 1000 } })
    const items = (id: number) => {
      const stream = peer.channel.reach('clock', Clock).count(1, own)[Symbol.asyncIterator]()
      return { first: stream.next(), next: () => stream.next(), send: (value: string) => peer.weigh(900, [ITEM, id, value]) }
    }
    const full = items(1)
    full.send('a')
    full.send('b')
    expect((await full.first).value).to.equal('a')
    expect(await failureOf(full.next())).to.include({ code: 'UNREAD_TOO_MUCH' })
    expect(peer.said).to.deep.include([RETURN, 1])
    const other = items(2)
    other.send('c')
    expect((await other.first).value).to.equal('c')
    other.send('d')
    expect((await other.next()).value).to.equal('d')
    peer.channel.close()
  })

  it('says of an error only what can be shown, and is short', async () => {
    const peer = lying()
    const waiting = failureOf(peer.channel.reach('clock', Clock).echo(1, own))
    const details = { all: 'x'.repeat(2_000_000), some: 1 }
    peer.speak([
      FAIL,
      1,
      { code: 'no code', message: `\u001b[2J\u0007gone\n${'x'.repeat(20_000)}`, hint: '\u009b1mnow', details },
    ])
    const error = await waiting
    expect(error).to.deep.include({ code: 'INTERNAL_ERROR', hint: '1mnow', details: { some: 1, cut: true } })
    expect(error.message).to.match(/^\[2Jgone\nxxx/)
    expect(error.message.length).to.be.below(10_001)
  })
})

describe('a socket to a far side that is not trusted', () => {
  const pair = async (): Promise<[Socket, Socket]> => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const near = createConnection((server.address() as { port: number }).port, '127.0.0.1')
    const [far] = (await once(server, 'connection')) as [Socket]
    server.close()
    return [near, far.on('error', () => {})]
  }

  it('ends when it leaves too much unread', async () => {
    const [near, far] = await pair()
    const channel = openChannel(socketTransport(near, { unread: 1_000_000 }), { name: 'eve' })
    const clock = channel.reach('clock', Clock)
    const calls: Promise<unknown>[] = []
    while (!channel.signal.aborted) {
      calls.push(clock.echo(new Uint8Array(500_000), own).catch(() => {}))
      await new Promise(resolve => setImmediate(resolve))
    }
    expect((channel.signal.reason as Error).message).to.include('it leaves more than 1000000 bytes unread')
    await Promise.all(calls)
    far.destroy()
  })

  it('is read a gulp at a time, with a turn for all others between', async () => {
    const [near, far] = await pair()
    let turn = 0
    let ticking = true
    const tick = () => {
      turn++
      if (ticking) setImmediate(tick)
    }
    const gulps: number[] = []
    const all = Promise.withResolvers<void>()
    socketTransport(near, { isFair: true }).listen(
      value => value === 'last' && all.resolve(),
      () => {}
    )
    near.on('data', (chunk: Buffer) => chunk.length > 16_384 && gulps.push(turn))
    tick()
    far.write(Buffer.concat([encodeFrame('x'.repeat(1_000_000)), encodeFrame('last')]))
    await all.promise
    ticking = false
    expect(gulps.length).to.be.above(3)
    expect(new Set(gulps).size).to.equal(gulps.length)
    near.destroy()
    far.destroy()
  })
})

describe('work of which one runs at a time', () => {
  it('runs once more for all that asked while it ran, and tells each how that went', async () => {
    const ends: PromiseWithResolvers<void>[] = []
    const ask = oneAtATime(() => {
      ends.push(Promise.withResolvers<void>())
      return ends.at(-1)!.promise
    })
    const first = ask()
    const others = [ask(), ask(), ask()]
    expect(ends).to.have.length(1)
    ends[0]!.reject(new Error('the first'))
    expect((await failureOf(first)).message).to.equal('the first')
    await new Promise(resolve => setImmediate(resolve))
    expect(ends).to.have.length(2)
    ends[1]!.resolve()
    await Promise.all(others)
  })
})

describe('the hooks of the host', () => {
  it('are open to isolated plugins, but those with spans and what people wrote need a permission', () => {
    const plugin = (...hooks: string[]) =>
      ({ ref: { confinement: { permissions: { hooks } } }, requires: {}, optional: {} }) as unknown as Parameters<
        typeof canTap
      >[1]
    for (const hook of ['host.ready', 'host.closing']) expect(canTap(hook, plugin()), hook).to.equal(true)
    for (const hook of ['host.spans', 'host.spanContents']) {
      expect(canTap(hook, plugin()), hook).to.equal(false)
      expect(canTap(hook, plugin(hook)), hook).to.equal(true)
    }
    expect(canTap('host.spanContents', plugin('host.spans'))).to.equal(false)
  })
})
