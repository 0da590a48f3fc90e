import type { AuthProvider, OAuthClientProvider } from '@modelcontextprotocol/client'
import type { Clock, HttpOptions } from '../options.ts'
import type { Fetch } from '../transport/upstream-fetch.ts'
import { createClientCredentials, type Refused } from './client-credentials.ts'
import { createLoginProvider } from './login-provider.ts'

/** How requests to a server are authorised. */
export interface Auth {
  readonly provider: AuthProvider | OAuthClientProvider
  /** What a person has answered who was sent to log in; `undefined` where nobody was. */
  answer?(): Promise<URLSearchParams | undefined>
}

export async function createAuth(options: HttpOptions, fetch: Fetch, refused: Refused, clock: Clock): Promise<Auth | undefined> {
  const { oauth, url } = options
  if (oauth === undefined) return undefined
  if (oauth.tokenUrl === undefined) return createLoginProvider(oauth)
  return { provider: await createClientCredentials({ ...oauth, tokenUrl: oauth.tokenUrl }, url, fetch, refused, clock) }
}
