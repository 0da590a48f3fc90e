import { defineSlot, type CallContext } from '@svc/core'
import type { Route } from './http.ts'

/** How OpenAPI describes a credential. */
export type SecurityScheme =
  | { readonly type: 'apiKey'; readonly in: 'header'; readonly name: string; readonly description?: string }
  | { readonly type: 'http'; readonly scheme: string; readonly bearerFormat?: string; readonly description?: string }

/** One credential scheme. `undefined`: the request carries no credential of this kind; throws AUTHENTICATION_FAILED for a bad one. */
export interface AuthScheme {
  /**
   * The request headers that it reads, in lower case: it gets these and no others. Each of them is a credential: no route sees it. At most 8; none that the
   * server itself reads (`host`, `origin`, `content-type`, …).
   */
  readonly headers: readonly string[]
  /** The challenge for `WWW-Authenticate`. */
  readonly challenge: string
  /** How `/openapi.json` describes it; it leaves out a scheme without. */
  readonly shown?: SecurityScheme
  /** The scope whose places it is for; absent: every place. It is asked there before the others, and about whom it knows they are not asked. */
  readonly guards?: NonNullable<Route['scope']>
  /** True: the places that it guards ask for its credential although authentication is off. */
  readonly always?: boolean
  /** What is doubtful about its credentials although they work, and what to do, without a word of them: `svc doctor` warns of it. */
  readonly doubt?: { readonly message: string; readonly hint: string }
  /** Called once before the server opens, where it will be asked: what it throws (no key in the environment, no such issuer) fails the start. */
  prepare?(ctx: CallContext): Promise<void>
  /** `expires`: Unix time in milliseconds after which the credential holds no more; absent where it has no end, or one that nobody knows. */
  authenticate(
    request: { readonly headers: Readonly<Record<string, string>>; readonly address: string },
    ctx: CallContext
  ): Promise<{ readonly id: string; readonly scopes: readonly string[]; readonly expires?: number } | undefined>
  /**
   * For a scheme whose credentials can be taken back: yields once when it has begun to watch and each time that one was, until the signal aborts. Whoever has a
   * stream without an end open is then asked for again: `authenticate` must refuse by then what was taken back.
   */
  changes?(ctx: CallContext): AsyncIterable<null>
}
/** Request headers that the server itself or every route needs: no credential scheme can take them away. */
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

/** Schemes by a name of the plugin's choice. One that reads a header in which other credentials travel needs the permission `credential_headers` for it. */
export const AuthSchemes = defineSlot<AuthScheme>('auth_schemes', {
  api: 1,
  methods: { prepare: 'call', authenticate: 'call', changes: 'stream' },
  permission: {
    name: 'credential_headers',
    listing: 'headers',
    values: ['authorization', 'cookie', 'proxy-authorization', 'x-api-key', 'x-goog-api-key'],
  },
})
