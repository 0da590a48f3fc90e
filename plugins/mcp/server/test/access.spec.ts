import { type AuthScheme, AuthSchemes } from '@svc/core/contracts'
import { item } from '@svc/testing'
import { expect } from 'chai'
import type { HostSetup } from './support/host.ts'
import { asked, bearer, came, KEY, keyed, PATHS, plain } from './support/keyed.ts'

const required = { auth: { required: true } }

describe('with mcp.server.auth.required and server.auth off', () => {
  let server: Awaited<ReturnType<typeof keyed>>
  before(async () => {
    server = await keyed({ mcp: required })
  })
  after(() => server.host.close())

  for (const path of PATHS)
    it(`asks for the key at ${path}, in either header`, async () => {
      const none = await asked(server, path)
      expect([none.status, none.body.error_code, none.headers.get('www-authenticate')]).to.deep.equal([
        401,
        'AUTHENTICATION_FAILED',
        'Bearer realm="svc"',
      ])
      for (const headers of [plain(KEY), bearer(KEY), { ...plain(KEY), ...bearer(KEY) }, { authorization: `bearer ${KEY}` }])
        expect(came(await asked(server, path, headers)), JSON.stringify(headers)).to.equal(true)
    })

  it('asks nowhere else', async () => {
    for (const path of ['/free', '/mine', '/health', '/nowhere'])
      expect((await server.ask.get(path)).status, path).to.not.equal(401)
    expect((await server.ask.get('/mine')).body).to.deep.include({ id: 'anonymous', scopes: ['*'] })
  })
})

describe('what is refused there', () => {
  it('are two that differ, each other one, and the same header twice', async () => {
    await using server = await keyed({ mcp: required })
    for (const headers of [
      { ...plain(KEY), ...bearer('other') },
      { ...plain('other'), ...bearer(KEY) },
      { ...plain(KEY), authorization: 'Basic dTpw' },
      plain(`${KEY}x`),
      plain(KEY.toUpperCase()),
      plain(''),
      bearer(''),
      { authorization: KEY },
    ])
      expect((await server.ask.get('/tools', headers)).status, JSON.stringify(headers)).to.equal(401)
  })

  it('is slowed when it is guessed, on every path together; the good one that was seen before still passes', async () => {
    await using server = await keyed({ mcp: required })
    expect(came(await asked(server, PATHS[0]!, bearer(KEY)))).to.equal(true)
    for (let n = 0; n < 10; n++) {
      const path = PATHS[n % PATHS.length]!
      const headers = n % 2 === 0 ? plain(`guess-${n}`) : bearer(`guess-${n}`)
      expect((await asked(server, path, headers)).status, `${n}`).to.equal(401)
    }
    for (const path of PATHS) {
      const slowed = await asked(server, path, bearer('guess'))
      expect([slowed.status, slowed.body.error_code]).to.deep.equal([429, 'RATE_LIMITED'])
      expect(slowed.headers.get('retry-after')).to.match(/^\d+$/)
      expect(came(await asked(server, path, bearer(KEY)))).to.equal(true)
    }
    expect((await server.ask.get('/tools')).status, 'nothing shown is no guess').to.equal(401)
  })
})

describe('with server.auth on', () => {
  const HOLDERS: Readonly<Record<string, readonly string[]>> = { tooler: ['tools'], reader: ['read'], all: ['*'] }
  const scheme: AuthScheme = {
    headers: ['x-api-key'],
    challenge: 'Name',
    async authenticate({ headers }) {
      const given = headers['x-api-key']
      if (given === undefined) return undefined
      const scopes = HOLDERS[given]
      if (!scopes) throw Object.assign(new Error('nobody'), { code: 'AUTHENTICATION_FAILED' })
      return { id: given, scopes }
    },
  }
  const open = (setup: HostSetup = {}, key?: string) =>
    keyed({ server: { auth: { enabled: true } }, give: [item(AuthSchemes, 'name', scheme)], ...setup }, key)
  let server: Awaited<ReturnType<typeof keyed>>
  before(async () => {
    server = await open()
  })
  after(() => server.host.close())

  for (const path of PATHS)
    it(`admits only the key and principals with the scope tools at ${path}`, async () => {
      for (const headers of [plain(KEY), bearer(KEY), plain('tooler'), plain('all')])
        expect(came(await asked(server, path, headers)), JSON.stringify(headers)).to.equal(true)
      const missing = await asked(server, path, plain('reader'))
      expect([missing.status, missing.body.details]).to.deep.equal([403, { scope: 'tools', reason: 'the scope is missing' }])
      const none = await asked(server, path)
      expect([none.status, none.headers.get('www-authenticate')]).to.deep.equal([401, 'Name, Bearer realm="svc"'])
      expect((await asked(server, path, { ...plain('tooler'), ...bearer(KEY) })).status, 'two that differ').to.equal(401)
    })

  it('has no use for the key elsewhere, and leaves /health open', async () => {
    expect((await server.ask.get('/mine', plain(KEY))).status).to.equal(401)
    expect((await server.ask.get('/mine', bearer(KEY))).status).to.equal(401)
    expect((await server.ask.get('/mine', plain('reader'))).status).to.equal(200)
    expect((await server.ask.get('/health')).status).to.equal(200)
  })

  it('needs no key in the environment where only principals are to come in', async () => {
    await using bare = await open({}, '')
    expect((await bare.ask.get('/tools', plain('tooler'))).status).to.equal(200)
    expect((await bare.ask.get('/tools', plain(KEY))).status).to.equal(401)
  })

  it('does not start with the key as the only credential that anybody knows', async () => {
    const failed = await keyed({ server: { auth: { enabled: true } } }).then(
      started => started.host.close(),
      (error: unknown) => error
    )
    expect(failed).to.have.nested.property('problems[0].code', 'AUTHENTICATION_WITHOUT_SCHEME')
  })
})
