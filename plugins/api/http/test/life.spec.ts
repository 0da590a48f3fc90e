import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { createServer, type Socket } from 'node:net'
import { expect } from 'chai'
import { definePlugin, Host } from '@svc/core'
import type { Route } from '@svc/core/contracts'
import { Http, Limits } from '@svc/core/contracts'
import { service, testHost } from '@svc/testing'
import { setTimeout as wait } from 'node:timers/promises'
import { open, serve, signalOf, ctx } from './support/client.ts'

const folder = new URL('..', import.meta.url)

/** A route that says when it was called, and answers once it is let. */
function heldRoute(text: string) {
  const [begun, release] = [signalOf(), signalOf()]
  const handle: Route['handle'] = async () => {
    begun.resolve()
    await release.promise
    return { text }
  }
  const slow: Route = { method: 'GET', path: '/slow', summary: 'Slow', handle }
  return { begun, release, slow }
}

describe('the life of the server', () => {
  it('does not listen before everything is ready', async () => {
    const early: unknown[] = []
    const slow = definePlugin({
      requires: { http: Http },
      setup(scope, { http }) {
        scope.tap(Host.hooks.ready, async (_, item) => void early.push(await http.address(item)))
      },
    })
    await using host = await testHost([folder, { name: 'slow', use: slow }], { config: { server: { port: 0 } } })
    expect(early, 'while others get ready').to.deep.equal([undefined])
    expect((await host.service(Http).address(ctx))?.port).to.be.above(0)
    await host.close()
    expect(await host.service(Http).address(ctx)).to.equal(undefined)
  })

  it('fails the start when its port is taken, and says what to do', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as { port: number }
    const failed = await testHost([folder], { config: { server: { port } } }).catch(
      (error: unknown) => error as { problems: { code: string; hint: string; plugin: string }[] }
    )
    other.close()
    expect(failed).to.have.property('problems')
    const [problem] = (failed as { problems: { code: string; hint: string; plugin: string }[] }).problems
    expect(problem).to.include({ code: 'PORT_TAKEN', plugin: '@svc/plugin-http' })
    expect(problem!.hint).to.include('--port')
  })

  it('warns who listens to everybody without authentication', async () => {
    const lines: string[] = []
    const log = { destination: { write: (line: string) => void lines.push(line) } }
    await using host = await testHost([folder], { config: { server: { port: 0, host: '0.0.0.0' } }, log })
    const warnings = lines.map(line => JSON.parse(line)).filter(line => line.level === 40)
    expect(warnings.map(({ msg }) => /server\.\w+\.enabled/.exec(msg)?.[0])).to.have.members([
      'server.auth.enabled',
      'server.rate_limit.enabled',
    ])
    expect((await host.service(Http).address(ctx))!.url).to.match(/^http:\/\/127\.0\.0\.1:\d+$/)
  })

  it('warns of absent rate limits only beyond loopback, and only if no plugin limits requests', async () => {
    const isWarned = async (server: object, isActive?: boolean) => {
      const lines: string[] = []
      const log = { destination: { write: (line: string) => void lines.push(line) } }
      const limits: Limits = { isActive: async () => isActive === true, take: () => Promise.reject(new Error('unused')) }
      const give = isActive === undefined ? [] : [service(Limits, limits)]
      await using _host = await testHost([folder], { config: { server: { port: 0, ...server } }, log, give })
      return lines.some(line => line.includes('server.rate_limit.enabled'))
    }
    expect(await isWarned({ host: '0.0.0.0' })).to.equal(true)
    expect(await isWarned({ host: '0.0.0.0' }, false)).to.equal(true)
    expect(await isWarned({ host: '0.0.0.0' }, true)).to.equal(false)
    expect(await isWarned({})).to.equal(false)
  })

  it('warns who names a certificate and leaves TLS off', async () => {
    const warnings = async (ssl: object) => {
      const lines: string[] = []
      const log = { destination: { write: (line: string) => void lines.push(line) } }
      await using _host = await testHost([folder], { config: { server: { port: 0, ssl } }, log })
      return lines.filter(line => line.includes('server.ssl.enabled'))
    }
    expect(await warnings({})).to.deep.equal([])
    for (const ssl of [{ cert: 'cert.pem' }, { key: 'key.pem' }]) expect(await warnings(ssl)).to.have.length(1)
  })

  it('lets requests end when it closes, tells their connections to close, and takes no new ones', async () => {
    const { begun, release, slow } = heldRoute('done')
    const served = await serve({ slow })
    const answer = fetch(`${served.url}/slow`)
    await begun.promise
    const closed = served.host.close()
    const refused = await untilRefused(served.url)
    expect(refused).to.equal(true)
    release.resolve()
    const response = await answer
    expect([response.status, await response.text(), response.headers.get('connection')]).to.deep.equal([200, 'done', 'close'])
    await closed
  })

  for (const [successor, expected] of [
    [true, /^HTTP\/1\.1 200 [^]*\r\nConnection: close\r\n[^]*quick$/],
    [false, /^HTTP\/1\.1 503 [^]*\r\nConnection: close\r\n[^]*"UNAVAILABLE"/],
  ] as const)
    it(`${successor ? 'answers' : 'refuses with 503'} what comes on open connections while it drains ${successor ? 'and another takes over' : 'for good'}`, async () => {
      const { begun, release, slow } = heldRoute('slow')
      const quick: Route = { method: 'GET', path: '/quick', summary: 'Quick', handle: async () => ({ text: 'quick' }) }
      const served = await serve({ slow, quick })
      const slowly = fetch(`${served.url}/slow`)
      await begun.promise
      const socket = await open(served.url)
      // the half of a second request comes with the first: a server that ends closes connections on which nothing has begun
      socket.setEncoding('utf8').write('GET /quick HTTP/1.1\r\nHost: localhost\r\n\r\nGET /quick HTTP/1.1\r\n')
      await received(socket, /^HTTP\/1\.1 200 [^]*quick$/)
      const closed = served.host.close({ successor })
      await untilRefused(served.url)
      socket.write('Host: localhost\r\n\r\n')
      await received(socket, expected)
      release.resolve()
      expect(await (await slowly).text()).to.equal('slow')
      await closed
    })

  it('closes idle connections when it closes', async () => {
    const served = await serve(
      { hi: { method: 'GET', path: '/hi', summary: 'Hi', handle: async () => ({ text: 'hi' }) } },
      { keep_alive_ms: 600_000 }
    )
    const socket = await open(served.url)
    socket.write('GET /hi HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await once(socket, 'data')
    await Promise.all([once(socket, 'close'), served.host.close()])
  })

  it('cuts off what does not end within server.shutdown_timeout, and aborts it', async () => {
    const begun = signalOf()
    const aborted = signalOf()
    const stuck: Route = {
      method: 'GET',
      path: '/stuck',
      summary: 'Stuck',
      async handle(_request, { signal }) {
        begun.resolve()
        await once(signal, 'abort')
        aborted.resolve()
        return { text: 'too late' }
      },
    }
    const served = await serve({ stuck }, { shutdown_timeout: 0.1 })
    const answer = fetch(`${served.url}/stuck`).then(
      () => 'answered',
      () => 'cut'
    )
    await begun.promise
    await served.host.close()
    await aborted.promise
    expect(await answer).to.equal('cut')
  })

  for (const [what, more] of [
    ['a stream', {}],
    ['an endless stream', { endless: true }],
  ] as const)
    it(`logs ${what} that it cuts off as one warning, with the code of the reason and without a stack`, async () => {
      const lines: string[] = []
      const flow: Route = {
        method: 'GET',
        path: '/flow',
        summary: 'Flows',
        ...more,
        streams: 'text/event-stream',
        async *stream(_request, { signal }) {
          yield 'data: 1\n\n'
          await once(signal, 'abort')
          throw new Error('the plugin has its own error')
        },
      }
      const served = await serve({ flow }, { shutdown_timeout: 0.1 }, { destination: { write: line => void lines.push(line) } })
      const answer = await fetch(`${served.url}/flow`)
      await answer.body!.getReader().read()
      await served.host.close()
      const said = lines.map(line => JSON.parse(line) as { level: number }).filter(({ level }) => level >= 40)
      expect(said).to.have.length(2)
      expect(said[0]).to.include({ level: 40, msg: 'closing the connections of requests that did not end in time' })
      expect(said[1]).to.include({
        level: 40,
        error_code: 'UNAVAILABLE',
        reason: 'the server is stopping',
        route: '/flow',
        msg: 'ended a running request',
      })
      expect(said[1]).to.not.have.any.keys('err', 'stack')
    })

  it('aborts the signal of a request whose client leaves, and counts it as left', async () => {
    const begun = signalOf()
    const aborted = signalOf()
    const lines: string[] = []
    const stuck: Route = {
      method: 'GET',
      path: '/stuck',
      summary: 'Stuck',
      async handle(_request, { signal }) {
        begun.resolve()
        await once(signal, 'abort')
        aborted.resolve()
        return {}
      },
    }
    await using served = await serve({ stuck }, {}, { destination: { write: line => void lines.push(line) } })
    const socket = await open(served.url)
    socket.write('GET /stuck HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await begun.promise
    socket.destroy()
    await aborted.promise
    const line = lines.map(item => JSON.parse(item)).find(item => item.route === '/stuck')
    expect(line).to.include({ status: 499, gone: true })
    expect((await served.host.service(Http).metrics(ctx)).requestsActive).to.equal(0)
  })

  it('forgets pipelined requests with the connection they came on', async () => {
    const begun = signalOf()
    const stuck: Route = {
      method: 'GET',
      path: '/stuck',
      summary: 'Stuck',
      async handle(_request, { signal }) {
        begun.resolve()
        if (!signal.aborted) await once(signal, 'abort')
        return {}
      },
    }
    await using served = await serve({ stuck })
    const socket = await open(served.url)
    socket.write('GET /stuck HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(3))
    await begun.promise
    socket.destroy()
    const http = served.host.service(Http)
    while ((await http.metrics(ctx)).requestsActive > 0) await wait(5)
    expect(await http.metrics(ctx)).to.deep.equal({ requestsTotal: 3, requestsActive: 0 })
  })

  it('answers pipelined requests in their order', async () => {
    const echo: Route = {
      method: 'GET',
      path: '/e/:n',
      summary: 'Echo',
      handle: async ({ params }) => ({ text: `<${params.n}>` }),
    }
    await using served = await serve({ echo })
    const socket = await open(served.url)
    let text = ''
    socket.setEncoding('utf8').on('data', chunk => (text += chunk))
    const request = (n: number, more = '') => `GET /e/${n} HTTP/1.1\r\nHost: localhost\r\n${more}\r\n`
    socket.write(request(1) + request(2) + request(3, 'Connection: close\r\n'))
    await once(socket, 'close')
    expect(text.match(/<\d>/g)).to.deep.equal(['<1>', '<2>', '<3>'])
  })

  it('keeps nothing of pipelined requests that were answered', async () => {
    const quick: Route = { method: 'GET', path: '/quick', summary: 'Quick', handle: async () => ({ text: '<answered>' }) }
    await using served = await serve({ quick })
    let taken: Socket | undefined
    const requests = subscribed(message => (taken = message.socket))
    try {
      const socket = await open(served.url)
      socket.write('GET /quick HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(30))
      let text = ''
      for await (const chunk of socket.setEncoding('utf8')) if ((text += chunk).split('<answered>').length > 30) break
      // Node's own and one of ours, however many came
      expect(taken!.listenerCount('close')).to.be.below(8)
    } finally {
      requests()
    }
  })

  it('notes once that a connection ends with an answer, however much comes behind it that is no HTTP', async () => {
    const { begun, release, slow } = heldRoute('<answered>')
    await using served = await serve({ slow })
    let response: ServerResponse | undefined
    const requests = subscribed(message => (response = message.response))
    try {
      const socket = await open(served.url)
      socket.setNoDelay(true).write('GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n')
      await begun.promise
      const before = response!.listenerCount('close')
      for (let sent = 0; sent < 30; sent++) {
        socket.write('\0')
        await wait(1)
      }
      expect(response!.listenerCount('close')).to.equal(before + 1)
      release.resolve()
      await received(socket, /<answered>/)
      await once(socket, 'close')
    } finally {
      requests()
    }
  })

  it('answers a request that does not come to its end with 400, in time', async () => {
    await using served = await serve({}, { headers_timeout_ms: 100, request_timeout_ms: 200 })
    const socket = await open(served.url)
    let text = ''
    socket.setEncoding('utf8').on('data', chunk => (text += chunk))
    socket.write('GET / HTTP/1.1\r\nHost: ')
    await once(socket, 'close')
    expect(text)
      .to.match(/^HTTP\/1.1 400 Bad Request/)
      .and.include('"INVALID_VALUE"')
  })
})

/** Sees each request that a server of this process begins; returns what ends it. */
function subscribed(see: (message: { socket: Socket; response: ServerResponse }) => void): () => void {
  const listen = (message: unknown) => see(message as { socket: Socket; response: ServerResponse })
  subscribe('http.server.request.start', listen)
  return () => void unsubscribe('http.server.request.start', listen)
}

/** Reads until what came fits. */
async function received(socket: Socket, pattern: RegExp): Promise<void> {
  for (let text = ''; !pattern.test(text); ) {
    const [chunk] = await Promise.race([once(socket, 'data'), once(socket, 'close').then(() => [])])
    if (chunk === undefined) throw new Error(`the connection closed after: ${text}`)
    text += String(chunk)
  }
}

/** Tries to connect until the server no longer listens. */
async function untilRefused(url: string): Promise<boolean> {
  for (;;) {
    const socket = await open(url).catch(() => undefined)
    if (!socket) return true
    socket.destroy()
    await wait(5)
  }
}
