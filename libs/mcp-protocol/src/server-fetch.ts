import { abortable, codeOf, svcError } from '@svc/core'
import { withoutCredentials } from '@svc/provider-http'
import { type AddressGuard, createGuardedFetch, type GuardedFetch, type NamedServer, webFetch } from '@svc/safe-fetch'
import { createClientCredentials } from './oauth/client-credentials.ts'
import type { Fetch, OAuthOptions } from './oauth/options.ts'

/** A remote server: its address, the credentials for it, and the addresses that may be reached. */
export interface ServerFetchOptions {
  readonly url: string
  /** Sent as `apiKeyHeader` says. */
  readonly apiKey?: string
  /** Default `authorization`: `Authorization: Bearer <key>`. */
  readonly apiKeyHeader?: 'authorization' | 'x-api-key'
  readonly oauth?: OAuthOptions
  /** False: no address but the server's own, not even for a login. Default true. */
  readonly networkAccess?: boolean
  /** Private names, addresses and networks that can be reached, besides the server's own host and `oauth.tokenUrl`'s. */
  readonly allow?: readonly string[]
  /** Additional trusted certificates in PEM form. */
  readonly ca?: string
}

/** The servers that the operator names for one connection. They live as long as the client: a name must not lead to another address later. */
export interface NamedServers {
  readonly itself: NamedServer
  /** Sources of logins and tokens. The operator named them, so their addresses can be private. */
  readonly logins: readonly AddressGuard[]
}

const ENDLESS_MS = 2 ** 31 - 1
const ENDLESS_BYTES = Number.MAX_SAFE_INTEGER
/** Limits of requests to other servers: metadata for logins, and tokens. */
const FOREIGN = { totalMs: 30_000, wireBytes: 1_048_576, bodyBytes: 1_048_576, redirects: 0 }
/** Limits of requests to the server: only the timeout of the call applies, because servers can be silent for long. Redirects are errors. */
const OWN = { totalMs: ENDLESS_MS, headersMs: 0, idleMs: 0, wireBytes: ENDLESS_BYTES, bodyBytes: ENDLESS_BYTES, redirects: 0 }
const CONNECTIONS = 72
const KEEP_ALIVE_MS = 30_000
/** Node looks up two names at a time in the whole process: a fast lookup can wait for slow ones. */
const DNS_MS = 20_000

/**
 * Sends requests to the MCP server with its key or token, whatever its address is. Requests of a login reach public addresses, the configured servers, and those in
 * `allow`; they reach the MCP server only at its own port and resolved addresses. A body, or an event of a stream, of more than `most` bytes fails, and `tooLong` is
 * called.
 */
export function createServerFetch(
  options: ServerFetchOptions,
  { itself, logins }: NamedServers,
  most: number,
  tooLong: () => () => void
) {
  const server = new URL(options.url)
  const more = { dnsMs: DNS_MS, ...(options.ca !== undefined && { ca: options.ca }) }
  const wide = { connections: CONNECTIONS, keepAliveMs: KEEP_ALIVE_MS, limits: OWN }
  const own = createGuardedFetch({ guard: itself.guard, ...wide, ...more })
  const foreign = createGuardedFetch({ allow: options.allow ?? [], servers: [itself, ...logins], limits: FOREIGN, ...more })
  const send = async (through: GuardedFetch, url: URL, headers: Headers, init: RequestInit) => {
    if (through === foreign && options.networkAccess === false) throw forbidden(url)
    const report = tooLong()
    const failed = (error: unknown) => void (through === own && codeOf(error) === 'BODY_TOO_LARGE' && report())
    return webFetch(through, { bodyBytes: most, failed })(url, { ...init, headers }).catch((error: unknown) => {
      throw through === foreign && codeOf(error) === 'ADDRESS_FORBIDDEN' ? loginForbidden(url, error) : error
    })
  }
  let authMs = 0
  const askTokenServer: Fetch = async (to, init = {}) => {
    const begun = performance.now()
    const headers = new Headers(init.headers)
    try {
      return await withoutCredentials(await send(foreign, new URL(to), headers, init), headers, init.body)
    } finally {
      authMs += performance.now() - begun
    }
  }
  const { url: resource, oauth = {} } = options
  const { tokenUrl } = oauth
  const request = { options: oauth, resource, fetch: askTokenServer }
  const tokens = tokenUrl === undefined ? undefined : createClientCredentials({ ...request, tokenUrl })
  return {
    async fetch(to: string | URL, init: RequestInit = {}): Promise<Response> {
      const url = new URL(to)
      const headers = new Headers(init.headers)
      const isServer = url.origin === server.origin && url.pathname === server.pathname
      if (!isServer) return askTokenServer(to, init)
      addKey(headers, options)
      for (let isRetry = false; ; isRetry = true) {
        const token = tokens && (await abortable(tokens.token(), init.signal ?? new AbortController().signal))
        if (token !== undefined) headers.set('authorization', `Bearer ${token}`)
        const begun = performance.now()
        const response = await send(own, url, headers, init)
        if (response.status === 401) authMs += performance.now() - begun
        if (response.status !== 401 || token === undefined || isRetry) return withoutCredentials(response, headers, undefined)
        await response.body?.cancel()
        tokens?.refused(token)
      }
    },
    /** The milliseconds of requests for tokens, and of those that the server refused without one. */
    authMs: () => authMs,
    async close(): Promise<void> {
      await Promise.all([own.close(), foreign.close()])
    },
  }
}

function addKey(headers: Headers, { apiKey, apiKeyHeader = 'authorization' }: ServerFetchOptions): void {
  if (apiKey !== undefined) headers.set(apiKeyHeader, apiKeyHeader === 'authorization' ? `Bearer ${apiKey}` : apiKey)
}

const forbidden = (url: URL) =>
  svcError('ADDRESS_FORBIDDEN', `${url.host} cannot be reached because network_access is false`, {
    hint: 'Set sandbox_config.network_access to true, or use a server that needs no other address',
  })

const loginForbidden = (url: URL, cause: unknown) =>
  svcError(
    'ADDRESS_FORBIDDEN',
    `${url.origin}, which the server names for logins, has an address that is not public; set oauth.issuer if it is yours`,
    {
      details: { host: url.host },
      hint: 'Set oauth.issuer to the authorization server if it is yours',
      cause,
    }
  )
