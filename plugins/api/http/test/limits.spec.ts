import { once } from 'node:events'
import type { Socket } from 'node:net'
import { expect } from 'chai'
import { type ConfigTree, svcError } from '@svc/core'
import { type Allowance, AuthSchemes, Limits, type Route } from '@svc/core/contracts'
import { item, service } from '@svc/testing'
import { setTimeout as wait } from 'node:timers/promises'
import { call, open, serve, signalOf } from './support/client.ts'
import { free, keys, who } from './support/who.ts'

const PASS: Allowance = { allowed: true, limit: 60, window: 60, remaining: 59, reset: 1_900_000_000, retryAfter: 0 }
const DAY: Allowance = { allowed: false, limit: 1000, window: 86_400, remaining: 0, reset: 1_900_000_000, retryAfter: 1234 }

async function limited(take: Limits['take'], isActive = true) {
  const taken: unknown[] = []
  const limits: Limits = {
    isActive: async () => isActive,
    take: async ctx => (taken.push(ctx.principal), await take(ctx)),
  }
  const server = await serve({ who, free }, {}, undefined, [service(Limits, limits) as ReturnType<typeof item>])
  return { ...server, taken }
}

describe('the documented limits', () => {
  it('are counted once a request, for its principal, and shown in headers', async () => {
    await using server = await limited(async () => PASS)
    const { status, headers } = await call(`${server.url}/who`)
    expect(status).to.equal(200)
    expect(['limit', 'remaining', 'reset'].map(name => headers.get(`x-ratelimit-${name}`))).to.deep.equal([
      '60',
      '59',
      '1900000000',
    ])
    expect(server.taken).to.deep.equal([{ id: 'anonymous', scopes: ['*'], address: '127.0.0.1' }])
  })

  it('are counted for what is refused later too, and not for what is uncounted', async () => {
    await using server = await limited(async () => PASS)
    expect((await call(`${server.url}/nowhere`)).headers.get('x-ratelimit-limit')).to.equal('60')
    expect((await call(`${server.url}/free`)).headers.get('x-ratelimit-limit')).to.equal(null)
    expect(server.taken).to.have.length(1)
  })

  it('answer 429 with the window that is full', async () => {
    await using server = await limited(async () => DAY)
    const { status, body, headers } = await call(`${server.url}/who`)
    expect([status, body.error_code]).to.deep.equal([429, 'RATE_LIMITED'])
    expect(body.details).to.deep.equal({ limit: 1000, window: 86_400, retry_after: 1234 })
    expect([headers.get('retry-after'), headers.get('x-ratelimit-remaining')]).to.deep.equal(['1234', '0'])
  })

  it('show the minute in the headers where the day refuses', async () => {
    await using server = await limited(async () => ({ ...DAY, shown: { limit: 60, remaining: 12, reset: 1_800_000_000 } }))
    const { body, headers } = await call(`${server.url}/who`)
    expect(body.details).to.deep.equal({ limit: 1000, window: 86_400, retry_after: 1234 })
    expect(['limit', 'remaining', 'reset'].map(name => headers.get(`x-ratelimit-${name}`))).to.deep.equal([
      '60',
      '12',
      '1800000000',
    ])
  })

  it('that cannot be counted are no free pass', async () => {
    await using server = await limited(async () => {
      throw svcError('UNAVAILABLE', 'the store is down')
    })
    expect((await call(`${server.url}/who`)).status).to.equal(503)
  })

  it('that are off are not asked and set no header', async () => {
    await using server = await limited(async () => DAY, false)
    const { status, headers } = await call(`${server.url}/who`)
    expect([status, headers.get('x-ratelimit-limit'), server.taken.length]).to.deep.equal([200, null, 0])
  })
})

/** Routes that stay open until they are released. */
function holding() {
  const release = signalOf()
  const begun: (() => void)[] = []
  const hold: Route = {
    method: 'GET',
    path: '/hold',
    summary: 'Holds',
    scope: 'read',
    async handle(_request, { signal }) {
      begun.shift()?.()
      await Promise.race([release.promise, signal.aborted ? undefined : once(signal, 'abort')])
      return { text: 'held' }
    },
  }
  const flow: Route = {
    method: 'GET',
    path: '/flow',
    summary: 'Flows',
    scope: 'read',
    async *stream(_request, { signal }) {
      yield 'one'
      begun.shift()?.()
      await Promise.race([release.promise, signal.aborted ? undefined : once(signal, 'abort')])
      yield 'two'
    },
  }
  const begins = () => {
    const { promise, resolve } = signalOf()
    begun.push(resolve)
    return promise
  }
  return { routes: { hold, flow, who, free }, release, begins }
}

async function hold(url: string, path: string, begins: () => Promise<void>, headers = ''): Promise<Socket> {
  const socket = await open(url)
  const begun = begins()
  socket.resume().write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`)
  await begun
  return socket
}

describe('what one principal has open', () => {
  const serveWith = (server: ConfigTree) => {
    const held = holding()
    const scheme = keys('x-api-key', { a: { id: 'a', scopes: ['*'] }, b: { id: 'b', scopes: ['*'] } })
    return serve(held.routes, server, undefined, [item(AuthSchemes, 'key', scheme)]).then(served => ({ ...served, ...held }))
  }
  /** Asks until it is answered so: a client that has left is noticed a moment later. */
  const until = async (status: number, url: string, headers: Record<string, string> = {}) => {
    while ((await call(url, { headers })).status !== status) await wait(5)
  }

  it('is bounded; others, and what is uncounted, go on; what ends makes room', async () => {
    await using server = await serveWith({ auth: { enabled: true }, max_requests_per_principal: 2 })
    const mine = [
      await hold(server.url, '/hold', server.begins, 'X-API-Key: a\r\n'),
      await hold(server.url, '/flow', server.begins, 'X-API-Key: a\r\n'),
    ]
    const ask = (path: string, key: string) => call(`${server.url}${path}`, { headers: { 'x-api-key': key } })
    const { status, body, headers } = await ask('/who', 'a')
    expect([status, body.error_code]).to.deep.equal([429, 'RATE_LIMITED'])
    expect(body.details).to.deep.equal({ limit: 2, window: 0, retry_after: 1 })
    expect(headers.get('retry-after')).to.equal('1')
    expect((await ask('/who', 'b')).status).to.equal(200)
    expect((await ask('/free', 'a')).status).to.equal(200)
    mine[0]!.destroy()
    await until(200, `${server.url}/who`, { 'x-api-key': 'a' })
    mine[1]!.destroy()
  })

  it('is bounded for streams by themselves', async () => {
    await using server = await serveWith({ max_streams_per_principal: 1 })
    const stream = await hold(server.url, '/flow', server.begins)
    expect((await call(`${server.url}/flow`)).body.details).to.deep.include({ limit: 1 })
    expect((await call(`${server.url}/who`)).status).to.equal(200)
    stream.destroy()
    server.release.resolve()
    await until(200, `${server.url}/flow`)
  })

  it('counts for its address where it has no name', async () => {
    await using server = await serveWith({ max_requests_per_principal: 1, trusted_proxies: ['127.0.0.1'] })
    const socket = await hold(server.url, '/hold', server.begins, 'X-Forwarded-For: 203.0.113.7\r\n')
    const ask = (address: string) => call(`${server.url}/who`, { headers: { 'x-forwarded-for': address } })
    expect((await ask('203.0.113.7')).status).to.equal(429)
    expect((await ask('203.0.113.8')).status).to.equal(200)
    socket.destroy()
  })
})

describe('a flood', () => {
  it('from one address is held off before authentication; this machine is not limited', async () => {
    const server = { auth: { enabled: true }, trusted_proxies: ['127.0.0.1'], max_requests_per_second: 20 }
    await using found = await serve({ free }, server, undefined, [item(AuthSchemes, 'key', keys('x-api-key', {}))])
    const ask = (headers: Record<string, string> = {}) => call(`${found.url}/free`, { headers })
    const replies = await Promise.all(Array.from({ length: 60 }, () => ask({ 'x-forwarded-for': '203.0.113.7' })))
    const refused = replies.filter(reply => reply.status === 429)
    expect(refused.length).to.be.within(1, 40)
    expect(refused[0]!.body.details).to.deep.equal({ limit: 20, window: 1, retry_after: 1 })
    expect((await Promise.all(Array.from({ length: 60 }, () => ask()))).every(entry => entry.status === 200)).to.equal(true)
  })
})

describe('connections', () => {
  it('beyond server.max_connections are closed at once, and those within are served', async () => {
    const lines: string[] = []
    await using server = await serve({ free }, { max_connections: 2 }, { destination: { write: line => void lines.push(line) } })
    const sockets = [await open(server.url), await open(server.url)]
    const third = await open(server.url)
    await once(third.resume(), 'close')
    expect(lines.join('')).to.include('closed a connection: server.max_connections is reached')
    sockets[0]!.write('GET /free HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
    await once(sockets[0]!.resume(), 'close')
    expect((await call(`${server.url}/free`)).status).to.equal(200)
    sockets[1]!.destroy()
  })
})
