import type { Json } from '@svc/core/contracts'

/** Keeps what logging in has brought (tokens, a registered client): one value, secret. */
export interface TokenStorage {
  load(): Promise<Json | undefined>
  /** `undefined` forgets it. */
  save(value: Json | undefined): Promise<void>
}

/** Somebody who can log in, now. */
export interface Person {
  /** Where the browser is sent back to. */
  readonly redirectUrl: string
  /** Shows the page; answers what came back to `redirectUrl`. */
  authorize(page: URL): Promise<URLSearchParams>
}

/**
 * OAuth. With `tokenUrl`: client credentials, asked for there. Without: the protocol's own discovery, with the authorization code grant and PKCE; somebody has to log in
 * once (`loginMcp`), then tokens are refreshed from `storage`.
 */
export interface OAuthOptions {
  readonly clientId?: string
  readonly clientSecret?: string
  readonly tokenUrl?: string
  /** The only authorization server that somebody may be sent to: reached though it is not public. Default: the one that the tool server names. */
  readonly issuer?: string
  readonly scope?: string
  /** Where a server that needs no registration finds what this client is (https). */
  readonly clientMetadataUrl?: string
  /** Default: in memory. */
  readonly storage?: TokenStorage
  /** Where nobody is there, a server that wants a login is `needs_auth`. */
  readonly person?: Person
}
