import { type ConfigTree, systemContext } from '@svc/core'
import { type AuthScheme, AuthSchemes, type CredentialHolder } from '@svc/core/contracts'
import { authKit, testHost } from '@svc/testing'
import { expect } from 'chai'
import { KEY_TIMES } from '../src/keys.ts'

import { AUDIENCE, type Issuer, makePair, startIssuer, unsigned } from './support/issuer.ts'
import { ask, codeFor, NO_PAUSE, schemeOf } from './support/scheme.ts'

const OWN = new URL('..', import.meta.url)
const now = () => Math.floor(Date.now() / 1000)

async function badTokens(issuer: Issuer) {
  const stranger = await makePair('RS256')
  const { iss, aud, sub, exp } = { iss: issuer.url, aud: AUDIENCE, sub: 'anna', exp: now() + 300 }
  return {
    expired: await issuer.token({ exp: now() - 60 }),
    'not valid yet': await issuer.token({ nbf: now() + 60 }),
    'without an end': await issuer.token({ exp: undefined }),
    'of another issuer': await issuer.token({ iss: 'https://issuer.example' }),
    'for another service': await issuer.token({ aud: 'another' }),
    'without an audience': await issuer.token({ aud: undefined }),
    'without a subject': await issuer.token({ sub: undefined }),
    'about an endless somebody': await issuer.token({ sub: 'x'.repeat(300) }),
    'with alg none': unsigned({ iss, aud, sub, exp, scope: 'admin' }),
    'signed with a word': await issuer.token({}, { alg: 'HS256', key: new TextEncoder().encode('x'.repeat(64)) }),
    "signed with the issuer's public key as a secret": await issuer.token(
      {},
      { alg: 'HS256', key: new TextEncoder().encode(JSON.stringify(issuer.current.jwk)) }
    ),
    "signed by a stranger under the issuer's key id": await issuer.token({}, { key: stranger.privateKey }),
    'of an unknown key': await issuer.token({}, { kid: 'unknown' }),
    'of wrong form': 'ey.ey.ey',
    'without a payload': 'eyJhbGciOiJSUzI1NiJ9..',
  }
}

const bearing = (tokens: Record<string, string>) =>
  Object.fromEntries(Object.entries(tokens).map(([what, token]) => [what, `Bearer ${token}`]))

async function subject(issuer: Issuer, scheme: AuthScheme, close: () => unknown = () => {}) {
  const good = { header: 'authorization', id: `${issuer.url}#anna`, scopes: ['chat', 'read'] }
  return { scheme, good: { ...good, value: `Bearer ${await issuer.token()}` }, bad: bearing(await badTokens(issuer)), close }
}

const configOf = (issuer: Issuer, more: ConfigTree = {}): ConfigTree => ({
  server: { auth: { oidc: { issuer: issuer.url, audience: AUDIENCE, ...more } } },
})

describe('auth-oidc', () => {
  let issuer: Issuer
  beforeEach(async () => {
    issuer = await startIssuer()
  })
  afterEach(() => issuer[Symbol.asyncDispose]())

  describe('in process, by the kit', () => {
    for (const testCase of authKit(() => subject(issuer, schemeOf(issuer)))) it(testCase.title, testCase.run)
  })

  for (const header of ['x-api-key', 'x-goog-api-key'])
    describe(`in the header ${header}, by the kit`, () => {
      const open = async () => {
        const { good, ...others } = await subject(issuer, schemeOf(issuer))
        return { ...others, good: { ...good, header, value: await issuer.token() }, bad: await badTokens(issuer) }
      }
      for (const testCase of authKit(open)) it(testCase.title, testCase.run)
    })

  describe('through the strict host, by the kit', () => {
    const open = async () => {
      const host = await testHost([OWN], { config: configOf(issuer) })
      return subject(issuer, host.slot(AuthSchemes).get('oidc')!, () => host.close())
    }
    for (const testCase of authKit(open)) it(testCase.title, testCase.run)
  })

  describe('the keys of the issuer', () => {
    it('are found by discovery and fetched once, however many ask', async () => {
      const scheme = schemeOf(issuer)
      const tokens = await Promise.all(Array.from({ length: 50 }, () => issuer.token()))
      for (const who of await Promise.all(tokens.map(token => ask(scheme, token))))
        expect(who).to.include({ id: `${issuer.url}#anna` })
      expect(issuer.asked).to.deep.equal(['/.well-known/openid-configuration', '/keys'])
    })

    it('are fetched where jwks_uri says, without discovery', async () => {
      await ask(schemeOf(issuer, { jwksUri: `${issuer.url}/keys` }), await issuer.token())
      expect(issuer.asked).to.deep.equal(['/keys'])
    })

    it('may rotate: a new one is taken with its first token, the old one no more', async () => {
      const scheme = schemeOf(issuer, { times: { ...KEY_TIMES, cooldown: 20 } })
      const old = await issuer.token()
      expect(await ask(scheme, old)).to.include({ id: `${issuer.url}#anna` })
      for (const alg of ['ES256', 'EdDSA', 'PS256']) {
        await issuer.rotate(alg)
        expect(await ask(scheme, await issuer.token())).to.include({ id: `${issuer.url}#anna` })
        expect(await codeFor(ask(scheme, old))).to.equal('AUTHENTICATION_FAILED')
      }
    })

    it('may rotate just after they were fetched: the first token of the new one is taken at once', async () => {
      const scheme = schemeOf(issuer, { times: { ...KEY_TIMES, cooldown: 600_000 } })
      await ask(scheme, await issuer.token())
      await issuer.rotate()
      expect(await ask(scheme, await issuer.token())).to.include({ id: `${issuer.url}#anna` })
    })

    it('may rotate just after a stranger had them fetched: the token of the new one waits for the next fetch and is taken', async () => {
      const scheme = schemeOf(issuer, { times: { ...KEY_TIMES, cooldown: 200 } })
      await ask(scheme, await issuer.token())
      expect(await codeFor(ask(scheme, await issuer.token({}, { kid: 'unknown' })))).to.equal('AUTHENTICATION_FAILED')
      await issuer.rotate()
      expect(await ask(scheme, await issuer.token())).to.include({ id: `${issuer.url}#anna` })
    })

    it('are not fetched again for each stranger who names an unknown one', async () => {
      const ending = new AbortController()
      const scheme = schemeOf(issuer, { lasting: systemContext(ending.signal) })
      await ask(scheme, await issuer.token())
      const asked = issuer.asked.length
      const forged = await Promise.all(Array.from({ length: 20 }, (_, at) => issuer.token({}, { kid: `unknown-${at}` })))
      for (const code of await Promise.all(forged.map(token => codeFor(ask(scheme, token)))))
        expect(code).to.equal('AUTHENTICATION_FAILED')
      expect(issuer.asked, 'discovery and keys, once for all').to.have.length(asked + 2)
      const leaving = new AbortController()
      const late = codeFor(ask(scheme, await issuer.token({}, { kid: 'unknown-yet' }), systemContext(leaving.signal)))
      expect(await ask(scheme, await issuer.token()), 'others do not wait').to.include({ id: `${issuer.url}#anna` })
      leaving.abort()
      expect(await late).to.not.equal('taken')
      expect(issuer.asked).to.have.length(asked + 2)
      ending.abort()
    })

    it('are not asked for by a token that says itself that it is not for us', async () => {
      const scheme = schemeOf(issuer)
      const claims = [{ iss: 'https://issuer.example' }, { aud: 'another' }, { exp: now() - 60 }]
      const others = [...(await Promise.all(claims.map(claim => issuer.token(claim)))), unsigned({ iss: issuer.url })]
      for (const token of others) expect(await codeFor(ask(scheme, token))).to.equal('AUTHENTICATION_FAILED')
      expect(issuer.asked).to.deep.equal([])
    })

    it('may be several without names: the one that fits counts', async () => {
      const pairs = [await makePair('RS256'), await makePair('RS256'), issuer.current]
      const keys = pairs.map(({ jwk: { kid: _kid, ...jwk } }) => jwk)
      issuer.answer = (req, res) => req.url === '/keys' && !!res.end(JSON.stringify({ keys }))
      const scheme = schemeOf(issuer)
      expect(await ask(scheme, await issuer.token({}, { kid: null }))).to.include({ id: `${issuer.url}#anna` })
      const stranger = (await makePair('RS256')).privateKey
      expect(await codeFor(ask(scheme, await issuer.token({}, { kid: null, key: stranger })))).to.equal('AUTHENTICATION_FAILED')
    })

    it('count for a while when the issuer goes', async () => {
      const scheme = schemeOf(issuer, { times: { ...NO_PAUSE, fresh: 0 } })
      const token = await issuer.token()
      await ask(scheme, token)
      issuer.answer = (_req, res) => !!res.writeHead(500).end()
      expect(await ask(scheme, token)).to.include({ id: `${issuer.url}#anna` })
    })
  })

  describe('the scopes', () => {
    const scopesOf = async (claim: string, claims: Record<string, unknown>) =>
      ((await ask(schemeOf(issuer, { scopeClaim: claim }), await issuer.token(claims))) as CredentialHolder | undefined)?.scopes

    it('are words between blanks or a list, under the claim that is configured', async () => {
      expect(await scopesOf('scope', { scope: 'read admin' })).to.deep.equal(['read', 'admin'])
      expect(await scopesOf('scp', { scp: ['chat', 'tools', 'chat'] })).to.deep.equal(['chat', 'tools'])
      expect(await scopesOf('realm_access.roles', { realm_access: { roles: ['workflows'] } })).to.deep.equal(['workflows'])
      expect(await scopesOf('https://svc.example/scopes', { 'https://svc.example/scopes': 'chat' })).to.deep.equal(['chat'])
    })

    it('are those of the API alone, and none where the claim is missing or of another form', async () => {
      expect(await scopesOf('scope', { scope: '* openid read:all system' })).to.deep.equal([])
      for (const scope of [undefined, 7, null, { chat: true }, [['chat'], 7]])
        expect(await scopesOf('scope', { scope })).to.deep.equal([])
      expect(await scopesOf('a.b', { a: 'chat' })).to.deep.equal([])
      expect(await scopesOf('__proto__.constructor', {})).to.deep.equal([])
    })
  })

  describe('its configuration', () => {
    const problemOf = (oidc: ConfigTree) =>
      testHost([OWN], { config: { server: { auth: { oidc } } } }).then(
        host => host.close().then(() => ''),
        (error: Error) => error.message
      )

    it('adds no scheme without an issuer', async () => {
      const host = await testHost([OWN])
      expect(host.slot(AuthSchemes).names()).to.deep.equal([])
      await host.close()
    })

    it('needs issuer and audience together, and TLS beyond this machine', async () => {
      expect(await problemOf({ issuer: 'https://issuer.example' })).to.contain('audience')
      expect(await problemOf({ audience: 'svc' })).to.contain('issuer')
      expect(await problemOf({ issuer: 'http://issuer.example', audience: 'svc' })).to.contain('https://')
      expect(await problemOf({ issuer: 'http://localhost.example', audience: 'svc' })).to.contain('https://')
      expect(await problemOf({ issuer: 'https://issuer.example', audience: 'svc', jwks_uri: 'file:///keys' })).to.contain(
        'https://'
      )
    })
  })
})
