import { randomBytes } from 'node:crypto'
import type {
  AuthorizationServerMetadata,
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

/** The stored part of a login. */
interface SavedLogin {
  readonly client?: StoredOAuthClientInformation & { readonly redirect_uris?: readonly string[] }
  readonly tokens?: StoredOAuthTokens
  /** A scope that the server asked for and the tokens do not have: the next login requests it. */
  readonly wantedScope?: string
}

/** The SDK requires a redirect address; without a user the SDK never uses it. */
const UNUSED_REDIRECT = 'http://127.0.0.1/callback'

/** The login of the protocol: discovery, authorization code, PKCE. The SDK decides what to store. */
async function createLoginProvider(options: OAuthOptions): Promise<Auth> {
  const { person, storage = createMemoryStorage() } = options
  let saved = ((await storage.load()) ?? {}) as SavedLogin
  const save = async (more: Partial<Record<keyof SavedLogin, unknown>>) => {
    saved = { ...saved, ...more } as SavedLogin
    await storage.save(JSON.parse(JSON.stringify(saved)) as Json)
  }
  const redirectUrl = person?.redirectUrl ?? UNUSED_REDIRECT
  const attempt = createAttempt()
  // a login for a further scope must not reuse the old tokens
  const anew = person !== undefined && saved.wantedScope !== undefined

  const provider: OAuthClientProvider = {
    redirectUrl,
    ...(options.clientMetadataUrl !== undefined && { clientMetadataUrl: options.clientMetadataUrl }),
    clientMetadata: metadataOf(options, redirectUrl),
    state: () => attempt.state,
    clientInformation: () => configured(options, saved) ?? registered(saved, person && redirectUrl),
    saveClientInformation: client => save({ client }),
    tokens: () => (anew && attempt.isNew ? undefined : saved.tokens),
    saveTokens(tokens) {
      attempt.end()
      return save({ tokens, wantedScope: undefined })
    },
    async redirectToAuthorization(page) {
      if (person === undefined) await save({ wantedScope: page.searchParams.get('scope') ?? undefined })
      else attempt.begin(withScope(checkedPage(page), saved.wantedScope))
    },
    saveCodeVerifier: verifier => void (attempt.verifier = verifier),
    codeVerifier: () => attempt.verifier,
    discoveryState: () => (attempt.page === undefined ? undefined : attempt.discovery),
    saveDiscoveryState(found) {
      checkIssuer(found, options.issuer)
      attempt.discovery = found
    },
    invalidateCredentials: scope => save(forgotten(scope)),
  }
  return {
    provider,
    answer: async () =>
      person === undefined || attempt.page === undefined
        ? undefined
        : checkedAnswer(await person.authorize(attempt.page), { ...attempt, page: attempt.page, pinned: options.issuer }),
  }
}

/** The values of one login attempt. */
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

/** The configured client, bound to the authorization server where it was first used. */
function configured({ clientId, clientSecret }: OAuthOptions, { client }: SavedLogin): StoredOAuthClientInformation | undefined {
  if (clientId === undefined) return undefined
  const issuer = client?.client_id === clientId ? client.issuer : undefined
  return {
    client_id: clientId,
    ...(clientSecret !== undefined && { client_secret: clientSecret }),
    ...(issuer !== undefined && { issuer }),
  }
}

/** The registered client; a login cannot use one with another redirect address. */
function registered({ client }: SavedLogin, redirect: string | undefined) {
  return redirect === undefined || client?.redirect_uris === undefined || client.redirect_uris.includes(redirect)
    ? client
    : undefined
}

function withScope(page: URL, wanted: string | undefined): URL {
  if (wanted === undefined) return page
  const scopes = new Set([...(page.searchParams.get('scope') ?? '').split(' '), ...wanted.split(' ')].filter(Boolean))
  const wider = new URL(page)
  wider.searchParams.set('scope', [...scopes].join(' '))
  return wider
}

function forgotten(scope: string): Partial<Record<keyof SavedLogin, undefined>> {
  return {
    ...((scope === 'all' || scope === 'client') && { client: undefined }),
    ...((scope === 'all' || scope === 'tokens') && { tokens: undefined }),
  }
}

/** The authorization of requests to a server. */
export interface Auth {
  readonly provider: AuthProvider | OAuthClientProvider
  /** The query that came back from the login page, `undefined` if no person was sent there. */
  answer?(): Promise<URLSearchParams | undefined>
}

export async function createAuth(
  options: HttpOptions,
  fetch: Fetch,
  refused: RefusedToken,
  clock: Clock
): Promise<Auth | undefined> {
  const { oauth, url } = options
  if (oauth === undefined) return undefined
  if (oauth.tokenUrl === undefined) return createLoginProvider(oauth)
  return { provider: await createClientCredentials({ ...oauth, tokenUrl: oauth.tokenUrl }, url, fetch, refused, clock) }
}

/** A login attempt after a user has opened its page. */
interface LoginAttempt {
  readonly state: string
  readonly page: URL
  readonly discovery: OAuthDiscoveryState | undefined
  /** `oauth.issuer` of the configuration. */
  readonly pinned: string | undefined
}

const bare = (issuer: string) => issuer.replace(/\/$/, '')
const issuerOf = (discovery: OAuthDiscoveryState | undefined) =>
  discovery?.authorizationServerMetadata?.issuer ?? discovery?.authorizationServerUrl

/** Throws OAUTH_FAILED if the MCP server names another authorization server than the configuration. */
function checkIssuer(found: OAuthDiscoveryState, pinned: string | undefined): void {
  const issuer = issuerOf(found) ?? ''
  if (pinned === undefined || bare(issuer) === bare(pinned)) return
  throw loginFailed(
    `the server names the authorization server ${shown(issuer)}, but oauth.issuer is ${pinned}`,
    'Correct oauth.issuer if the authorization server has moved. Otherwise do not log in'
  )
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/

/** The login page. Throws OAUTH_FAILED for a page without TLS. */
function checkedPage(page: URL): URL {
  if (page.protocol === 'https:' || (page.protocol === 'http:' && LOOPBACK.test(page.hostname))) return page
  throw loginFailed(`the login page ${shown(page.href)} of the authorization server does not use https`, 'Do not log in there')
}

/**
 * Checks the query that came back from the login page. Another state belongs to another login. A login page at another origin than its issuer can belong to another
 * server, to which a hostile one has sent the person (mix-up attack, RFC 9207): then the query or the configuration must name the issuer. Throws OAUTH_FAILED.
 */
function checkedAnswer(answer: URLSearchParams, { state, page, discovery, pinned }: LoginAttempt): URLSearchParams {
  if (answer.get('state') !== state) throw loginFailed('the answer belongs to another login', 'Log in again')
  const issuer = issuerOf(discovery)
  const isSameOrigin = issuer !== undefined && URL.parse(issuer)?.origin === page.origin
  if (isSameOrigin || pinned !== undefined || (answer.has('iss') && answer.get('iss') === issuer)) return answer
  throw loginFailed(
    `the login page at ${page.origin} does not belong to the authorization server ${shown(issuer ?? '')}, and the answer does not name its issuer; set oauth.issuer if both belong together`,
    'Set oauth.issuer of the server if both belong together'
  )
}

const SHOWN = 200
const shown = (text: string) => JSON.stringify(text.slice(0, SHOWN))

const loginFailed = (message: string, hint: string): SvcError => svcError('OAUTH_FAILED', message, { hint })

/** A refresh token can be used once: concurrent refused requests share one refresh. */
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
      // each waiting request gets the error
      flight.finally(() => flights.delete(key)).catch(() => {})
    }
    return (await flight).clone()
  }
}

const whole = async (response: Response) =>
  new Response(await response.arrayBuffer(), { status: response.status, headers: response.headers })

type ClientCredentialsOptions = OAuthOptions & { readonly tokenUrl: string }

interface Token {
  readonly text: string
  /** Unix milliseconds until which it is used. */
  readonly until: number
}

/** The `Authorization` header of the request that got this 401 response. */
export type RefusedToken = (response: Response) => string | undefined

/** A token is not used in its last minute: it must still be valid when it arrives. */
const EARLY_MS = 60_000
/** Lifetime in seconds of a token without `expires_in`. */
const UNSAID_S = 300

/**
 * Tokens by client credentials, with the SDK's ClientCredentialsProvider and fetchToken. The transport cannot use that provider directly: it sends the secret to the
 * token endpoint that the MCP server names (here: to the configured `tokenUrl`), keeps a token until it is refused (here: until shortly before it expires), sends one
 * request for each refused one (here: one for all), and does not retry with the secret in the body.
 */
async function createClientCredentials(
  options: ClientCredentialsOptions,
  resource: string,
  fetch: Fetch,
  refused: RefusedToken,
  clock: Clock
): Promise<AuthProvider> {
  const ask = await tokenRequest(options, resource, fetch)
  let token: Token | undefined
  let flight: Promise<Token> | undefined
  const fresh = () =>
    (flight ??= ask()
      .then(({ text, seconds }) => (token = { text, until: clock.now() + seconds * 1_000 - EARLY_MS }))
      .finally(() => {
        flight = undefined
      }))
  return {
    async token() {
      return token !== undefined && clock.now() < token.until ? token.text : (await fresh()).text
    },
    async onUnauthorized({ response }) {
      // a request with an older token says nothing about the current one
      if (token === undefined || refused(response) === `Bearer ${token.text}`) await fresh()
    },
  }
}

type Ask = () => Promise<{ readonly text: string; readonly seconds: number }>

async function tokenRequest(
  { clientId = '', clientSecret = '', scope, tokenUrl }: ClientCredentialsOptions,
  resource: string,
  fetch: Fetch
): Promise<Ask> {
  const { ClientCredentialsProvider, fetchToken, OAuthError } = await import('@modelcontextprotocol/client')
  const expectedIssuer = new URL(tokenUrl).origin
  const rest = { expectedIssuer, ...(scope !== undefined && { scope }) }
  // the SDK does not encode both for the header, RFC 6749 (2.3.1) requires it: a colon in an id must not end the id
  const inHeader = new ClientCredentialsProvider({
    clientId: formEncoded(clientId),
    clientSecret: formEncoded(clientSecret),
    ...rest,
  })
  const inBody = new ClientCredentialsProvider({ clientId, clientSecret, ...rest })
  const send = (provider: typeof inBody, method: 'client_secret_basic' | 'client_secret_post', fetchFn: Fetch) =>
    fetchToken(provider, expectedIssuer, { metadata: tokenServerMetadata(expectedIssuer, tokenUrl, method), resource, fetchFn })
  return async () => {
    let status = 0
    const noted: Fetch = async (url, init) => {
      const response = await fetch(url, init)
      status = response.status
      return response
    }
    try {
      const tokens = await send(inHeader, 'client_secret_basic', noted).catch((error: unknown) => {
        // a server that expects the client in the body reports an unknown client
        if (error instanceof OAuthError && error.code === 'invalid_client') return send(inBody, 'client_secret_post', noted)
        throw error
      })
      if (tokens.access_token === '') throw tokenFailed('the token server answers without a token')
      if (tokens.token_type.toLowerCase() !== 'bearer')
        throw tokenFailed('the token server returns a token that is not of type bearer')
      const { access_token: text, expires_in: seconds = 0 } = tokens
      return { text, seconds: seconds > 0 ? seconds : UNSAID_S }
    } catch (error) {
      throw error instanceof OAuthError
        ? tokenFailed(describeRejection(error.code, status))
        : isMalformed(error)
          ? tokenFailed(malformed(status))
          : error
    }
  }
}

const tokenServerMetadata = (issuer: string, tokenUrl: string, method: string): AuthorizationServerMetadata => ({
  issuer,
  token_endpoint: tokenUrl,
  token_endpoint_auth_methods_supported: [method],
  // required by the SDK's type; not used by this grant
  authorization_endpoint: tokenUrl,
  response_types_supported: [],
})

const formEncoded = (text: string) => new URLSearchParams({ '': text }).toString().slice(1)

/** Codes of RFC 6749, section 5.2, and common additions. Other parts of an error can repeat the request, and so the secret. */
const CODES =
  /^(invalid_(request|client|grant|scope|target)|unauthorized_client|unsupported_grant_type|access_denied|temporarily_unavailable|slow_down)$/

/** The SDK also uses `server_error` where the response is not an OAuth error. */
function describeRejection(code: string, status: number): string {
  if (code === 'server_error') return `the token server answers HTTP ${status}`
  return `the token server refuses: ${CODES.test(code) ? code : 'with a code that OAuth does not define'}`
}

/** The errors of the SDK's parser for a successful response that does not follow RFC 6749. */
const isMalformed = (error: unknown) => error instanceof SyntaxError || (error as Error | undefined)?.name === 'ZodError'
const malformed = (status: number) => `the token server answers HTTP ${status} without a token`

const tokenFailed = (message: string) =>
  svcError('OAUTH_FAILED', message, { hint: 'Check client_id, client_secret, scope and token_url of the server' })
