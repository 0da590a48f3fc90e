import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type CallContext, systemContext } from '@svc/core'
import {
  type AuthScheme,
  AuthSchemes,
  type Listener,
  Listeners,
  type OperatorAnswers,
  type OperatorRequest,
  Peers,
} from '@svc/core/contracts'
import { item, service } from '@svc/testing'
import { expect } from 'chai'
import { call, serve } from './support/client.ts'
import { keys, who } from './support/who.ts'

const scheme: AuthScheme = keys('x-api-key', {})

/** A server whose socket another process holds, as that of a worker, and what answers the operator. */
async function serveOperator({
  gifts = [],
  clusterId,
}: {
  readonly gifts?: Parameters<typeof serve>[3]
  readonly clusterId?: string
} = {}) {
  let answer: OperatorAnswers | undefined
  const sockets = createServer()
  const listener: Listener = {
    async listen(_address, take) {
      sockets.on('connection', take).listen(0, '127.0.0.1')
      await once(sockets, 'listening')
      return (sockets.address() as { port: number }).port
    },
    serveOperator: async given => void (answer = given),
  }
  let ended = 0
  const endless = {
    method: 'GET' as const,
    path: '/endless',
    summary: 'Never ends',
    scope: 'read' as const,
    streams: 'text/event-stream',
    async *stream(_request: unknown, { signal }: CallContext) {
      try {
        for (let i = 0; ; i++) {
          yield `data: ${'x'.repeat(i * 1000)}\n\n`
          await sleep(5, undefined, { signal })
        }
      } finally {
        ended++
      }
    },
  }
  const slow = {
    method: 'POST' as const,
    path: '/slow',
    summary: 'Answers late',
    scope: 'admin' as const,
    handle: async (_request: unknown, { signal }: CallContext) => {
      await sleep(60_000, undefined, { signal }).catch(() => {})
      ended++
      return { body: {} }
    },
  }
  const server = await serve(
    { who, endless, slow },
    { auth: { enabled: true } },
    undefined,
    [item(AuthSchemes, 'key', scheme), item(Listeners, 'test', listener), ...gifts],
    clusterId === undefined ? {} : { clusterId }
  )
  const ask = (request: OperatorRequest, signal = new AbortController().signal) =>
    answer!(request, systemContext(signal))[Symbol.asyncIterator]()
  return {
    ask,
    url: server.url,
    ended: () => ended,
    async [Symbol.asyncDispose]() {
      sockets.close()
      await server.host.close()
    },
  }
}

describe('requests of the operator', () => {
  let server: Awaited<ReturnType<typeof serveOperator>>
  const errors: unknown[] = []
  const noted = (error: unknown) => void errors.push(error)
  before(async () => {
    server = await serveOperator()
    process.on('uncaughtExceptionMonitor', noted)
  })
  after(async () => {
    process.off('uncaughtExceptionMonitor', noted)
    await server[Symbol.asyncDispose]()
  })
  const statusOf = async (request: OperatorRequest) => {
    const head = (await server.ask(request).next()).value
    return typeof head === 'object' ? head.status : undefined
  }

  it('come from the principal `system`, which no header of a client of the port claims', async () => {
    const reading = server.ask({ method: 'GET', path: '/who' })
    expect((await reading.next()).value).to.include({ status: 200 })
    expect(JSON.parse(String((await reading.next()).value))).to.include({ id: 'system' })
    const claims = { host: 'localhost', forwarded: 'for=127.0.0.1', 'x-forwarded-for': '127.0.0.1', 'x-svc-principal': 'system' }
    for (const headers of [claims, { 'x-api-key': 'system' }, { authorization: 'Bearer system' }])
      expect((await call(`${server.url}/who`, { headers })).status).to.equal(401)
  })

  it('are answered in a cluster that cannot count them, so that the operator can look for the reason', async () => {
    const peers: Peers = {
      broadcast: async () => {},
      metrics: async () => [],
      acquire: () => Promise.reject(new Error('gone')),
      release: async () => {},
      self: async () => 'w1',
      async *ask() {},
    }
    const gift = service(Peers, peers) as ReturnType<typeof item>
    await using cut = await serveOperator({ gifts: [gift], clusterId: 'blue' })
    expect((await cut.ask({ method: 'GET', path: '/who' }).next()).value).to.include({ status: 200 })
    expect((await call(`${cut.url}/who`)).status, 'a client without a credential').to.equal(401)
  })

  it('end with the command, whenever it leaves, and harm nothing else', async () => {
    const leaves = {
      async abort(reading: AsyncIterator<unknown>, stop: AbortController) {
        await reading.next()
        const next = reading.next().then(() => reading.next())
        stop.abort(new Error('gone'))
        await next.catch(() => {})
      },
      async return(reading: AsyncIterator<unknown>) {
        await reading.next()
        await reading.next()
        await reading.return?.()
      },
      async early(reading: AsyncIterator<unknown>, stop: AbortController) {
        const first = reading.next().catch(() => {})
        stop.abort(new Error('gone'))
        await first
      },
    }
    for (const [name, leave] of Object.entries(leaves))
      for (const request of [
        { method: 'GET', path: '/endless', accept: 'text/event-stream' },
        ...(name === 'early' ? [{ method: 'POST', path: '/slow', body: '{}' }] : []),
      ]) {
        const stop = new AbortController()
        await leave(server.ask(request, stop.signal), stop)
        await sleep(100)
        expect(errors, name).to.deep.equal([])
      }
    while (server.ended() < 2) await sleep(10)
    expect(await statusOf({ method: 'GET', path: '/who' })).to.equal(200)
  })

  it('cannot be split, and go to no other server', async () => {
    const smuggled = ' HTTP/1.1\r\nHost: localhost\r\n\r\nPOST /slow'
    for (const request of [
      { method: 'GET', path: `/who${smuggled}` },
      { method: `GET /who${smuggled}`, path: '/who' },
      { method: 'GET', path: '/who', accept: '*/*\r\nX-Api-Key: a' },
    ])
      expect(await statusOf(request).catch((error: unknown) => error), JSON.stringify(request)).to.be.instanceOf(Error)
    expect(await statusOf({ method: 'GET', path: 'http://evil.example/who' })).to.equal(403)
    expect(await statusOf({ method: 'GET', path: '//evil.example/who' })).to.equal(404)
  })
})
