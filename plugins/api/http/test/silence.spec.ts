import { once } from 'node:events'
import type { Socket } from 'node:net'
import { expect } from 'chai'
import { Http, type Route } from '@svc/core/contracts'
import { setTimeout as wait } from 'node:timers/promises'
import { call, open, raw, serve, signalOf, ctx } from './support/client.ts'
import { GOOD, say } from './support/routes.ts'
import { free } from './support/who.ts'

const QUICK = { headers_timeout_ms: 200, request_timeout_ms: 400, stall_timeout_ms: 200, keep_alive_ms: 200 }

/** What came until the far side closed. */
async function received(socket: Socket): Promise<string> {
  let text = ''
  socket.setEncoding('utf8').on('data', chunk => (text += chunk))
  if (!socket.closed) await once(socket, 'close')
  return text
}

describe('a client that stalls', () => {
  let server: Awaited<ReturnType<typeof serve>>
  before(async () => {
    server = await serve({ free, say }, QUICK)
  })
  after(() => server.host.close())
  // where others load the machine, a good client may need longer than these limits once or twice
  const serves = () => until(async () => (await call(`${server.url}/free`).catch(() => undefined))?.status === 200)

  it('with a thousand sockets and not a word is cut off in time, others served on', async () => {
    const sockets = await Promise.all(Array.from({ length: 1000 }, () => open(server.url)))
    await serves()
    await Promise.all(sockets.map(received))
    await serves()
  })

  it('within its headers is answered 400 and cut off', async () => {
    const socket = await open(server.url)
    socket.write('GET /free HTTP/1.1\r\nHost: local')
    expect(await received(socket))
      .to.match(/^HTTP\/1.1 400 /)
      .and.include('was not received in time')
    await serves()
  })

  it('within its body is answered 400 and cut off', async () => {
    const socket = await open(server.url)
    socket.write(
      `POST /say HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${GOOD.length}\r\n\r\n{"me`
    )
    expect(await received(socket)).to.match(/^HTTP\/1.1 400 /)
    await serves()
  })

  it('between two requests is let go', async () => {
    const socket = await open(server.url)
    socket.write('GET /free HTTP/1.1\r\nHost: localhost\r\n\r\n')
    expect(await received(socket)).to.match(/^HTTP\/1.1 200 /)
  })
})

describe('a client that reads nothing', () => {
  const asked = { '/whale': signalOf(), '/river': signalOf() }
  const whale: Route = {
    method: 'GET',
    path: '/whale',
    summary: 'Large',
    async handle() {
      asked['/whale'].resolve()
      return { text: 'w'.repeat(30_000_000) }
    },
  }
  const river: Route = {
    method: 'GET',
    path: '/river',
    summary: 'Flows',
    async *stream() {
      asked['/river'].resolve()
      for (;;) yield 'r'.repeat(65_536)
    },
  }
  let server: Awaited<ReturnType<typeof serve>>
  before(async () => {
    server = await serve({ free, whale, river }, { stall_timeout_ms: 200 })
  })
  after(() => server.host.close())

  for (const path of ['/whale', '/river'] as const)
    it(`of ${path} is cut off, others served on`, async () => {
      const socket = await open(server.url)
      socket.pause().write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
      await asked[path].promise
      expect((await call(`${server.url}/free`)).status).to.equal(200)
      await until(async () => (await server.host.service(Http).metrics(ctx)).requestsActive === 0)
      socket.destroy()
    })
})

describe('a client that asks much at once', () => {
  const small: Route = { method: 'GET', path: '/small', summary: 'Small', handle: async () => ({ text: 's'.repeat(60_000) }) }
  const slow: Route = {
    method: 'GET',
    path: '/slow',
    summary: 'Slow',
    async handle() {
      await wait(600)
      return { text: 'slow' }
    },
  }
  const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`

  it('and reads none of many small answers is cut off, others served on', async () => {
    await using server = await serve({ free, small }, { stall_timeout_ms: 200 })
    const socket = await open(server.url)
    socket.pause().write(get('/small').repeat(500))
    await until(async () => (await server.host.service(Http).metrics(ctx)).requestsActive > 100)
    expect((await call(`${server.url}/free`)).status).to.equal(200)
    await until(async () => (await server.host.service(Http).metrics(ctx)).requestsActive === 0)
    socket.destroy()
  })

  it('and reads all is answered, however long one of them takes', async () => {
    await using server = await serve({ small, slow }, { stall_timeout_ms: 200, keep_alive_ms: 200 })
    const socket = await open(server.url)
    socket.write(get('/small').repeat(100) + get('/slow'))
    expect(await received(socket)).to.match(/slow$/)
  })
})

describe('headers', () => {
  it('larger than server.header_limit are refused', async () => {
    await using server = await serve({ free }, { header_limit: 4096 })
    const ask = (size: number) =>
      raw(server.url, `GET /free HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-A: ${'a'.repeat(size)}\r\n\r\n`)
    const { status, body, head } = await ask(5000)
    expect([status, body.error_code]).to.deep.equal([413, 'PAYLOAD_TOO_LARGE'])
    expect(head).to.include('X-Content-Type-Options: nosniff')
    expect((await ask(1000)).status).to.equal(200)
  })
})

/** Looks again with every turn of the loop. */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await wait(5)
}
