import { type RunningHost, systemContext } from '@svc/core'
import { AuthSchemes, Store } from '@svc/core/contracts'
import { authKit, type AuthSubject, testHost } from '@svc/testing'
import { inSandbox, packageOf, WHERE } from '../support/in-sandbox.ts'
import { createTokens } from '../../plugins/api/auth-bearer/src/tokens.ts'
import { AUDIENCE, type Issuer, startIssuer } from '../../plugins/api/auth-oidc/test/support/issuer.ts'

const KEY = 'the-key-of-the-house'
const DAY = 86_400_000
const ctx = systemContext(new AbortController().signal)

/** Runs the kit on one scheme of a host that stays up for all its cases; each has credentials of its own. */
function proved(
  what: string,
  where: string,
  start: () => Promise<RunningHost>,
  subjectOf: (host: RunningHost) => Promise<AuthSubject>
) {
  describe(`${what} ${where}, by the auth kit`, () => {
    let host: RunningHost
    before(async () => {
      host = await start()
    })
    after(() => host.close())
    for (const testCase of authKit(() => subjectOf(host))) it(testCase.title, testCase.run)
  })
}

proved(
  'auth-api-key',
  WHERE,
  async () => testHost(await inSandbox('auth-api-key', { SVC_API_KEY: KEY }), { strict: false }),
  async host => ({
    scheme: host.slot(AuthSchemes).get('api_key')!,
    good: { header: 'x-api-key', value: KEY, id: 'api-key', scopes: ['*'] },
    bad: { another: 'another-key' },
    passesOn: true,
  })
)

/** It also provides a service, which a person must allow an isolated plugin. */
const BEARER = { services: ['events', 'store', 'tokens'], credential_headers: ['authorization', 'x-api-key', 'x-goog-api-key'] }

proved(
  'auth-bearer',
  WHERE,
  async () => testHost([packageOf('store-memory'), ...(await inSandbox('auth-bearer', {}, BEARER))], { strict: false }),
  async host => {
    const tokens = createTokens(host.service(Store))
    await tokens.open(ctx)
    const { token } = await tokens.make({ name: 'anna', scopes: ['chat'], ttlMs: DAY }, ctx)
    const old = await tokens.make({ name: 'anna', scopes: ['chat'], ttlMs: -1 }, ctx)
    return {
      scheme: host.slot(AuthSchemes).get('bearer')!,
      good: { header: 'authorization', value: `Bearer ${token}`, id: 'token:anna', scopes: ['chat'] },
      bad: { expired: `Bearer ${old.token}` },
      revoke: () => tokens.revoke('anna', ctx),
    }
  }
)

describe('with a real issuer', () => {
  let issuer: Issuer
  before(async () => {
    issuer = await startIssuer()
  })
  after(() => issuer[Symbol.asyncDispose]())

  const start = async () => {
    const config = { server: { auth: { oidc: { issuer: issuer.url, audience: AUDIENCE } } } }
    return testHost(await inSandbox('auth-oidc', {}, { network: ['127.0.0.1'] }), { strict: false, config })
  }
  proved('auth-oidc', WHERE, start, async host => ({
    scheme: host.slot(AuthSchemes).get('oidc')!,
    good: {
      header: 'authorization',
      value: `Bearer ${await issuer.token()}`,
      id: `${issuer.url}#anna`,
      scopes: ['chat', 'read'],
    },
    bad: { expired: `Bearer ${await issuer.token({ exp: 1 })}`, elsewhere: `Bearer ${await issuer.token({ aud: 'another' })}` },
  }))
})
