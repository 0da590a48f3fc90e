import { once } from 'node:events'
import { connect } from 'node:net'
import { expect } from 'chai'
import type { Service } from '../support/service.ts'
import { routesOf, type Stranger, serveStrangers } from '../support/stranger.ts'
import { describeWith } from '../support/needs.ts'

const KEY = 'the-key-of-this-server-and-no-other'
const SECRETS = {
  'x-api-key': KEY,
  'x-goog-api-key': KEY,
  cookie: 'session=secret-of-the-session',
  'proxy-authorization': 'Basic c2VjcmV0LW9mLXRoZS1wcm94eQ==',
  'x-ticket': 'ticket-of-a-guest',
}

/** What its routes see of a request, it answers. */
const routesFor = (prefix: string) => `import { definePlugin } from '@svc/core'
import { Routes } from '@svc/core/contracts'
const seen = async (request, ctx) => ({ body: { request, use: { ...ctx, signal: undefined } } })
export default definePlugin({
  setup(scope) {
    scope.add(Routes, '${prefix}', { method: 'GET', path: '/${prefix}', summary: 'Spies', scope: 'read', handle: seen })
    scope.add(Routes, '${prefix}-open', { method: 'GET', path: '/${prefix}-open', summary: 'Spies', handle: seen })
    scope.add(Routes, '${prefix}-post', {
      method: 'POST', path: '/${prefix}-post', summary: 'Spies', scope: 'read', body: { type: 'object' }, handle: seen,
    })
  },
})`

const routesPlugin = (name: string, isolation: 'process' | 'in-process'): Stranger => ({
  name: `svc-plugin-${name}`,
  isolation,
  code: routesFor(name),
  svc: {
    kind: 'routes',
    ...routesOf({
      [name]: { method: 'GET', path: `/${name}`, scope: 'read' },
      [`${name}-open`]: { method: 'GET', path: `/${name}-open` },
      [`${name}-post`]: { method: 'POST', path: `/${name}-post`, scope: 'read' },
    }),
  },
})

/** Names the caller after the headers that it was given, and dies of one ticket. */
const TICKETS: Stranger = {
  name: 'svc-plugin-tickets',
  svc: { kind: 'auth', contributes: { auth_schemes: ['ticket'] } },
  code: `import { definePlugin } from '@svc/core'
import { AuthSchemes } from '@svc/core/contracts'
export default definePlugin({
  setup(scope) {
    scope.add(AuthSchemes, 'ticket', {
      headers: ['x-ticket'],
      challenge: 'Ticket',
      async authenticate({ headers }) {
        if (headers['x-ticket'] === 'die') process.exit(1)
        if (!headers['x-ticket']?.startsWith('ticket')) return undefined
        return { id: Object.keys(headers).join('+'), scopes: ['read'] }
      },
    })
  },
})`,
}

/** A mount gets the raw request. */
const MOUNT: Stranger = {
  name: 'svc-plugin-raw',
  isolation: 'in-process',
  svc: { kind: 'surface', contributes: { mounts: ['raw'] } },
  code: `import { definePlugin } from '@svc/core'
import { Mounts } from '@svc/core/contracts'
export default definePlugin({
  setup(scope) {
    scope.add(Mounts, 'raw', {
      path: '/raw', scope: 'read',
      handle: async ({ headers, headersDistinct, rawHeaders }, response) =>
        response.end(JSON.stringify({ headers, headersDistinct, rawHeaders })),
    })
  },
})`,
}

describeWith('bubblewrap', 'credentials in requests to routes of plugins', function () {
  this.timeout(60_000)
  let service: Service
  before(async () => {
    const strangers = [routesPlugin('spy', 'process'), routesPlugin('inside', 'in-process'), TICKETS, MOUNT]
    service = await serveStrangers(strangers, {
      beside: ['auth-api-key'],
      config: { server: { auth: { enabled: true } } },
      env: { SVC_API_KEY: KEY },
      args: ['--debug'],
    })
  })
  after(() => service[Symbol.asyncDispose]())

  const ask = async (path: string, headers: Readonly<Record<string, string>>, init: RequestInit = {}) => {
    const answer = await fetch(`${service.url}${path}`, { ...init, headers })
    return { status: answer.status, text: await answer.text() }
  }
  /** Sends these bytes and reads to the end of the connection. */
  const raw = async (bytes: string): Promise<string> => {
    const { hostname, port } = new URL(service.url)
    const socket = connect(Number(port), hostname).setEncoding('utf8')
    let text = ''
    socket.on('data', chunk => (text += chunk)).write(bytes)
    await once(socket, 'close')
    return text
  }
  const expectNone = (text: string) => {
    for (const [name, value] of Object.entries(SECRETS)) {
      expect(text, name).to.not.include(value)
      expect(text.toLowerCase(), name).to.not.include(`"${name}":`)
    }
  }

  for (const path of ['/spy', '/spy-open', '/inside', '/inside-open', '/raw'])
    it(`do not reach ${path}, while other headers do`, async () => {
      const { 'x-ticket': _, ...secrets } = SECRETS
      const { status, text } = await ask(path, { ...secrets, 'x-mine': 'kept' })
      expect(status, text).to.equal(200)
      expectNone(text)
      expect(text).to.include('"x-mine":"kept"')
    })

  it('do not reach a route in the header that only a plugin reads', async () => {
    for (const path of ['/spy', '/inside', '/spy-open', '/raw']) {
      const { status, text } = await ask(path, { 'x-ticket': SECRETS['x-ticket'] })
      expect(status, text).to.equal(200)
      expectNone(text)
    }
  })

  it('do not reach a route as a token, nor one of a body', async () => {
    const bearer = { authorization: `Bearer ${'t'.repeat(40)}` }
    for (const path of ['/spy-open', '/inside-open']) expect((await ask(path, bearer)).text).to.not.include('tttt')
    const { text, status } = await ask(
      '/spy-post',
      { 'x-api-key': KEY, cookie: SECRETS.cookie, 'content-type': 'application/json' },
      { method: 'POST', body: '{"said":"hello"}' }
    )
    expect(status, text).to.equal(200)
    expect(text).to.include('"said":"hello"')
    expectNone(text)
  })

  it('do not reach a route however they are written', async () => {
    const spellings = [
      `X-API-KEY: ${KEY}`,
      `x-Api-Key:\t${KEY}  `,
      `Cookie: a=${SECRETS.cookie}\r\nCOOKIE: b=2`,
      `Proxy-Authorization: ${SECRETS['proxy-authorization']}\r\nproxy-authorization: ${SECRETS['proxy-authorization']}`,
      `X-Goog-Api-Key: ${SECRETS['x-goog-api-key']}`,
      `X-TICKET: ${SECRETS['x-ticket']}`,
    ]
    for (const spelling of spellings)
      for (const version of ['1.0', '1.1']) {
        const text = await raw(`GET /spy-open HTTP/${version}\r\nHost: localhost\r\nConnection: close\r\n${spelling}\r\n\r\n`)
        expect(text, spelling).to.match(/^HTTP\/1\.1 200 /)
        expectNone(text)
      }
  })

  it('do not reach a route as a trailer of the body', async () => {
    const head = `POST /spy-post HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-API-Key: ${KEY}\r\nContent-Type: application/json`
    const text = await raw(
      `${head}\r\nTransfer-Encoding: chunked\r\nTrailer: x-api-key\r\n\r\n2\r\n{}\r\n0\r\nX-API-Key: ${KEY}\r\n\r\n`
    )
    expect(text).to.match(/^HTTP\/1\.1 200 /)
    expectNone(text)
  })

  it('reach a scheme only in the headers that it declares', async () => {
    const given = { 'x-ticket': SECRETS['x-ticket'], cookie: SECRETS.cookie, 'x-mine': 'kept', authorization: 'Basic YTpi' }
    const { text } = await ask('/spy', given)
    expect((JSON.parse(text) as { use: { principal: { id: string } } }).use.principal.id).to.equal('x-ticket')
  })

  it('do not reach a route while the scheme that reads them is restarted', async () => {
    expect((await ask('/spy', { 'x-ticket': 'die' })).status).to.be.oneOf([401, 500, 503])
    const { status, text } = await ask('/spy-open', { 'x-ticket': SECRETS['x-ticket'] })
    expect(status).to.equal(200)
    expectNone(text)
  })

  it('are not in the log', () => {
    for (const value of Object.values(SECRETS)) expect(service.output()).to.not.include(value)
  })
})
