import { createLocalJWKSet, type JSONWebKeySet, type LocalJWKSet } from 'jose'
import { answerRefused } from './errors.ts'
import { fetchJson } from './fetch-json.ts'

export interface IssuerPlace {
  readonly issuer: string
  /** Absent: what the issuer's discovery document says. */
  readonly jwksUri: string | undefined
}

/** Fetches the keys that the issuer signs with now. */
export async function fetchKeys(place: IssuerPlace, signal: AbortSignal): Promise<LocalJWKSet> {
  const url = place.jwksUri === undefined ? await discover(place.issuer, signal) : new URL(place.jwksUri)
  const { keys } = await fetchJson(url, signal)
  return createLocalJWKSet({ keys: keys as JSONWebKeySet['keys'] }) // which checks the form
}

/** OpenID Connect Discovery 1.0, section 4: the document must say the very issuer it was asked for. */
async function discover(issuer: string, signal: AbortSignal): Promise<URL> {
  const url = new URL(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`)
  const { issuer: told, jwks_uri: uri } = await fetchJson(url, signal)
  if (told !== issuer) throw answerRefused(url, 'names another issuer')
  if (typeof uri !== 'string' || !URL.canParse(uri)) throw answerRefused(url, 'names no jwks_uri')
  const keys = new URL(uri)
  if (keys.protocol !== 'https:' && keys.origin !== url.origin) throw answerRefused(url, 'names a jwks_uri without TLS')
  return keys
}
