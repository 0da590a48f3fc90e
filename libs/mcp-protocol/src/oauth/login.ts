import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type {
  OAuthClientProvider,
  OAuthDiscoveryState,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
} from '@modelcontextprotocol/client'
import type { Json } from '@svc/core/contracts'
import { definedOf } from '@svc/plugin-kit'
import { checkIssuer, checkLoginAnswer, checkLoginPage, withScope } from './login-checks.ts'
import { createMemoryStorage, type Fetch, type OAuthOptions, type Person } from './options.ts'

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
export async function createLogin(options: OAuthOptions) {
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
      else {
        checkLoginPage(asked)
        page = withScope(asked, saved.wantedScope)
      }
    },
    saveCodeVerifier: made => void (verifier = made),
    codeVerifier: () => verifier,
    discoveryState: () => page && discovery,
    saveDiscoveryState(found) {
      checkIssuer(issuerOf(found) ?? '', pinned)
      discovery = found
    },
    invalidateCredentials: scope => save(forgotten(scope)),
  }
  return {
    provider,
    /** The query that came back from the login page, `undefined` if no person was sent there. */
    async answer(): Promise<URLSearchParams | undefined> {
      if (!person || !page) return undefined
      const shown = page
      const answer = await person.authorize(shown)
      checkLoginAnswer(answer, { state, page: shown, issuer: issuerOf(discovery), pinned })
      return answer
    },
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

function forgotten(scope: string): Partial<Record<keyof SavedLogin, undefined>> {
  return {
    ...((scope === 'all' || scope === 'client') && { client: undefined }),
    ...((scope === 'all' || scope === 'tokens') && { tokens: undefined }),
  }
}

const issuerOf = (discovery: OAuthDiscoveryState | undefined) =>
  discovery?.authorizationServerMetadata?.issuer ?? discovery?.authorizationServerUrl

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

/** A person with a browser on this machine. Dispose it to close the local port. */
export interface Loopback extends Person, AsyncDisposable {
  /** Takes the query of the address to which the browser came back. Returns false for that of another login. */
  take(query: URLSearchParams): boolean
}

const pageOf = (text: string) => `<!doctype html><meta charset="utf-8"><title>svc</title><p>${text}`
const RECEIVED = pageOf('svc has received the login. You can close this page.')
const NOT_EXPECTED = pageOf('svc does not wait for this login.')
const PATH = '/callback'

/**
 * Listens on 127.0.0.1 for the redirect of the browser; `show` opens or prints the page, and `port` 0 takes any port. Any web page can send a browser here, so only a
 * request with the state of this login counts.
 */
export async function openLoopback(show: (page: URL) => void | Promise<void>, port: number): Promise<Loopback> {
  let received = Promise.withResolvers<URLSearchParams>()
  let state: string | null = null
  const take = (answer: URLSearchParams) => {
    const isAnswer = state !== null && answer.get('state') === state
    if (isAnswer) received.resolve(answer)
    return isAnswer
  }
  const server = createServer((request, response) => {
    const [path, query] = (request.url ?? '').split('?', 2)
    if (path !== PATH) return void response.writeHead(404).end()
    const isAnswer = take(new URLSearchParams(query))
    response
      .writeHead(isAnswer ? 200 : 400, { 'content-type': 'text/html', connection: 'close' })
      .end(isAnswer ? RECEIVED : NOT_EXPECTED)
  })
  await once(server.listen(port, '127.0.0.1'), 'listening')
  return {
    take,
    redirectUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}${PATH}`,
    async authorize(shown) {
      received = Promise.withResolvers()
      state = shown.searchParams.get('state')
      await show(shown)
      return received.promise
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await server[Symbol.asyncDispose]()
    },
  }
}
