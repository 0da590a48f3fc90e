import { codeOf, type Log, svcError } from '@svc/core'
import * as openid from 'openid-client'
import type { OidcClientConfig } from './config.ts'

/** A login that the issuer has not answered yet. */
export interface BegunLogin {
  readonly state: string
  readonly nonce: string
  readonly verifier: string
}

/** Tokens of the issuer: those that can prove to this server who someone is, the best one first. */
export interface IssuerTokens {
  readonly proofs: readonly string[]
  readonly refresh: string | undefined
}

/** The client of the console at an issuer: authorization code flow with PKCE, state and nonce. */
export interface OidcClient {
  /** Returns the address to send the browser to. Throws UNAVAILABLE. */
  begin(): Promise<{ readonly url: string; readonly begun: BegunLogin }>
  /** Exchanges the answer of the issuer: `code`, `state`, `iss`. Throws AUTHENTICATION_FAILED, UNAVAILABLE. */
  exchange(answer: URLSearchParams, begun: BegunLogin): Promise<IssuerTokens>
  /** Throws AUTHENTICATION_FAILED if the issuer refuses, UNAVAILABLE. */
  refresh(token: string): Promise<IssuerTokens>
  /** Revokes a refresh token, where the issuer can. Never throws. */
  revoke(token: string): Promise<void>
  /** The address at which the issuer ends its own session. `undefined`: it has none. */
  endSession(): Promise<string | undefined>
}

interface OidcClientOptions {
  readonly issuer: string
  readonly config: OidcClientConfig
  readonly secret: string | undefined
  readonly log: Log
}

/** Seconds for one request to the issuer. The server gives a scheme 10 s for all of them. */
const LIMIT_SECONDS = 4
/** Age at which the discovery document is fetched again. */
const FRESH_MS = 3_600_000
/** Time between a failed fetch and the next. */
const PAUSE_MS = 5_000
const LONGEST_BYTES = 1_048_576

export function createOidcClient({ issuer, config, secret, log }: OidcClientOptions): OidcClient {
  const { redirect_uri: redirectUri, post_logout_redirect_uri: postLogout, scope, parameters } = config
  const discovered = createDiscovery(() => discover(issuer, config.client_id, secret), log)
  const tokensOf = (answer: openid.TokenEndpointResponse, before?: string): IssuerTokens => ({
    proofs: [answer.access_token, answer.id_token].filter(token => token !== undefined),
    refresh: answer.refresh_token ?? before,
  })
  return {
    async begin() {
      const at = await discovered()
      const begun = { state: openid.randomState(), nonce: openid.randomNonce(), verifier: openid.randomPKCECodeVerifier() }
      const challenge = await openid.calculatePKCECodeChallenge(begun.verifier)
      const url = openid.buildAuthorizationUrl(at, {
        ...parameters,
        redirect_uri: redirectUri,
        scope,
        state: begun.state,
        nonce: begun.nonce,
        code_challenge: challenge,
        code_challenge_method: 'S256',
      })
      return { url: url.href, begun }
    },
    async exchange(answer, { state, nonce, verifier }) {
      const at = await discovered()
      const url = new URL(`${redirectUri}?${answer.toString()}`)
      const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier, idTokenExpected: true }
      try {
        return tokensOf(await openid.authorizationCodeGrant(at, url, checks))
      } catch (error) {
        throw explained(error, log)
      }
    },
    async refresh(token) {
      const at = await discovered()
      try {
        return tokensOf(await openid.refreshTokenGrant(at, token), token)
      } catch (error) {
        throw explained(error, log)
      }
    },
    async revoke(token) {
      try {
        const at = await discovered()
        if (at.serverMetadata().revocation_endpoint !== undefined) await openid.tokenRevocation(at, token)
      } catch (error) {
        log.debug({ reason: reasonOf(error) }, 'failed to revoke a refresh token at the issuer')
      }
    },
    async endSession() {
      const at = await discovered()
      if (at.serverMetadata().end_session_endpoint === undefined) return undefined
      // without `id_token_hint`: an address is kept in histories and logs, and a token in it can be one that this server accepts
      return openid.buildEndSessionUrl(at, postLogout === undefined ? {} : { post_logout_redirect_uri: postLogout }).href
    },
  }
}

/** Shares one fetch between all callers, and pauses after a failure: begun logins must not become requests to the issuer. */
function createDiscovery(discover: () => Promise<openid.Configuration>, log: Log): () => Promise<openid.Configuration> {
  let current: { readonly value: Promise<openid.Configuration>; readonly until: number } | undefined
  return () => {
    if (current && performance.now() < current.until) return current.value
    const value = discover().catch((error: unknown) => {
      log.warn({ reason: reasonOf(error) }, 'failed to fetch the discovery document of the issuer')
      current = { value, until: performance.now() + PAUSE_MS }
      throw issuerUnavailable(error)
    })
    current = { value, until: performance.now() + FRESH_MS }
    return value
  }
}

function discover(issuer: string, clientId: string, secret: string | undefined): Promise<openid.Configuration> {
  // the configuration of `server.auth.oidc` accepts plain HTTP only on this machine
  const local = issuer.startsWith('http://') ? [openid.allowInsecureRequests] : []
  return openid.discovery(new URL(issuer), clientId, undefined, authOf(secret), {
    timeout: LIMIT_SECONDS,
    execute: [openid.enableNonRepudiationChecks, ...local],
    [openid.customFetch]: limitedFetch,
  })
}

/** As issuers say, and where they say nothing, in the Authorization header, which is the default of the specification. */
function authOf(secret: string | undefined): openid.ClientAuth {
  if (secret === undefined) return openid.None()
  const [basic, post] = [openid.ClientSecretBasic(secret), openid.ClientSecretPost(secret)]
  return (server, client, body, headers) => {
    const supported = server.token_endpoint_auth_methods_supported
    const isPost = supported !== undefined && !supported.includes('client_secret_basic')
    return (isPost ? post : basic)(server, client, body, headers)
  }
}

/** Reads answers of a limited size, and follows no redirect. */
const limitedFetch: openid.CustomFetch = async (url, options) => {
  const response = await fetch(url, { ...options, redirect: 'manual' } as RequestInit)
  const parts: Uint8Array[] = []
  let size = 0
  for await (const part of response.body ?? []) {
    size += part.byteLength
    if (size > LONGEST_BYTES) throw new TypeError(`the issuer answers more than ${LONGEST_BYTES} bytes`)
    parts.push(part)
  }
  const { status, statusText, headers } = response
  // a status without content has no body, not even an empty one
  return new Response(size === 0 ? null : Buffer.concat(parts), { status: status || 502, statusText, headers })
}

/** A word about what happened, without tokens, codes and texts of the issuer. */
function reasonOf(error: unknown): string {
  if (error instanceof openid.ResponseBodyError || error instanceof openid.AuthorizationResponseError)
    return /^[a-z_]{1,60}$/.test(error.error) ? error.error : 'unknown_error'
  return codeOf(error) ?? (error instanceof Error ? error.name : 'unknown')
}

/** Codes of the library for an issuer that does not answer as it should. */
const OF_ISSUER = new Set(['OAUTH_TIMEOUT', 'OAUTH_ABORT', 'OAUTH_RESPONSE_IS_NOT_CONFORM', 'OAUTH_RESPONSE_IS_NOT_JSON'])

/** The issuer refused, or its answer is not the one to the login that was begun. */
function explained(error: unknown, log: Log): Error {
  const reason = reasonOf(error)
  log.debug({ reason }, 'a login at the issuer failed')
  if (error instanceof TypeError || OF_ISSUER.has(reason)) return issuerUnavailable(error)
  return svcError('AUTHENTICATION_FAILED', `the issuer did not confirm the login (${reason})`, {
    hint: 'Sign in again at /console',
  })
}

/** The cause has the answer of the issuer, which is not for logs. */
const issuerUnavailable = (error: unknown) =>
  svcError('UNAVAILABLE', `the issuer of the login does not answer (${reasonOf(error)})`, { details: { retryAfterMs: PAUSE_MS } })
