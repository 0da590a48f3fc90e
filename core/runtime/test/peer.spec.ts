import { once } from 'node:events'
import { createConnection, createServer, type Socket } from 'node:net'
import { openChannel, socketTransport } from '@svc/runtime'
import { systemContext } from '@svc/core'
import { expect } from 'chai'
import { createFrameReader, encodeFrame, MOST_BYTES } from '../processes/frames.ts'
import { Clock } from './support/clock.ts'
import { createClock } from './support/create-clock.ts'
import { failureOf } from '../../../test/support/failure.ts'
import { lying } from './support/lying.ts'

const ctx = { principal: { id: 'eve', scopes: [] }, requestId: 'r1' }

const [CALL, CREDIT, ANSWER, ITEM, FAIL] = [1, 3, 5, 6, 7]

describe('a channel whose far side lies', () => {
  for (const method of ['nothing', '__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
    it(`refuses the method ${method}`, async () => {
      const peer = lying()
      peer.speak([CALL, 1, 'clock', method, [], ctx])
      expect(await peer.heard(1, FAIL)).to.include({ code: 'METHOD_UNKNOWN', plugin: 'svc' })
    })
  }

  for (const path of ['nothing', '__proto__', 'constructor']) {
    it(`refuses the path ${path}`, async () => {
      const peer = lying()
      peer.speak([CALL, 1, path, 'echo', [], ctx])
      expect(await peer.heard(1, FAIL)).to.include({ code: 'NOT_OFFERED' })
    })
  }

  it('hands on only what belongs into use', async () => {
    const peer = lying()
    peer.speak([CALL, 1, 'clock', 'circumstances', [], { ...ctx, signal: 'mine', admin: true }])
    expect(await peer.heard(1, ANSWER)).to.deep.equal({ ...ctx, aborted: false })
  })

  const nonsense: [string, unknown][] = [
    ['no list', 'hello'],
    ['a list of texts', ['hello']],
    ['an unknown word', [[99, 1]]],
    ['a word that is a key of every object', [['constructor']]],
    ['an id that is no number', [[CALL, 'x', 'clock', 'echo', [], ctx]]],
    ['arguments that are no list', [[CALL, 1, 'clock', 'echo', { length: 1 }, ctx]]],
    ['a call without use', [[CALL, 1, 'clock', 'echo', []]]],
    ['a principal without scopes', [[CALL, 1, 'clock', 'echo', [], { ...ctx, principal: { id: 'eve' } }]]],
    ['a deadline that is text', [[CALL, 1, 'clock', 'echo', [], { ...ctx, deadline: 'soon' }]]],
    ['a failure without an error', [[FAIL, 1, null]]],
    ['another protocol', [[0, 2]]],
  ]
  for (const [what, batch] of nonsense) {
    it(`ends at ${what}`, async () => {
      const peer = lying()
      const waiting = failureOf(peer.channel.reach('clock', Clock).echo(1, systemContext(new AbortController().signal)))
      peer.speak(...(Array.isArray(batch) ? batch : [batch]))
      expect(await waiting).to.include({ code: 'PLUGIN_GONE', plugin: 'eve' })
      expect(peer.isClosed()).to.equal(true)
    })
  }

  it('ends when it uses the id of a call that still runs', () => {
    const peer = lying()
    peer.speak([CALL, 1, 'clock', 'hang', [], ctx], [CALL, 1, 'clock', 'echo', [], ctx])
    expect(peer.isClosed()).to.equal(true)
  })

  it('gives no peer more room than the window', async () => {
    const peer = lying()
    peer.speak(
      [CALL, 1, 'clock', 'count', [10_000], ctx],
      [CREDIT, 1, 1_000_000],
      [CREDIT, 1, -5],
      [CALL, 2, 'clock', 'echo', ['after'], ctx]
    )
    await peer.heard(2, ANSWER)
    expect(peer.log.produced).to.be.at.most(128)
    peer.channel.close()
  })

  it('ends when it is sent more items than there is room for', async () => {
    const peer = lying()
    const stream = peer.channel
      .reach('clock', Clock)
      .count(1, systemContext(new AbortController().signal))
      [Symbol.asyncIterator]()
    const first = stream.next()
    peer.speak(...Array.from({ length: 66 }, (_, i) => [ITEM, 1, i]))
    expect((await first).value).to.equal(0)
    expect(peer.isClosed()).to.equal(true)
  })

  it('is not troubled by words about calls that are over, or never were', () => {
    const peer = lying()
    peer.speak([ANSWER, 7, 1], [ITEM, 7, 1], [FAIL, 7, {}], [CREDIT, 7, 1], [4, 7], [2, 7, {}])
    expect(peer.isClosed()).to.equal(false)
  })

  it('takes an error for what it is, whatever its parts are', async () => {
    const peer = lying()
    const waiting = failureOf(peer.channel.reach('clock', Clock).echo(1, systemContext(new AbortController().signal)))
    peer.speak([FAIL, 1, { code: 5, message: { a: 1 }, details: 'x', plugin: [], hint: 'look' }])
    expect(await waiting).to.deep.include({ code: 'INTERNAL_ERROR', message: '', details: {}, hint: 'look' })
  })
})

describe('a channel over a socket', () => {
  const pair = async (): Promise<[Socket, Socket]> => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address() as { port: number }
    const near = createConnection(address.port, '127.0.0.1')
    const [far] = (await once(server, 'connection')) as [Socket]
    server.close()
    return [near, far]
  }

  it('ends when a frame announces more than 64 MiB, before it is held', async () => {
    const [near, far] = await pair()
    const channel = openChannel(socketTransport(near), { name: 'eve' })
    const head = Buffer.alloc(4)
    head.writeUInt32LE(MOST_BYTES + 1)
    far.write(head)
    await once(channel.signal, 'abort')
    expect((channel.signal.reason as Error).message).to.include('maximum of 67108864')
    far.destroy()
  })

  it('ends when bytes are no values', async () => {
    const [near, far] = await pair()
    const channel = openChannel(socketTransport(near), { name: 'eve' })
    far.write(Buffer.from([3, 0, 0, 0, 1, 2, 3]))
    await once(channel.signal, 'abort')
    far.destroy()
  })

  it('refuses to send more than 64 MiB at once, and goes on', async () => {
    const [near, far] = await pair()
    const channel = openChannel(socketTransport(near), { name: 'far', self: 'near' })
    const other = openChannel(socketTransport(far), { name: 'near', self: 'far' })
    other.offer('clock', Clock, createClock())
    const clock = channel.reach('clock', Clock)
    const mine = systemContext(new AbortController().signal)
    expect(await failureOf(clock.echo(new Uint8Array(MOST_BYTES + 1), mine))).to.include({
      code: 'FRAME_TOO_LARGE',
      where: 'clock.echo',
    })
    expect(await failureOf(clock.bytes(MOST_BYTES + 1, mine))).to.include({ code: 'FRAME_TOO_LARGE' })
    expect(await clock.bytes(5_000_000, mine)).to.have.length(5_000_000)
    channel.close()
  })

  it('reads values however their bytes are cut', () => {
    const values = [1, { a: 'x'.repeat(1000) }, [undefined, 2n], new Uint8Array(300)]
    const bytes = Buffer.concat(values.map(value => encodeFrame(value)))
    for (const size of [1, 2, 3, 7, 100, bytes.length]) {
      const seen: unknown[] = []
      const read = createFrameReader(value => seen.push(value))
      for (let at = 0; at < bytes.length; at += size) read(bytes.subarray(at, at + size))
      expect(seen).to.deep.equal(values)
    }
  })
})
