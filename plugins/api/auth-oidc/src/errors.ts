import { svcError } from '@svc/core'

export const tokenRefused = () => svcError('AUTHENTICATION_FAILED', 'the access token is not valid')

/** The server cannot check the token now. The request itself can be valid. */
export const issuerUnavailable = (cause: unknown, retryAfterMs: number) =>
  svcError('UNAVAILABLE', 'failed to fetch the keys of the access token issuer', { cause, details: { retryAfterMs } })

export const answerRefused = (url: URL, what: string) =>
  svcError('ISSUER_ANSWER', `${url.origin}${url.pathname} ${what}`, {
    hint: 'Set server.auth.oidc.issuer to the exact issuer; if its keys are elsewhere, set server.auth.oidc.jwks_uri',
  })
