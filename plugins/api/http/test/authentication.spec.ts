import { expect } from 'chai'
import { type ConfigTree, svcError } from '@svc/core'
import { type AuthScheme, AuthSchemes, Mounts, type Route } from '@svc/core/contracts'
import { item } from '@svc/testing'
import { call, raw, serve } from './support/client.ts'
import { free, keys, who } from './support/who.ts'

const KEYS = {
  all: { id: 'all', scopes: ['*'] },
  reader: { id: 'reader', scopes: ['read'] },
  talker: { id: 'talker', scopes: ['chat'] },
  admin: { id: 'admin', scopes: ['admin'] },
}
const TOKENS = { 'Bearer t-reader': { id: 'reader', scopes: ['read'] }, 'Bearer t-other': { id: 'other', scopes: ['*'] } }
const schemes: Readonly<Record<string, AuthScheme>> = {
  key: keys('x-api-key', KEYS),
  token: keys('authorization', TOKENS, 'Bearer realm="svc"'),
}
const rule: Route = { method: 'POST', path: '/rule', summary: 'Rules', scope: 'admin', handle: async () => ({}) }
const talk = (method: 'GET' | 'POST'): Route => ({
  method,
  path: '/talk',
  summary: 'Talks',
  scope: 'chat',
  handle: async () => ({}),
})
const mounts = {
  guarded: {
    path: '/guarded',
    scope: 'tools' as const,
    handle: async (_: unknown, response: { end(text: string): void }) => response.end('in'),
  },
  open: { path: '/open', handle: async (_: unknown, response: { end(text: string): void }) => response.end('in') },
}
const gifts = (given: Readonly<Record<string, AuthScheme>> = schemes) => [
  ...Object.entries(given).map(([name, scheme]) => item(AuthSchemes, name, scheme)),
  ...Object.entries(mounts).map(([name, mount]) => item(Mounts, name, mount)),
]
const serveWith = (server: ConfigTree = {}, given?: Readonly<Record<string, AuthScheme>>) =>
  serve(
    { who, free, rule, talk: talk('GET'), say: talk('POST') },
    { auth: { enabled: true }, ...server },
    undefined,
    gifts(given)
  )
const key = (value: string) => ({ 'x-api-key': value })
const token = (value: string) => ({ authorization: `Bearer ${value}` })

describe('authentication', () => {
  let server: Awaited<ReturnType<typeof serve>>
  before(async () => {
    server = await serveWith()
  })
  after(() => server.host.close())
  const ask = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    call(`${server.url}${path}`, { headers, method })

  it('asks for a credential and names every way to give one', async () => {
    const { status, body, headers } = await ask('/who')
    expect([status, body.error_code, body.details]).to.deep.equal([401, 'AUTHENTICATION_FAILED', {}])
    expect(headers.get('www-authenticate')).to.equal('Key header="x-api-key", Bearer realm="svc"')
  })

  it('lets good credentials in, by any scheme', async () => {
    const reader = { id: 'reader', scopes: ['read'], address: '127.0.0.1' }
    expect((await ask('/who', key('reader'))).body)
      .to.deep.include(reader)
      .and.have.property('scheme')
    expect((await ask('/who', token('t-other'))).body).to.deep.include({ id: 'other' })
  })

  it('leaves open what needs no scope, routes and mounts, without a name and whatever is sent', async () => {
    for (const headers of [{}, key('reader'), key('wrong')])
      expect((await ask('/free', headers)).body).to.deep.equal({ id: 'anonymous', scopes: [], address: '127.0.0.1' })
    expect((await ask('/open/x')).text).to.equal('in')
  })

  for (const [title, headers] of Object.entries({
    'a wrong one': key('wrong'),
    'a good one beside a wrong one': { ...key('all'), ...token('wrong') },
    'two good ones of two principals': { ...key('all'), ...token('t-other') },
    'an empty one': key(''),
    'a name of the prototype': key('constructor'),
  }))
    it(`refuses ${title}`, async () => {
      await using fresh = await serveWith({}, { key: schemes.key!, token: only('Bearer', schemes.token!) })
      const { status, body, headers: answerHeaders } = await call(`${fresh.url}/who`, { headers })
      expect([status, body.error_code, body.details]).to.deep.equal([401, 'AUTHENTICATION_FAILED', {}])
      expect(answerHeaders.get('www-authenticate')).to.include('Bearer')
    })

  it('refuses a credential of an unknown kind, and says that it is not known', async () => {
    await using fresh = await serveWith({}, { token: only('Bearer', schemes.token!) })
    const { status, body } = await call(`${fresh.url}/who`, { headers: { authorization: 'Basic YTpi' } })
    const none = await call(`${fresh.url}/who`)
    expect([status, body.error_code, body.details]).to.deep.equal([401, 'AUTHENTICATION_FAILED', {}])
    expect([body.error, none.body.error]).to.deep.equal(['the credential is not known', 'a credential is required'])
  })

  it('refuses an unknown credential beside a valid one, except a credential for a proxy', async () => {
    await using keys = await serveWith({}, { key: schemes.key! })
    await using tokens = await serveWith({}, { token: only('Bearer', schemes.token!) })
    const ask = async (url: string, headers: Record<string, string>) => (await call(`${url}/who`, { headers })).status
    expect(await ask(keys.url, { ...key('all'), ...token('t-other') })).to.equal(401)
    expect(await ask(tokens.url, { ...key('all'), ...token('t-other') })).to.equal(401)
    for (const authorization of ['Bearer', 'bearer  '])
      expect(await ask(keys.url, { ...key('all'), authorization }), authorization).to.equal(401)
    expect(await ask(keys.url, { ...key('all'), authorization: 'Basic YTpi' })).to.equal(200)
  })

  it('refuses two different credentials, also of one principal, and takes the same one in several headers', async () => {
    expect((await ask('/who', { ...key('reader'), ...token('t-reader') })).status).to.equal(401)
    expect((await ask('/who', { ...key('reader'), 'x-goog-api-key': 'reader' })).body).to.deep.include({ id: 'reader' })
  })

  for (const twice of [
    'X-API-Key: reader\r\nX-API-Key: reader',
    'Authorization: Bearer t-reader\r\nAuthorization: Bearer t-other',
  ])
    it(`refuses the same header twice: ${twice.split(':')[0]}`, async () => {
      const { status, body } = await raw(
        server.url,
        `GET /who HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${twice}\r\n\r\n`
      )
      expect([status, body.error_code]).to.deep.equal([401, 'AUTHENTICATION_FAILED'])
    })

  it('guards unknown paths, other methods and OPTIONS', async () => {
    for (const [method, path] of [
      ['GET', '/nowhere'],
      ['DELETE', '/who'],
      ['OPTIONS', '/who'],
      ['POST', '/free'],
    ] as const)
      expect((await ask(path, {}, method)).status, `${method} ${path}`).to.equal(401)
    expect((await ask('/nowhere', key('reader'))).status).to.equal(404)
    expect((await ask('/who', key('talker'), 'OPTIONS')).status).to.equal(204)
  })

  it('wants the scope of the route, or all, else 403 names it', async () => {
    const { status, body } = await ask('/rule', key('reader'), 'POST')
    expect([status, body.error_code, body.details]).to.deep.equal([
      403,
      'FORBIDDEN',
      { scope: 'admin', reason: 'the scope is missing' },
    ])
    expect((await ask('/rule', key('all'), 'POST')).status).to.equal(204)
    expect((await ask('/guarded/x', key('reader'))).status).to.equal(403)
    expect((await ask('/guarded/x')).status).to.equal(401)
    expect((await ask('/guarded/x', key('all'))).text).to.equal('in')
  })

  it('lets the scope admin read: each GET route, but neither a write nor a mount of another scope', async () => {
    expect((await ask('/who', key('admin'))).status).to.equal(200)
    expect((await ask('/talk', key('admin'))).status).to.equal(204)
    expect((await ask('/talk', key('admin'), 'HEAD')).status).to.equal(204)
    expect((await ask('/talk', key('reader'))).status).to.equal(403)
    const { status, body } = await ask('/talk', key('admin'), 'POST')
    expect([status, body.details]).to.deep.equal([403, { scope: 'chat', reason: 'the scope is missing' }])
    expect((await ask('/guarded/x', key('admin'))).status).to.equal(403)
  })

  it('tells of a scheme that cannot look it up just now', async () => {
    const down: AuthScheme = {
      headers: ['x-api-key'],
      challenge: 'Down',
      authenticate: async () => {
        throw svcError('STORE_UNAVAILABLE', 'no store')
      },
    }
    await using fresh = await serveWith({}, { key: schemes.key!, down })
    const { status, body } = await call(`${fresh.url}/who`, { headers: key('all') })
    expect([status, body.error_code]).to.deep.equal([503, 'UNAVAILABLE'])
  })

  it('waits no longer than it may for a scheme that never answers nor listens, and the log names that one', async () => {
    const lines: string[] = []
    const silent: AuthScheme = { headers: ['x-api-key'], challenge: 'Silent', authenticate: () => new Promise(() => {}) }
    const log = { destination: { write: (line: string) => void lines.push(line) } }
    const auth = { enabled: true, timeout_ms: 100 }
    await using fresh = await serve({ who, free }, { auth }, log, gifts({ key: schemes.key!, silent }))
    const { status, body, text } = await call(`${fresh.url}/who`, { headers: key('all') })
    expect([status, body.error_code]).to.deep.equal([503, 'UNAVAILABLE'])
    expect(text).not.to.match(/silent/i)
    expect(lines.find(line => line.includes('"error_code":"UNAVAILABLE"') && line.includes('"level":40'))).to.include(
      'test:auth_schemes/silent'
    )
    expect((await call(`${fresh.url}/free`)).status).to.equal(200)
  })
})

/** A scheme for headers that begin with this word; others are not its kind. */
const only = (word: string, scheme: AuthScheme): AuthScheme => ({
  ...scheme,
  authenticate: async (request, ctx) =>
    request.headers.authorization?.startsWith(word) ? scheme.authenticate(request, ctx) : undefined,
})

describe('authentication that is off', () => {
  it('lets everybody do everything, whatever credentials say', async () => {
    await using server = await serveWith({ auth: { enabled: false } })
    for (const headers of [{}, key('wrong'), key('reader')])
      expect((await call(`${server.url}/who`, { headers })).body).to.deep.equal({
        id: 'anonymous',
        scopes: ['*'],
        address: '127.0.0.1',
      })
    expect((await call(`${server.url}/rule`, { method: 'POST', headers: key('reader') })).status).to.equal(204)
  })
})

describe('authentication at the start', () => {
  const problem = async (given: Readonly<Record<string, AuthScheme>>, server?: ConfigTree) => {
    const failed = (await serveWith(server, given).catch((error: unknown) => error)) as {
      problems: { code: string; plugin: string; hint: string; message: string; where: string }[]
    }
    return failed.problems[0]!
  }

  it('fails it where no scheme is loaded, and says what to do', async () => {
    const { code, hint, plugin } = await problem({})
    expect([code, plugin]).to.deep.equal(['AUTHENTICATION_WITHOUT_SCHEME', '@svc/plugin-http'])
    expect(hint).to.include('server.auth.enabled').and.include('@svc/plugin-auth-api-key')
  })

  const unready: AuthScheme = {
    ...schemes.key!,
    async prepare() {
      throw svcError('NO_KEY', 'the key is empty', { hint: 'set it' })
    },
  }

  it('fails it where a scheme cannot work', async () => {
    const plugin = 'test:auth_schemes/key'
    const where = 'auth_schemes.key.prepare'
    expect(await problem({ key: unready })).to.include({ code: 'NO_KEY', hint: 'set it', plugin, where })
    const broken = { ...schemes.key!, prepare: async () => Promise.reject(new Error('no such issuer')) }
    const { code, message, plugin: named, where: place } = await problem({ key: broken })
    expect([code, named, place]).to.deep.equal(['SCHEME_FAILED', plugin, where])
    expect(message).to.include(plugin).and.include('no such issuer')
  })

  it('asks no scheme while it is off', async () => {
    await using server = await serveWith({ auth: { enabled: false } }, { key: unready })
    expect((await call(`${server.url}/who`)).status).to.equal(200)
  })
})
