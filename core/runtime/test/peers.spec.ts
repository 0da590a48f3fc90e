import { memoryTransport, openChannel } from '@svc/runtime'
import { codeOf, systemContext } from '@svc/core'
import { expect } from 'chai'
import { SupervisorPeerHub } from '../supervisor/peer-hub.ts'
import { createPeerLink, type PeerHandlers, type PeerLink } from '../supervisor/peer-link.ts'
import type { PeerMetrics } from '../supervisor/peer-contract.ts'

const ctx = () => systemContext(AbortSignal.timeout(10_000))

/** A connected worker without a process: its counts and the notifications that it got. */
function enter(hub: SupervisorPeerHub, pid: number) {
  const [here, there] = memoryTransport()
  const channel = openChannel(here, { name: `worker ${pid}` })
  const far = openChannel(there, { name: 'supervisor' })
  const leave = hub.peer({ id: `s.${pid}`, generation: 1 }, channel, () => true)
  const line: PeerLink = createPeerLink(far)
  const seen = { messages: [] as unknown[], exits: [] as string[], ended: [] as string[], count: 0 }
  const handlers: PeerHandlers = {
    message: async ({ message }) => void seen.messages.push(message),
    metrics: async () => ({ count: seen.count }),
    inherit: async metrics => void (seen.count += Number(metrics.count)),
    workerExit: async left => void seen.exits.push(left),
    reclaim: async () => {},
    async *answer(topic, message, { principal, signal }) {
      if (topic === 'echo') yield { pid, message, by: principal.id }
      if (topic !== 'endless') return
      try {
        for (let at = 0; !signal.aborted; at++) yield await new Promise(resolve => setImmediate(resolve, at))
      } finally {
        seen.ended.push(topic)
      }
    },
    async *operate({ method, path }, { principal }) {
      yield { status: 200, headers: {} }
      yield `${pid} ${method} ${path} ${principal.id}`
    },
  }
  return {
    line,
    seen,
    handlers,
    join: () => line.join(handlers),
    die() {
      channel.close()
      far.close()
      leave()
    },
  }
}

const sum = (all: readonly PeerMetrics[]) => all.reduce((total, peerMetrics) => total + Number(peerMetrics.count), 0)

describe('workers among each other', () => {
  it('have all got the message when the sender has its answer', async () => {
    const hub = new SupervisorPeerHub()
    const [a, b, c] = [enter(hub, 1), enter(hub, 2), enter(hub, 3)]
    for (const item of [a, b, c]) await item.join()
    await a.line.broadcast({ topic: 't', message: 'news' }, ctx())
    expect([a, b, c].map(item => item.seen.messages)).to.deep.equal([[], ['news'], ['news']])
  })

  it('get the messages sent during their start before they serve, and no sender waits for them', async () => {
    const hub = new SupervisorPeerHub()
    const [a, starting] = [enter(hub, 1), enter(hub, 2)]
    await a.join()
    await a.line.broadcast({ topic: 't', message: 'early' }, ctx())
    expect(starting.seen.messages).to.deep.equal([])
    await starting.join()
    expect(starting.seen.messages).to.deep.equal(['early'])
  })

  it('answer a request of the operator, one of the newest generation that has joined', async () => {
    const hub = new SupervisorPeerHub()
    const request = { method: 'GET', path: '/a' }
    const early = await Array.fromAsync(hub.operateNewest(request, ctx())).catch(codeOf)
    expect(early).to.equal('PEER_GONE')
    const [a] = [enter(hub, 1), enter(hub, 2)]
    await a.join()
    expect(await Array.fromAsync(hub.operateNewest(request, ctx()))).to.deep.equal([
      { status: 200, headers: {} },
      '1 GET /a system',
    ])
  })

  it('are not waited for when they die', async () => {
    const hub = new SupervisorPeerHub()
    const [a, b] = [enter(hub, 1), enter(hub, 2)]
    const asked = Promise.withResolvers<void>()
    await a.join()
    await b.line.join({ ...b.handlers, message: () => (asked.resolve(), new Promise<void>(() => {})) })
    const reported = a.line.broadcast({ topic: 't', message: 'news' }, ctx())
    await asked.promise
    b.die()
    await reported
  })

  it('hear of a death', async () => {
    const hub = new SupervisorPeerHub()
    const [a, b] = [enter(hub, 1), enter(hub, 2)]
    const heard = Promise.withResolvers<string>()
    await a.line.join({ ...a.handlers, workerExit: async worker => heard.resolve(worker) })
    await b.join()
    b.die()
    expect(await heard.promise).to.equal('s.2')
  })

  it('never count less after a death, nor anything twice', async () => {
    const hub = new SupervisorPeerHub()
    const pool = [enter(hub, 1), enter(hub, 2), enter(hub, 3)]
    for (const item of pool) await item.join()
    for (const item of pool) item.seen.count = 10
    const [a, b, c] = pool as [(typeof pool)[0], (typeof pool)[0], (typeof pool)[0]]
    expect(sum(await a.line.metrics(ctx()))).to.equal(30)
    expect((await a.line.metrics(ctx())).map(metric => metric.generation)).to.deep.equal([1, 1, 1])
    b.die()
    for (let i = 0; i < 5; i++) expect(sum(await c.line.metrics(ctx()))).to.equal(30)
    a.die()
    for (let i = 0; i < 5; i++) expect(sum(await c.line.metrics(ctx()))).to.equal(30)
    const late = enter(hub, 4)
    await late.join()
    late.seen.count = 1
    c.die()
    for (let i = 0; i < 5; i++) expect(sum(await late.line.metrics(ctx()))).to.equal(31)
  })

  it('read their slow figures once for all that wait for them', async () => {
    const hub = new SupervisorPeerHub()
    const a = enter(hub, 1)
    const { metrics } = a.handlers
    let reads = 0
    const going = Promise.withResolvers<void>()
    await a.line.join({
      ...a.handlers,
      metrics: async of => {
        reads++
        await going.promise
        return metrics(of)
      },
    })
    const first = a.line.metrics(ctx())
    await new Promise(resolve => setImmediate(resolve))
    a.seen.count = 3
    const later = Array.from({ length: 20 }, () => a.line.metrics(ctx()))
    going.resolve()
    await first
    for (const all of await Promise.all(later)) expect(sum(all)).to.equal(3)
    expect(reads).to.be.at.most(3)
    a.die()
  })

  it('share places: never more than there are, those of one that ends are free', async () => {
    const hub = new SupervisorPeerHub()
    const [a, b] = [enter(hub, 1), enter(hub, 2)]
    for (const item of [a, b]) await item.join()
    const take = ({ line }: typeof a) => line.acquire('seats', 3, ctx())
    const got = await Promise.all(Array.from({ length: 10 }, (_, at) => take(at < 5 ? a : b)))
    expect(got.filter(Boolean)).to.have.length(3)
    await a.line.release('seats', ctx())
    expect([await take(b), await take(b)]).to.deep.equal([true, false])
    expect(await b.line.acquire('others', 1, ctx())).to.equal(true)
    a.die()
    const more = [await take(b), await take(b), await take(b)]
    expect(more.filter(Boolean)).to.have.length(2)
  })

  it('are asked for the places that they only keep before one is refused', async () => {
    const hub = new SupervisorPeerHub()
    const [a, b] = [enter(hub, 1), enter(hub, 2)]
    await a.line.join({ ...a.handlers, reclaim: async name => a.line.release(name, ctx()) })
    await b.join()
    expect(await a.line.acquire('seats', 1, ctx())).to.equal(true)
    expect(await b.line.acquire('seats', 1, ctx())).to.equal(true)
    expect(await a.line.acquire('seats', 1, ctx())).to.equal(false)
  })

  it('pass on what a successor had not taken when it died itself', async () => {
    const hub = new SupervisorPeerHub()
    const [a, b, c] = [enter(hub, 1), enter(hub, 2), enter(hub, 3)]
    const asked = Promise.withResolvers<void>()
    await a.line.join({ ...a.handlers, inherit: () => (asked.resolve(), new Promise<void>(() => {})) })
    await b.join()
    await c.join()
    a.seen.count = 1
    b.seen.count = 10
    expect(sum(await c.line.metrics(ctx()))).to.equal(11)
    b.die()
    await asked.promise
    const all = await c.line.metrics(ctx())
    expect(sum(all)).to.equal(11)
    expect(all.filter(metric => metric.ended)).to.have.length(1)
    a.die()
    expect(sum(await c.line.metrics(ctx()))).to.equal(11)
  })

  it('ask one of them by its name, with the principal of the question', async () => {
    const hub = new SupervisorPeerHub()
    const [a, b] = [enter(hub, 1), enter(hub, 2)]
    for (const item of [a, b]) await item.join()
    expect(await a.line.self()).to.not.equal(await b.line.self())
    const ann = { ...ctx(), principal: { id: 'ann', scopes: [] } }
    const answers = await Array.fromAsync(a.line.ask(await b.line.self(), 'echo', { hello: 1 }, ann))
    expect(answers).to.deep.equal([{ pid: 2, message: { hello: 1 }, by: 'ann' }])
    expect(await Array.fromAsync(a.line.ask(await a.line.self(), 'echo', 2, ann))).to.deep.equal([
      { pid: 1, message: 2, by: 'ann' },
    ])
  })

  it('end an answer that has no reader any more', async () => {
    const hub = new SupervisorPeerHub()
    const [a, b] = [enter(hub, 1), enter(hub, 2)]
    for (const item of [a, b]) await item.join()
    for await (const item of a.line.ask(await b.line.self(), 'endless', null, ctx())) if (item === 3) break
    expect(b.seen.ended).to.deep.equal(['endless'])
  })

  it('hear that the one they asked has ended, or never was', async () => {
    const hub = new SupervisorPeerHub()
    const [a, b] = [enter(hub, 1), enter(hub, 2)]
    for (const item of [a, b]) await item.join()
    const name = await b.line.self()
    const reading = (async () => {
      for await (const item of a.line.ask(name, 'endless', null, ctx())) if (item === 3) b.die()
    })()
    expect(await reading.catch((error: { code: string }) => error.code)).to.equal('PEER_GONE')
    const again = Array.fromAsync(a.line.ask(name, 'echo', null, ctx()))
    expect(await again.catch((error: { code: string }) => error.code)).to.equal('PEER_GONE')
  })
})
