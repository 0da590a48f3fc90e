import { randomBytes } from 'node:crypto'
import type {
  OAuthClientProvider,
  OAuthDiscoveryState,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
} from '@modelcontextprotocol/client'
import { type SvcError, svcError } from '@svc/core'
import type { Json } from '@svc/core/contracts'
import { isSafePage } from '@svc/mcp-protocol'
import { definedOf } from '@svc/plugin-kit'
import type { OAuthOptions, Fetch } from '../options.ts'
import { createMemoryStorage } from '../resolved-options.ts'

/** The stored part of a login. */
interface SavedLogin {
  readonly client?: StoredOAuthClientInformation & { readonly redirect_uris?: readonly string[] }
  readonly tokens?: StoredOAuthTokens
  /** A scope that the server asked for and the tokens do not have: the next login requests it. */
  readonly wantedScope?: string
}

/** The SDK requires a redirect address; without a user the SDK never uses it. */
const UNUSED_REDIRECT = 'http://127.0.0.1/callback'

/** Logins for the SDK's transport. */
export interface Login {
  readonly provider: OAuthClientProvider
  /** The query that came back from the login page, `undefined` if no person was sent there. */
  answer(): Promise<URLSearchParams | undefined>
}

/** The login of the protocol: discovery, authorization code, PKCE. The SDK decides what to store. */
export async function createLogin(options: OAuthOptions): Promise<Login> {
  const { person, storage = createMemoryStorage(), issuer: pinned } = options
  let saved = ((await storage.load()) ?? {}) as SavedLogin
  const save = async (more: Partial<Record<keyof SavedLogin, unknown>>) => {
    saved = { ...saved, ...more } as SavedLogin
    await storage.save(JSON.parse(JSON.stringify(saved)) as Json)
  }
  const redirectUrl = person?.redirectUrl ?? UNUSED_REDIRECT
  const state = randomBytes(16).toString('base64url')
  let verifier = ''
  let page: URL | undefined
  let discovery: OAuthDiscoveryState | undefined
  // a login for a further scope must not reuse the old tokens
  let isAnew = person !== undefined && saved.wantedScope !== undefined

  const provider: OAuthClientProvider = {
    redirectUrl,
    ...definedOf({ clientMetadataUrl: options.clientMetadataUrl }),
    clientMetadata: {
      client_name: 'svc',
      redirect_uris: [redirectUrl],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      ...definedOf({ scope: options.scope }),
    },
    state: () => state,
    clientInformation: () => configured(options, saved) ?? registered(saved, person && redirectUrl),
    saveClientInformation: client => save({ client }),
    tokens: () => (isAnew ? undefined : saved.tokens),
    saveTokens(tokens) {
      isAnew = false
      page = discovery = undefined
      return save({ tokens, wantedScope: undefined })
    },
    async redirectToAuthorization(asked) {
      if (person === undefined) await save({ wantedScope: asked.searchParams.get('scope') ?? undefined })
      else page = withScope(checkedPage(asked), saved.wantedScope)
    },
    saveCodeVerifier: made => void (verifier = made),
    codeVerifier: () => verifier,
    discoveryState: () => page && discovery,
    saveDiscoveryState(found) {
      checkIssuer(found, pinned)
      discovery = found
    },
    invalidateCredentials: scope => save(forgotten(scope)),
  }
  return {
    provider,
    answer: async () =>
      person && page && checkedAnswer(await person.authorize(page), { state, page, issuer: issuerOf(discovery), pinned }),
  }
}

/** The configured client, bound to the authorization server where it was first used. */
function configured({ clientId, clientSecret }: OAuthOptions, { client }: SavedLogin): StoredOAuthClientInformation | undefined {
  if (clientId === undefined) return undefined
  const issuer = client?.client_id === clientId ? client.issuer : undefined
  return { client_id: clientId, ...definedOf({ client_secret: clientSecret, issuer }) }
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

/** A login attempt after a user has opened its page; `pinned` is `oauth.issuer` of the configuration. */
type LoginAttempt = { readonly state: string; readonly page: URL } & { readonly [key in 'issuer' | 'pinned']: string | undefined }

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

/** The login page. Throws OAUTH_FAILED for a page without TLS. */
function checkedPage(page: URL): URL {
  if (isSafePage(page)) return page
  throw loginFailed(`the login page ${shown(page.href)} of the authorization server does not use https`, 'Do not log in there')
}

/**
 * Checks the query that came back from the login page. Another state belongs to another login. A login page at another origin than its issuer can belong to another
 * server, to which a hostile one has sent the person (mix-up attack, RFC 9207): then the query or the configuration must name the issuer. Throws OAUTH_FAILED.
 */
function checkedAnswer(answer: URLSearchParams, { state, page, issuer, pinned }: LoginAttempt): URLSearchParams {
  if (answer.get('state') !== state) throw loginFailed('the answer belongs to another login', 'Log in again')
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
