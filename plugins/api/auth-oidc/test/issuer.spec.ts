import { systemContext } from '@svc/core'
import { expect } from 'chai'
import { type Issuer, startIssuer } from './support/issuer.ts'
import { ask, codeFor, NO_PAUSE, schemeOf, ctx } from './support/scheme.ts'

describe('auth-oidc', () => {
  let issuer: Issuer
  beforeEach(async () => {
    issuer = await startIssuer()
  })
  afterEach(() => issuer[Symbol.asyncDispose]())

  describe('an issuer that does not answer as it should', () => {
    const KEYS_TOO_LONG = JSON.stringify({ keys: [{ kty: 'RSA', n: 'x'.repeat(2_000_000) }] })
    const answers: Record<string, NonNullable<Issuer['answer']>> = {
      fails: (_req, res) => !!res.writeHead(500).end('no'),
      'hangs up': (_req, res) => !!res.destroy(),
      'answers no JSON': (_req, res) => !!res.end('<html>'),
      'answers a list': (_req, res) => !!res.end('[]'),
      'names another issuer': (_req, res) =>
        !!res.end(JSON.stringify({ issuer: 'https://issuer.example', jwks_uri: 'https://issuer.example' })),
      'names no keys': (req, res) => !!res.end(JSON.stringify({ issuer: `http://${req.headers.host}` })),
      'names keys without TLS elsewhere': (req, res) =>
        !!res.end(JSON.stringify({ issuer: `http://${req.headers.host}`, jwks_uri: 'http://192.0.2.1/keys' })),
      'sends on to elsewhere': (req, res) => req.url === '/keys' && !!res.writeHead(302, { location: '/other' }).end(),
      'has keys of wrong form': (req, res) => req.url === '/keys' && !!res.end('{"keys":"none"}'),
      'has endless keys': (req, res) => req.url === '/keys' && !!res.end(KEYS_TOO_LONG),
    }
    for (const [what, answer] of Object.entries(answers))
      it(`is 503 and no refusal when it ${what}, and works as soon as it is fixed`, async () => {
        const scheme = schemeOf(issuer, { times: NO_PAUSE })
        issuer.answer = answer
        expect(await codeFor(ask(scheme, await issuer.token()))).to.equal('UNAVAILABLE')
        issuer.answer = undefined
        expect(await ask(scheme, await issuer.token())).to.include({ id: `${issuer.url}#anna` })
      })

    it('is left alone for a moment after a failure', async () => {
      const scheme = schemeOf(issuer)
      issuer.answer = (_req, res) => !!res.writeHead(500).end()
      const token = await issuer.token()
      for (let at = 0; at < 10; at++) expect(await codeFor(ask(scheme, token))).to.equal('UNAVAILABLE')
      expect(issuer.asked).to.have.length(1)
    })

    it('does not hold up those who leave, and they do not end the fetch for others', async () => {
      const held = Promise.withResolvers<() => void>()
      issuer.answer = (_req, res) => {
        issuer.answer = undefined
        held.resolve(() => res.end(JSON.stringify({ issuer: issuer.url, jwks_uri: `${issuer.url}/keys` })))
        return true
      }
      const scheme = schemeOf(issuer)
      const leaving = new AbortController()
      const token = await issuer.token()
      const gone = ask(scheme, token, systemContext(leaving.signal)).then(
        () => 'taken',
        (error: Error) => error.name
      )
      const stays = ask(scheme, token)
      const answer = await held.promise
      leaving.abort()
      expect(await gone).to.equal('AbortError')
      answer()
      expect(await stays).to.include({ id: `${issuer.url}#anna` })
    })

    it('does not keep the server from starting', async () => {
      issuer.answer = (_req, res) => !!res.writeHead(500).end()
      await schemeOf(issuer).prepare!(ctx)
    })
  })
})
