import { svcError } from '@svc/core'

/** An `Authorization` header with a token. Other words, such as `Basic`, are for proxies and other schemes. */
const BEARER = /^bearer\b\s*(.*)$/is

/**
 * Returns the different keys and tokens in the headers `Authorization: Bearer`, `X-API-Key` and `X-Goog-Api-Key` of a request. The
 * names of the headers are in lower case.
 */
export function credentialsIn(headers: Readonly<Record<string, string | undefined>>): readonly string[] {
  const { authorization, 'x-api-key': key, 'x-goog-api-key': googleKey } = headers
  const token = authorization === undefined ? undefined : BEARER.exec(authorization)?.[1]
  return [...new Set([token, key, googleKey].filter(value => value !== undefined))]
}

/**
 * Returns the key or token of a request, whichever of the three headers carries it; `undefined` without any of them. Throws
 * AUTHENTICATION_FAILED if the headers have different values.
 */
export function credentialIn(headers: Readonly<Record<string, string | undefined>>): string | undefined {
  const [value, ...others] = credentialsIn(headers)
  if (others.length > 0) throw svcError('AUTHENTICATION_FAILED', 'the request has two different credentials')
  return value
}
