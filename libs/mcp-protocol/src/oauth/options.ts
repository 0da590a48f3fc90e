import type { Json } from '@svc/core/contracts'

/** The web's `fetch`, as far as the SDK uses it. */
export type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>

/** Stores the result of a login (tokens, a registered client): one value, secret. */
export interface TokenStorage {
  load(): Promise<Json | undefined>
  /** `undefined` deletes it. */
  save(value: Json | undefined): Promise<void>
}

/** A user who can log in now. */
export interface Person {
  /** Where the browser is sent back to. */
  readonly redirectUrl: string
  /** Shows the page; resolves with the query that came back to `redirectUrl`. */
  authorize(page: URL): Promise<URLSearchParams>
}

/**
 * OAuth. With `tokenUrl`: client credentials from there. Without: the discovery of the protocol, with the authorization code grant and PKCE; a user has to log in
 * once (`loginMcp`), then the client refreshes the tokens of `storage`.
 */
export interface OAuthOptions {
  readonly clientId?: string
  readonly clientSecret?: string
  readonly tokenUrl?: string
  /** The only authorization server for logins; can have a private address. Default: the one that the MCP server names. */
  readonly issuer?: string
  readonly scope?: string
  /** Metadata of this client for servers that need no registration (https). */
  readonly clientMetadataUrl?: string
  /** Default: in memory. */
  readonly storage?: TokenStorage
  /** Without a user, a server that needs a login becomes `needs_auth`. */
  readonly person?: Person
}

/** Stores a login in memory. */
export function createMemoryStorage(): TokenStorage {
  let saved: Json | undefined
  return {
    load: async () => saved,
    save: async value => {
      saved = value
    },
  }
}
