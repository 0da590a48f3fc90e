import { type ConfigTree, svcError } from '@svc/core'
import { type AuthScheme, AuthSchemes, Mounts, type Route } from '@svc/core/contracts'
import { item } from '@svc/testing'
import { expect } from 'chai'
import { call, post, serve } from './support/client.ts'
import { free, keys, who } from './support/who.ts'

const key = (value: string) => ({ 'x-api-key': value })
const tooling: Route = { ...who, path: '/tooling', scope: 'tools' }
const mount = {
  path: '/raw',
  scope: 'tools' as const,
  handle: async (_: unknown, response: { end(text: string): void }) => response.end('in'),
}

/** Knows one key, of places with the scope `tools` alone; of another one it says nothing. */
const guard = (more: Partial<AuthScheme> = {}): AuthScheme => ({
  headers: ['x-api-key', 'authorization'],
  challenge: 'Guard',
  guards: 'tools',
  authenticate: async ({ headers }) => (headers['x-api-key'] === 'tool-key' ? { id: 'guarded', scopes: ['tools'] } : undefined),
  ...more,
})
const common = keys('x-api-key', { all: { id: 'all', scopes: ['*'] }, reader: { id: 'reader', scopes: ['read'] } })

const serveWith = (auth: ConfigTree, schemes: Readonly<Record<string, AuthScheme>>) =>
  serve({ who, free, tooling }, { auth }, undefined, [
    ...Object.entries(schemes).map(([name, scheme]) => item(AuthSchemes, name, scheme)),
    item(Mounts, 'raw', mount),
  ])

describe('a scheme that guards the places of one scope', () => {
  it('is asked there before the others, who know the rest; elsewhere it is not asked', async () => {
    await using server = await serveWith({ enabled: true }, { common, guard: guard() })
    const ask = (path: string, headers = {}) => call(`${server.url}${path}`, { headers })
    expect((await ask('/tooling', key('tool-key'))).body).to.include({ id: 'guarded' })
    expect((await ask('/raw/x', key('tool-key'))).text).to.equal('in')
    expect((await ask('/tooling', key('all'))).body).to.include({ id: 'all' })
    expect((await ask('/tooling', key('reader'))).status).to.equal(403)
    expect((await ask('/who', key('tool-key'))).status).to.equal(401)
    const challenges = await Promise.all(
      ['/tooling', '/raw', '/who'].map(async path => (await ask(path)).headers.get('www-authenticate'))
    )
    expect(challenges).to.deep.equal(['Key header="x-api-key", Guard', 'Key header="x-api-key", Guard', 'Key header="x-api-key"'])
  })

  it('does not stand in for one that knows who may do the rest', async () => {
    const failed = await serveWith({ enabled: true }, { guard: guard() }).then(
      entry => entry.host.close(),
      (error: unknown) => error
    )
    expect(failed).to.have.nested.property('problems[0].code', 'AUTHENTICATION_WITHOUT_SCHEME')
  })

  it('needs no credential while authentication is off, except for schemes that are always on', async () => {
    await using off = await serveWith({ enabled: false }, { common, guard: guard() })
    expect((await call(`${off.url}/tooling`)).body).to.deep.include({ id: 'anonymous', scopes: ['*'] })
    await using on = await serveWith({ enabled: false }, { common, guard: guard({ always: true }) })
    for (const path of ['/tooling', '/raw']) expect((await call(`${on.url}${path}`)).status, path).to.equal(401)
    expect((await call(`${on.url}/tooling`, { headers: key('tool-key') })).body).to.include({ id: 'guarded' })
    expect((await call(`${on.url}/tooling`, { headers: key('all') })).status, 'the others are not asked').to.equal(401)
    for (const path of ['/who', '/free'])
      expect((await call(`${on.url}${path}`, { headers: key('wrong') })).body).to.deep.include({ id: 'anonymous', scopes: ['*'] })
    expect((await call(`${on.url}/nowhere`)).status).to.equal(404)
  })

  it('counts an unknown credential as a guess', async () => {
    await using server = await serveWith({ enabled: false }, { guard: guard({ always: true }) })
    const guess = async (headers: Readonly<Record<string, string>>) => (await call(`${server.url}/tooling`, { headers })).status
    expect(await guess(key('tool-key'))).to.equal(200)
    for (let n = 0; n < 5; n++) {
      expect(await guess(key(`wrong-${n}`))).to.equal(401)
      expect(await guess({ authorization: `Bearer wrong-${n}` })).to.equal(401)
    }
    expect(await guess(key('wrong'))).to.equal(429)
    expect([await guess({}), await guess(key('tool-key'))]).to.deep.equal([401, 200])
  })

  it('is prepared where it will be asked, and nowhere else', async () => {
    const unready = (more: Partial<AuthScheme>) =>
      guard({ prepare: async () => Promise.reject(svcError('NO_KEY', 'the key is empty')), ...more })
    const codeOf = async (auth: ConfigTree, scheme: AuthScheme) => {
      const failed = await serveWith(auth, { common, guard: scheme }).then(
        entry => entry.host.close(),
        (error: { problems: { code: string }[] }) => error.problems[0]!.code
      )
      return failed
    }
    expect(await codeOf({ enabled: false }, unready({}))).to.equal(undefined)
    expect(await codeOf({ enabled: false }, unready({ always: true }))).to.equal('NO_KEY')
    expect(await codeOf({ enabled: true }, unready({}))).to.equal('NO_KEY')
  })
})

describe('a route with a limit of its own for bodies', () => {
  const taking = (bodyLimit?: number): Route => ({
    method: 'POST',
    path: bodyLimit === undefined ? '/usual' : '/own',
    summary: 'Takes',
    body: { type: 'object' },
    ...(bodyLimit === undefined ? {} : { bodyLimit }),
    handle: async ({ body }) => ({ body: { length: JSON.stringify(body).length } }),
  })

  it('takes more than others, or less', async () => {
    await using server = await serve({ own: taking(20_000), usual: taking() }, { body_limit: 16_384 })
    const body = (length: number) => JSON.stringify({ a: 'x'.repeat(length - 8) })
    expect((await post(`${server.url}/own`, body(20_000))).body).to.deep.equal({ length: 20_000 })
    const { status, body: refusal } = await post(`${server.url}/own`, body(20_001))
    expect([status, refusal.error_code, refusal.details]).to.deep.equal([413, 'PAYLOAD_TOO_LARGE', { limit: 20_000 }])
    expect((await post(`${server.url}/usual`, body(16_385))).body.details).to.deep.equal({ limit: 16_384 })
  })
})
