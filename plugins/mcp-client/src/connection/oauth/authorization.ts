import { randomBytes } from 'node:crypto'
import type {
  AuthProvider,
  OAuthClientMetadata,
  OAuthClientProvider,
  OAuthDiscoveryState,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
} from '@modelcontextprotocol/client'
import { type SvcError, svcError } from '@svc/core'
import type { Json } from '@svc/core/contracts'
import { createMemoryStorage, type HttpOptions, type OAuthOptions } from '../options.ts'
import type { Clock } from '../timing.ts'
import type { Fetch } from '../transport/upstream-fetch.ts'
import { createClientCredentials, type Refused } from './client-credentials.ts'

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
async function createLoginProvider(options: OAuthOptions): Promise<Auth> {
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

/** A login that somebody was sent to. */
interface Attempt {
  readonly state: string
  readonly page: URL
  readonly discovery: OAuthDiscoveryState | undefined
  /** The authorization server that the operator names. */
  readonly pinned: string | undefined
}

const bare = (issuer: string) => issuer.replace(/\/$/, '')
const issuerOf = (found: OAuthDiscoveryState | undefined) =>
  found?.authorizationServerMetadata?.issuer ?? found?.authorizationServerUrl

/** Throws OAUTH_FAILED where the tool server names another authorization server than the operator does. */
function checkIssuer(found: OAuthDiscoveryState, pinned: string | undefined): void {
  const issuer = issuerOf(found) ?? ''
  if (pinned === undefined || bare(issuer) === bare(pinned)) return
  throw loginFailed(
    `the tool server names the authorization server ${shown(issuer)}, and the configuration ${pinned}`,
    'correct oauth.issuer of the server if it has moved; do not log in otherwise'
  )
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/

/** The page where somebody logs in. Throws OAUTH_FAILED for one that a browser would not load over TLS. */
function checkedPage(page: URL): URL {
  if (page.protocol === 'https:' || (page.protocol === 'http:' && LOOPBACK.test(page.hostname))) return page
  throw loginFailed(
    `the authorization server has its login page at ${shown(page.href)}, which is not https`,
    'do not log in there'
  )
}

/**
 * What came back from the page. An answer with another state belongs to another login. A page at another origin than its issuer may be that of another server, to
 * which a hostile one has sent the person (mix-up, RFC 9207): then the answer must name the issuer, or the operator must have. Throws OAUTH_FAILED.
 */
function checkedAnswer(answer: URLSearchParams, { state, page, discovery, pinned }: Attempt): URLSearchParams {
  if (answer.get('state') !== state) throw loginFailed('the answer to the login belongs to another one', 'log in again')
  const issuer = issuerOf(discovery)
  const isAtHome = issuer !== undefined && URL.parse(issuer)?.origin === page.origin
  if (isAtHome || pinned !== undefined || (answer.has('iss') && answer.get('iss') === issuer)) return answer
  throw loginFailed(
    `the login page at ${page.origin} is not at its authorization server ${shown(issuer ?? '')}, and the answer does not say whose it is: set oauth.issuer if both belong together`,
    'if both belong together, set oauth.issuer of the server'
  )
}

const SHOWN = 200
const shown = (text: string) => JSON.stringify(text.slice(0, SHOWN))

const loginFailed = (message: string, hint: string): SvcError => svcError('OAUTH_FAILED', message, { hint })

/** A refresh token is good for one use: requests that are refused at the same time share one refresh. */
export function sharedRefresh(fetch: Fetch): Fetch {
  const flights = new Map<string, Promise<Response>>()
  return async (url, init = {}) => {
    const form = String(init.body as string | URLSearchParams | undefined)
    if (init.method !== 'POST' || !form.includes('grant_type=refresh_token')) return fetch(url, init)
    const key = `${String(url)} ${form}`
    let flight = flights.get(key)
    if (flight === undefined) {
      flight = fetch(url, { ...init, signal: null }).then(whole)
      flights.set(key, flight)
      // each who waits hears of a failure
      flight.finally(() => flights.delete(key)).catch(() => {})
    }
    return (await flight).clone()
  }
}

const whole = async (response: Response) =>
  new Response(await response.arrayBuffer(), { status: response.status, headers: response.headers })
