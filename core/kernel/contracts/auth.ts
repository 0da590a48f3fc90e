import { type CallContext, defineService, defineSlot } from '@svc/core'
import type { Route } from './http.ts'

/** Describes a credential in OpenAPI. */
export type SecurityScheme =
  | { readonly type: 'apiKey'; readonly in: 'header'; readonly name: string; readonly description?: string }
  | { readonly type: 'http'; readonly scheme: string; readonly bearerFormat?: string; readonly description?: string }

/** An algorithm for the digest of a body. */
export type BodyDigestAlgorithm = 'sha256' | 'sha384' | 'sha512'

/** The digest of the body as sent. Without a body, that of zero bytes. */
export interface BodyDigest {
  readonly algorithm: BodyDigestAlgorithm
  /** In lower case. */
  readonly hex: string
}

/** A request with a credential of the scheme. */
export interface CredentialRequest {
  /** The declared headers that the request has: at least one. */
  readonly headers: Readonly<Record<string, string>>
  /** The address of the client. */
  readonly address: string
  readonly method: string
  /** The path as sent, with its percent-encoding: `/notes/caf%C3%A9`. */
  readonly path: string
  /** The query as sent, without `?`; `''` without a query. */
  readonly query: string
  /** In the second call for a request: the digest that the scheme asked for. */
  readonly bodyDigest?: BodyDigest
  /**
   * `Sec-Fetch-Site` as sent: browsers say with it which site caused the request. A scheme that reads cookies accepts
   * `same-origin` only.
   */
  readonly fetchSite?: string
  /** The server already accepted this request and checks its credential again. This is not a replay. */
  readonly isRecheck?: boolean
}

/** The caller that a credential belongs to. */
export interface CredentialHolder {
  readonly id: string
  readonly scopes: readonly string[]
  /** Unix time in milliseconds at which the credential expires, if known. */
  readonly expires?: number
}

/**
 * The scheme needs the digest of the body, for a signed request. The server reads the body, at most `server.body_limit` bytes, and
 * calls the scheme again with `bodyDigest`. Check everything else first: the server reads no body of a request that you reject.
 */
export interface BodyDigestDemand {
  readonly needs: BodyDigestAlgorithm
}

/** A credential scheme. */
export interface AuthScheme {
  /**
   * Request headers that the scheme reads, in lower case. It receives no others. Each is a credential, so no route receives it.
   * At most 8, and none that the server itself reads (`host`, `origin`, `content-type`, …). The server calls the scheme only for
   * requests with at least one of them.
   */
  readonly headers: readonly string[]
  /**
   * Names of the cookies that the scheme reads, for a scheme with the header `cookie`. It receives no other cookies, and a request
   * without them has no credential of this scheme. Absent: all cookies.
   */
  readonly cookies?: readonly string[]
  /** The challenge for `WWW-Authenticate`. */
  readonly challenge: string
  /** The description in `/openapi.json`. A scheme without one is left out. */
  readonly shown?: SecurityScheme
  /**
   * The scope whose routes the scheme guards. Absent: all routes. There it is tried before the others, which are skipped for
   * callers that it recognizes.
   */
  readonly guards?: NonNullable<Route['scope']>
  /** True: the routes that it guards require its credential even when authentication is off. */
  readonly always?: boolean
  /** The OpenID Connect issuer whose tokens the scheme accepts. People can sign in there, where a page has a client of that issuer. */
  readonly issuer?: string
  /** A warning about working but doubtful credentials, without the credential itself, and what to do. `svc doctor` shows it. */
  readonly doubt?: { readonly message: string; readonly hint: string }
  /**
   * Called once before the server listens, when the scheme is in use. An error (no key in the environment, unknown issuer)
   * fails the start.
   */
  prepare?(ctx: CallContext): Promise<void>
  /**
   * Returns the caller, or `undefined` when the request carries no credential of this kind, or asks for the digest of the body.
   * Throws AUTHENTICATION_FAILED for an invalid credential.
   */
  authenticate(request: CredentialRequest, ctx: CallContext): Promise<CredentialHolder | BodyDigestDemand | undefined>
  /**
   * For credentials that can be revoked: yields once when watching starts and then at each revocation, until the signal aborts.
   * The server then authenticates the readers of endless streams again. `authenticate` must already reject the revoked
   * credential.
   */
  changes?(ctx: CallContext): AsyncIterable<null>
}
/** Request headers that the server or every route needs. No scheme can declare them as credentials. */
export const SERVER_HEADERS = {
  names: [
    'accept',
    'connection',
    'content-encoding',
    'content-length',
    'content-type',
    'forwarded',
    'host',
    'idempotency-key',
    'last-event-id',
    'origin',
    'prefer',
    'traceparent',
    'tracestate',
    'transfer-encoding',
    'upgrade',
    'x-forwarded-for',
    'x-forwarded-proto',
    'x-request-id',
  ],
} as const

/**
 * Request headers in which clients send a key or a token: `Authorization: Bearer <value>`, and the other two with the value alone.
 * The value decides what it is, not the header. `credentialIn` of `@svc/plugin-kit` reads it. The server refuses a request with
 * different values.
 */
export const CREDENTIAL_HEADERS = {
  names: ['authorization', 'x-api-key', 'x-goog-api-key'],
} as const

/**
 * Schemes by a name that the plugin chooses. A scheme that reads a header of other credentials needs the permission
 * `credential_headers` for it.
 */
export const AuthSchemes = defineSlot<AuthScheme>('auth_schemes', {
  api: 1,
  methods: { prepare: 'call', authenticate: 'call', changes: 'stream' },
  permission: {
    name: 'credential_headers',
    listing: 'headers',
    values: ['authorization', 'cookie', 'proxy-authorization', 'x-api-key', 'x-goog-api-key'],
  },
})

/** The scopes of the API. `admin` changes the server and reads data of other principals. */
export const API_SCOPES = { names: ['chat', 'read', 'workflows', 'tools', 'admin'] } as const

/** An access token to create. */
export interface TokenRequest {
  /** The name of its holder: 1 to 64 of `A-Z a-z 0-9 . _ @ -`, not beginning with `tok_`. Default: the id of the token. */
  readonly name?: string
  /** At most those of the caller. Default: all of the caller except `admin`. */
  readonly scopes?: readonly string[]
  /** Milliseconds from now, 1000 to 3650 days. */
  readonly ttlMs: number
}

/** A token without its text, which the store does not have. Times are ISO 8601. */
export interface TokenInfo {
  /** `tok_` and the beginning of its digest. */
  readonly id: string
  readonly name: string
  readonly scopes: readonly string[]
  readonly created: string
  readonly expires: string
  /** Time of the last use, accurate to about a minute. */
  readonly used?: string
}

/**
 * The access tokens of svc. Changes need the scope `admin`, and are published as `token_created` and `token_revoked`. Errors:
 * TOKEN_UNKNOWN, INVALID_VALUE (`details: {field, reason}`), FORBIDDEN (a scope that the caller lacks).
 */
export interface Tokens {
  /** By name, then by age. A caller sees the tokens of its own name, with the scope `admin` all. */
  list(ctx: CallContext): Promise<readonly TokenInfo[]>
  /** Creates a token. Only this result contains its text. All servers that share the store accept it at once. */
  create(request: TokenRequest, ctx: CallContext): Promise<{ readonly token: string; readonly info: TokenInfo }>
  /** Revokes the tokens with this name or id. Resolves when no worker accepts them any more. */
  revoke(nameOrId: string, ctx: CallContext): Promise<readonly TokenInfo[]>
}

export const Tokens = defineService<Tokens>('tokens', {
  api: 1,
  methods: { list: 'call', create: 'call', revoke: 'call' },
})
