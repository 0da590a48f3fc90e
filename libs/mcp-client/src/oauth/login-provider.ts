import { randomBytes } from 'node:crypto'
import type {
  OAuthClientMetadata,
  OAuthClientProvider,
  OAuthDiscoveryState,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
} from '@modelcontextprotocol/client'
import type { Json } from '@svc/core/contracts'
import type { Auth } from './auth.ts'
import { checkedAnswer, checkedPage, checkIssuer } from './authority.ts'
import { createMemoryStorage } from './memory-storage.ts'
import type { OAuthOptions } from './options.ts'

/** What lasts of a login. */
interface Kept {
  readonly client?: StoredOAuthClientInformation & { readonly redirect_uris?: readonly string[] }
  readonly tokens?: StoredOAuthTokens
  /** What a server asked for that the tokens do not allow: the next login asks for it. */
  readonly wantedScope?: string
}

/** Where a browser would be sent to: never asked, as nobody is there. */
const NOWHERE = 'http://127.0.0.1/callback'

/** The protocol's own way to log in: discovery, authorization code, PKCE. Nothing is stored twice: the SDK says what to keep. */
export async function createLoginProvider(options: OAuthOptions): Promise<Auth> {
  const { person, storage = createMemoryStorage() } = options
  let kept = ((await storage.load()) ?? {}) as Kept
  const keep = async (more: Partial<Record<keyof Kept, unknown>>) => {
    kept = { ...kept, ...more } as Kept
    await storage.save(JSON.parse(JSON.stringify(kept)) as Json)
  }
  const redirectUrl = person?.redirectUrl ?? NOWHERE
  const attempt = createAttempt()
  // who is here to log in for more must not get by with the old tokens
  const anew = person !== undefined && kept.wantedScope !== undefined

  const provider: OAuthClientProvider = {
    redirectUrl,
    ...(options.clientMetadataUrl !== undefined && { clientMetadataUrl: options.clientMetadataUrl }),
    clientMetadata: metadataOf(options, redirectUrl),
    state: () => attempt.state,
    clientInformation: () => configured(options, kept) ?? registered(kept, person && redirectUrl),
    saveClientInformation: client => keep({ client }),
    tokens: () => (anew && attempt.isNew ? undefined : kept.tokens),
    saveTokens(tokens) {
      attempt.end()
      return keep({ tokens, wantedScope: undefined })
    },
    async redirectToAuthorization(page) {
      if (person === undefined) await keep({ wantedScope: page.searchParams.get('scope') ?? undefined })
      else attempt.begin(withScope(checkedPage(page), kept.wantedScope))
    },
    saveCodeVerifier: verifier => void (attempt.verifier = verifier),
    codeVerifier: () => attempt.verifier,
    discoveryState: () => (attempt.page === undefined ? undefined : attempt.discovery),
    saveDiscoveryState(found) {
      checkIssuer(found, options.issuer)
      attempt.discovery = found
    },
    invalidateCredentials: scope => keep(forgotten(scope)),
  }
  return {
    provider,
    answer: async () =>
      person === undefined || attempt.page === undefined
        ? undefined
        : checkedAnswer(await person.authorize(attempt.page), { ...attempt, page: attempt.page, pinned: options.issuer }),
  }
}

/** What belongs to one login and to no other. */
function createAttempt() {
  return {
    state: randomBytes(16).toString('base64url'),
    verifier: '',
    isNew: true,
    page: undefined as URL | undefined,
    discovery: undefined as OAuthDiscoveryState | undefined,
    begin(page: URL) {
      this.page = page
    },
    end() {
      this.isNew = false
      this.page = undefined
      this.discovery = undefined
    },
  }
}

function metadataOf({ scope }: OAuthOptions, redirectUrl: string): OAuthClientMetadata {
  return {
    client_name: 'svc',
    redirect_uris: [redirectUrl],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    ...(scope !== undefined && { scope }),
  }
}

/** The client that the operator names, bound to the login server that it was first used at. */
function configured({ clientId, clientSecret }: OAuthOptions, { client }: Kept): StoredOAuthClientInformation | undefined {
  if (clientId === undefined) return undefined
  const issuer = client?.client_id === clientId ? client.issuer : undefined
  return {
    client_id: clientId,
    ...(clientSecret !== undefined && { client_secret: clientSecret }),
    ...(issuer !== undefined && { issuer }),
  }
}

/** A client that was registered for another way back is of no use for logging in. */
function registered({ client }: Kept, back: string | undefined) {
  return back === undefined || client?.redirect_uris === undefined || client.redirect_uris.includes(back) ? client : undefined
}

function withScope(page: URL, wanted: string | undefined): URL {
  if (wanted === undefined) return page
  const scopes = new Set([...(page.searchParams.get('scope') ?? '').split(' '), ...wanted.split(' ')].filter(Boolean))
  const wider = new URL(page)
  wider.searchParams.set('scope', [...scopes].join(' '))
  return wider
}

function forgotten(scope: string): Partial<Record<keyof Kept, undefined>> {
  return {
    ...((scope === 'all' || scope === 'client') && { client: undefined }),
    ...((scope === 'all' || scope === 'tokens') && { tokens: undefined }),
  }
}
