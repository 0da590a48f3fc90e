import { expect } from 'chai'
import type { ConfigTree } from '@svc/core'
import { AuthSchemes, Mounts } from '@svc/core/contracts'
import { item } from '@svc/testing'
import { raw, serve } from './support/client.ts'
import { free, keys, who } from './support/who.ts'

const gifts = [item(Mounts, 'raw', { path: '/raw', handle: async (_request, response) => void response.end('raw') })]
const APP = 'https://app.example'

/** Headers by hand: fetch sends no Origin of our choice. */
async function ask(url: string, headers: Record<string, string>, method = 'GET', path = '/free') {
  const lines = Object.entries({ Host: 'localhost', ...headers }).map(([name, value]) => `${name}: ${value}`)
  const { status, head, body } = await raw(
    url,
    `${method} ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\nConnection: close\r\n\r\n`
  )
  const headerLines = head
    .split('\r\n')
    .slice(1)
    .map(line => line.split(': '))
  return {
    status,
    body,
    headers: Object.fromEntries(headerLines.map(([name, ...value]) => [name!.toLowerCase(), value.join(': ')])),
  }
}
const preflight = (url: string, origin: string, path = '/who') =>
  ask(
    url,
    { Origin: origin, 'Access-Control-Request-Method': 'GET', 'Access-Control-Request-Headers': 'x-api-key' },
    'OPTIONS',
    path
  )
const serveWith = (cors: ConfigTree, server: ConfigTree = {}) => serve({ free, who }, { cors, ...server }, undefined, gifts)

describe('pages of other origins', () => {
  it('of this machine may use the server, if nothing else is said; others get 403', async () => {
    await using server = await serveWith({})
    for (const origin of ['http://localhost:3000', 'http://127.0.0.1', 'https://[::1]:99']) {
      const { status, headers } = await ask(server.url, { Origin: origin })
      expect([status, headers['access-control-allow-origin'], headers.vary]).to.deep.equal([200, origin, 'Origin'])
      expect(headers['access-control-expose-headers'])
        .to.include('X-Request-Id')
        .and.include('ETag')
        .and.include('X-RateLimit-Remaining')
        .and.include('Retry-After')
    }
    for (const origin of [APP, 'null', 'http://localhost.evil.example', 'http://evil.example:80', 'file://', '']) {
      const { status, headers, body } = await ask(server.url, { Origin: origin })
      expect([status, body.error_code, headers['access-control-allow-origin']]).to.deep.equal([403, 'FORBIDDEN', undefined])
      expect(body.details).to.deep.equal({ field: 'origin', value: origin })
    }
  })

  it('are those of server.cors.origins and no others, where these are named', async () => {
    await using server = await serveWith({ origins: [APP] })
    expect((await ask(server.url, { Origin: APP })).headers).to.include({ 'access-control-allow-origin': APP, vary: 'Origin' })
    expect((await ask(server.url, { Origin: 'http://localhost:3000' })).status).to.equal(403)
    expect((await ask(server.url, {})).headers)
      .to.include({ vary: 'Origin' })
      .and.not.have.property('access-control-allow-origin')
  })

  it('are all of them with *, without their credentials', async () => {
    await using server = await serveWith({ origins: ['*'] })
    const { status, headers } = await ask(server.url, { Origin: 'null' })
    expect([status, headers['access-control-allow-origin'], headers.vary]).to.deep.equal([200, '*', undefined])
    expect(headers).not.to.have.property('access-control-allow-credentials')
  })

  it('may send credentials where that is allowed', async () => {
    await using server = await serveWith({ origins: [APP], credentials: true })
    expect((await ask(server.url, { Origin: APP })).headers).to.include({ 'access-control-allow-credentials': 'true' })
  })

  it('get 403 everywhere: at mounts, unknown paths, methods and preflights', async () => {
    await using server = await serveWith({ origins: [] })
    for (const [method, path] of [
      ['GET', '/raw/x'],
      ['GET', '/nowhere'],
      ['DELETE', '/free'],
      ['OPTIONS', '/free'],
    ] as const)
      expect((await ask(server.url, { Origin: APP }, method, path)).status, `${method} ${path}`).to.equal(403)
    expect((await preflight(server.url, APP)).status).to.equal(403)
    expect((await ask(server.url, {}, 'GET', '/raw/x')).status).to.equal(200)
  })

  it('get 403 where CORS is off, those of this machine too', async () => {
    await using server = await serveWith({ enabled: false })
    expect((await ask(server.url, { Origin: 'http://localhost:3000' })).status).to.equal(403)
    expect((await ask(server.url, {})).headers).not.to.have.property('vary')
  })

  it('learn before any authentication what they may do', async () => {
    const scheme = item(AuthSchemes, 'key', keys('x-api-key', {}))
    const cors = { origins: [APP], methods: ['GET', 'PATCH'], headers: ['X-Mine'], max_age: 7 }
    await using server = await serve({ who }, { cors, auth: { enabled: true } }, undefined, [scheme])
    const { status, headers } = await preflight(server.url, APP)
    expect(status).to.equal(204)
    expect(headers).to.include({
      'access-control-allow-origin': APP,
      'access-control-allow-methods': 'GET, PATCH',
      'access-control-allow-headers': 'X-Mine',
      'access-control-max-age': '7',
    })
    expect((await preflight(server.url, APP, '/nowhere')).status).to.equal(204)
    const refused = await ask(server.url, { Origin: APP }, 'GET', '/who')
    expect([refused.status, refused.headers['access-control-allow-origin']]).to.deep.equal([401, APP])
  })

  it('may change what they have read: all methods, with the version in If-Match', async () => {
    await using server = await serveWith({ origins: [APP] })
    const { headers } = await preflight(server.url, APP)
    expect(headers['access-control-allow-methods']).to.equal('GET, POST, PUT, PATCH, DELETE')
    expect(headers['access-control-allow-headers']).to.match(/Idempotency-Key, If-Match, If-None-Match, Last-Event-ID/)
  })
})

describe('pages of the server itself', () => {
  const own = 'http://svc.example:8080'
  const asOwn = { Host: 'svc.example:8080', Origin: own }

  it('may use it once their Host has been checked', async () => {
    await using server = await serveWith({ origins: [] }, { allowed_hosts: ['svc.example'] })
    expect((await ask(server.url, asOwn)).status).to.equal(200)
    expect((await ask(server.url, { ...asOwn, Origin: 'https://svc.example:8080' })).status, 'another scheme').to.equal(403)
    expect((await ask(server.url, { ...asOwn, Origin: 'http://svc.example' })).status, 'another port').to.equal(403)
  })

  it('may not where any Host is answered: their name may have been bent', async () => {
    await using server = await serveWith({ origins: [] }, { host: '0.0.0.0' })
    expect((await ask(server.url, asOwn)).status).to.equal(403)
  })

  it('are known behind a trusted proxy that speaks TLS', async () => {
    const proxied = { Host: 'svc.example', Origin: 'https://svc.example', 'X-Forwarded-Proto': 'https' }
    await using server = await serveWith({ origins: [] }, { allowed_hosts: ['svc.example'], trusted_proxies: ['127.0.0.1'] })
    expect((await ask(server.url, proxied)).status).to.equal(200)
    await using other = await serveWith({ origins: [] }, { allowed_hosts: ['svc.example'] })
    expect((await ask(other.url, proxied)).status, 'a forged header').to.equal(403)
  })
})

describe('the configuration of CORS', () => {
  const problems = async (cors: ConfigTree) =>
    (
      (await serveWith(cors).catch((error: unknown) => error)) as {
        problems: { code: string; message: string; details: object }[]
      }
    ).problems

  it('must not lend every page the credentials of its reader', async () => {
    expect((await problems({ origins: ['*'], credentials: true }))[0]).to.include({ code: 'CORS_INVALID' })
  })

  for (const origin of ['https://app.example/', 'app.example', 'https://a@b'])
    it(`refuses ${origin}, which is no origin`, async () => {
      const [fault] = await problems({ origins: [origin] })
      expect(fault).to.include({ code: 'CONFIG_INVALID' })
      expect(fault!.message).to.include('without a path')
    })

  it('warns of * without authentication', async () => {
    const lines: string[] = []
    const log = { destination: { write: (line: string) => void lines.push(line) } }
    await using _one = await serve({}, { cors: { origins: ['*'] } }, log)
    expect(lines.map(line => JSON.parse(line)).find(line => line.level === 40).msg).to.include('server.cors.origins')
  })
})
