import { svcError } from '@svc/core'

export const tokenRefused = () => svcError('AUTHENTICATION_FAILED', 'the access token is not valid')

/** The token cannot be checked now. The request itself is not at fault. */
export const issuerUnavailable = (cause: unknown, retryAfterMs: number) =>
  svcError('UNAVAILABLE', 'the issuer of access tokens cannot be asked for its keys', { cause, details: { retryAfterMs } })

export const answerRefused = (url: URL, what: string) =>
  svcError('ISSUER_ANSWER', `${url.origin}${url.pathname} ${what}`, {
    hint: 'server.auth.oidc.issuer must be the issuer to the letter; server.auth.oidc.jwks_uri says where its keys are',
  })
