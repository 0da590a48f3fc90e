import { codeOf, systemContext, type CallContext } from '@svc/core'
import type { AuthScheme } from '@svc/core/contracts'
import { KEY_TIMES } from '../../src/keys.ts'
import { createOidc, type OidcOptions } from '../../src/oidc.ts'
import { AUDIENCE, type Issuer } from './issuer.ts'

export const ctx = systemContext(new AbortController().signal)
const quiet = { debug() {}, warn() {} } as unknown as OidcOptions['log']
export const NO_PAUSE = { ...KEY_TIMES, cooldown: 0, pause: 0 }

export const schemeOf = (issuer: Issuer, parts: Partial<OidcOptions> = {}) =>
  createOidc({
    issuer: issuer.url,
    audience: AUDIENCE,
    jwksUri: undefined,
    scopeClaim: 'scope',
    log: quiet,
    lasting: ctx,
    ...parts,
  })
export const ask = (scheme: AuthScheme, token: string, by: CallContext = ctx) =>
  scheme.authenticate(
    { headers: { authorization: `Bearer ${token}` }, address: '127.0.0.1', method: 'GET', path: '/', query: '' },
    by
  )
export const codeFor = (work: Promise<unknown>) => work.then(() => 'taken', codeOf)
