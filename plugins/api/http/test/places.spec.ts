import { systemContext } from '@svc/core'
import { Peers } from '@svc/core/contracts'
import { type item, service } from '@svc/testing'
import { expect } from 'chai'
import { setTimeout as wait } from 'node:timers/promises'
import { WorkerSemaphore } from '../src/limits.ts'
import { call, open, serve } from './support/client.ts'
import { who } from './support/who.ts'

const lasting = systemContext(new AbortController().signal)

/** Places that peers count, and what they were asked. */
function counted(limit: number) {
  const asked: string[] = []
  let free = limit
  const peers = {
    acquire: async (name: string) => (asked.push(`acquire ${name}`), free > 0 && free-- > 0),
    release: async (name: string) => void (asked.push(`release ${name}`), free++),
  }
  return { places: new WorkerSemaphore({ prefix: 'p/', limit, peers, lasting }), asked, free: () => free }
}

describe('places', () => {
  it('are asked for one by one where there are few, and given back at once', async () => {
    const { places, asked, free } = counted(2)
    expect(await Promise.all([places.take('a'), places.take('a'), places.take('a')])).to.deep.equal([true, true, false])
    places.give('a')
    places.give('a')
    expect(free()).to.equal(2)
    expect(asked.length).to.equal(5)
  })

  it('are kept for the next one where there are many, and left when others want them', async () => {
    const { places, asked, free } = counted(32)
    const taken = await Promise.all([places.take('a'), places.take('a'), places.take('a')])
    expect(taken).to.deep.equal([true, true, true])
    for (const _ of taken) places.give('a')
    expect(free(), 'all are kept for a moment').to.equal(29)
    while (free() < 30) await wait(5)
    asked.length = 0
    expect([places.take('a'), places.take('a')], 'no promise').to.deep.equal([true, true])
    places.give('a')
    expect(asked).to.deep.equal([])
    await places.yield('other/a')
    expect(free()).to.equal(30)
    await places.yield('p/a')
    expect(free()).to.equal(31)
    places.give('a')
    await places.yield('p/a')
    expect(free()).to.equal(32)
  })

  it('are kept while requests follow each other', async () => {
    const { places, asked, free } = counted(32)
    const many = Array.from({ length: 8 }, (_, at) => at)
    await Promise.all(many.map(async () => places.take('a')))
    for (const _ of many) places.give('a')
    asked.length = 0
    for (const until = Date.now() + 300; Date.now() < until; await wait(5)) {
      for (const _ of many) expect(places.take('a')).to.equal(true)
      for (const _ of many) places.give('a')
    }
    expect(asked).to.deep.equal([])
    while (free() < 30) await wait(5)
    expect(asked.length, 'all but two are left').to.equal(6)
  })

  it('are counted in the worker alone if the supervisor does not answer', async () => {
    const broken = async () => Promise.reject(new Error('gone'))
    const places = new WorkerSemaphore({ prefix: 'p/', limit: 2, peers: { acquire: broken, release: broken }, lasting })
    expect(await Promise.all([places.take('a'), places.take('a'), places.take('a'), places.take('b')])).to.deep.equal([
      true,
      true,
      false,
      true,
    ])
    places.give('a')
    expect(await places.take('a')).to.equal(true)
  })

  it('are not counted in one server of a cluster alone: without an answer it gives none', async () => {
    const broken = async () => Promise.reject(new Error('gone'))
    const parts = { prefix: 'p/', limit: 2, peers: { acquire: broken, release: broken }, isCluster: true, lasting }
    const places = new WorkerSemaphore(parts)
    expect(await Promise.all([places.take('a'), places.take('b')])).to.deep.equal(['unknown', 'unknown'])
    let isBack = false
    const peers = { acquire: async () => isBack || broken(), release: async () => {} }
    const returning = new WorkerSemaphore({ ...parts, peers })
    expect(await returning.take('a')).to.equal('unknown')
    isBack = true
    expect(await returning.take('a')).to.equal(true)
  })

  it('that one server of a cluster keeps are good only for a while without an answer', async () => {
    let answer: 'free' | 'full' | 'none' = 'free'
    let asked = 0
    const peers = {
      acquire: async () => (asked++, answer === 'none' ? Promise.reject(new Error('gone')) : answer === 'free'),
      release: async () => {},
    }
    const places = new WorkerSemaphore({ prefix: 'p/', limit: 32, peers, isCluster: true, lasting })
    expect(await places.take('a')).to.equal(true)
    places.give('a')
    expect(places.take('a'), 'kept').to.equal(true)
    places.give('a')
    // its clock is the monotonic one
    const now = performance.now()
    const clock = performance.now.bind(performance)
    try {
      performance.now = () => now + 6_000
      answer = 'none'
      expect(await places.take('a'), 'the others can have freed it').to.equal('unknown')
      answer = 'full'
      expect(await places.take('a'), 'it is part of the limit').to.equal(true)
      places.give('a')
      expect([asked, places.take('a')], 'confirmed').to.deep.equal([3, true])
    } finally {
      performance.now = clock
    }
  })

  it('that nothing counts let no request in, in a cluster', async () => {
    const peers: Peers = {
      broadcast: async () => {},
      metrics: async () => [],
      acquire: () => Promise.reject(new Error('gone')),
      release: async () => {},
      self: async () => 'w1',
      async *ask() {},
    }
    const gift = service(Peers, peers) as ReturnType<typeof item>
    await using server = await serve({ who }, {}, undefined, [gift], { clusterId: 'blue' })
    const refused = await call(`${server.url}/who`)
    expect([refused.status, refused.headers.get('retry-after')]).to.deep.equal([503, '5'])
    expect(refused.body).to.deep.include({ error_code: 'UNAVAILABLE' })
    expect(JSON.stringify(refused.body)).to.include('cannot count the open requests of its cluster')
    expect(Object.keys((refused.body as { details: object }).details)).to.deep.equal(['reason', 'retry_after'])
  })

  it('leave nothing behind of callers without end', async () => {
    const { places, free } = counted(64)
    for (let at = 0; at < 3000; at++) {
      expect(await places.take(`${at}`)).to.equal(true)
      places.give(`${at}`)
      await places.yield(`p/${at}`)
    }
    expect(free()).to.equal(64)
  })

  it('are left again by a request whose client has gone while it waited for them', async () => {
    const asked = Promise.withResolvers<void>()
    const answer = Promise.withResolvers<boolean>()
    const left = Promise.withResolvers<string>()
    const peers: Peers = {
      broadcast: async () => {},
      metrics: async () => [],
      acquire: () => (asked.resolve(), answer.promise),
      release: async name => left.resolve(name),
      self: async () => 'w1',
      async *ask() {},
    }
    const lines: string[] = []
    const log = { destination: { write: (line: string) => void lines.push(line) } }
    const gift = service(Peers, peers) as ReturnType<typeof item>
    await using server = await serve({ who }, { max_requests_per_principal: 1 }, log, [gift])
    const socket = await open(server.url)
    socket.write('GET /who HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await asked.promise
    socket.destroy()
    while (!lines.join('').includes('"gone":true')) await wait(5)
    answer.resolve(true)
    expect(await left.promise).to.equal('http.requests/address/127.0.0.1')
    expect((await call(`${server.url}/who`)).status).to.equal(200)
  })
})
