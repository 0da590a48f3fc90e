import { createClient, isApiError, type ReplyOf } from '@svc/client'
import { createValue } from './value.ts'

export type Me = ReplyOf<'get', '/api/v1/me'>

/** Who uses the page. */
export type Session =
  | { readonly state: 'checking' }
  | { readonly state: 'in'; readonly me: Me }
  /** `me`: the page was in use, and stays behind the login. */
  | { readonly state: 'out'; readonly reason?: string; readonly me?: Me }
  | { readonly state: 'failed'; readonly error: unknown }

export const session = createValue<Session>({ state: 'checking' })

/** Whether the last request reached the server. */
export const connection = createValue<'ok' | 'lost'>('ok')

const SESSION_PATH = '/api/v1/console/session'
const isOfLogin = (input: RequestInfo | URL) => {
  const url = input instanceof Request ? input.url : String(input)
  return url.endsWith(SESSION_PATH) || url.endsWith(LOGIN_PATH) || url.endsWith('/api/v1/me')
}
const OVER = 'Your session is over: the key or token was revoked, or has expired.'

/** A browser has at most six connections to a server. */
const CONNECTIONS = 6

/**
 * After a reload, connections that are still open lead to the former worker, which answers from the former configuration and then closes
 * them. It says so; what only reads is asked again, until a new connection leads to the new worker.
 */
async function fetchCurrent(input: RequestInfo | URL, init: RequestInit | undefined): Promise<Response> {
  const isRead = (init?.method ?? (input instanceof Request ? input.method : 'GET')).toUpperCase() === 'GET'
  for (let left = CONNECTIONS; ; left--) {
    const response = await fetch(input instanceof Request ? input.clone() : input, init)
    if (!isRead || left === 0 || response.headers.get('x-svc-draining') === null) return response
    await response.body?.cancel()
  }
}

/** Every request of the page: notices when the server does not answer, and when the session is over. */
export const serverFetch: typeof fetch = async (input, init) => {
  // the server would count each as a guess
  if (session.get().state === 'out' && !isOfLogin(input)) throw new Error('The page is signed out.')
  let response: Response
  try {
    response = await fetchCurrent(input, init)
  } catch (error) {
    if (!(init?.signal?.aborted || (input instanceof Request && input.signal.aborted))) connection.set('lost')
    throw error
  }
  connection.set(response.status === 502 || response.status === 503 || response.status === 504 ? connection.get() : 'ok')
  const current = session.get()
  if (response.status === 401 && current.state === 'in') session.set({ state: 'out', reason: OVER, me: current.me })
  return response
}

export const client = createClient({
  url: location.origin,
  fetch: serverFetch,
  retry: { retries: 1 },
  reconnect: { retries: 10_000, minDelayMs: 300, maxDelayMs: 5_000 },
})

/** Takes a one-time code out of the address, so that it is not in the history. */
function codeInAddress(): string | undefined {
  const code = new URLSearchParams(location.hash.slice(1)).get('code') ?? undefined
  if (code !== undefined) history.replaceState(history.state, '', location.pathname + location.search)
  return code
}

/** Finds out who uses the page. */
export async function begin(): Promise<void> {
  if (location.pathname === CALLBACK) return finishAtIssuer()
  const code = codeInAddress()
  try {
    session.set({ state: 'in', me: await client.get('/api/v1/me') })
  } catch (error) {
    if (!isApiError(error) || (error.status !== 401 && error.status !== 403)) return session.set({ state: 'failed', error })
    session.set({ state: 'out' })
    if (code === undefined) return
    await signIn(code).catch((failed: unknown) => session.set({ state: 'out', reason: messageOf(failed) }))
  }
}

/** The place that an issuer sends the browser back to. */
const CALLBACK = '/console/oidc'
const LOGIN_PATH = '/api/v1/console/login'
/** In the storage of this tab: the login that it has begun. The server binds it to the browser with a cookie; this binds it to the origin. */
const BEGUN = 'svc.login'

/** The name of the issuer at which people can sign in. */
export async function issuerLabel(): Promise<string | undefined> {
  const ways = await client.get(LOGIN_PATH)
  return ways.oidc?.label
}

/** Leaves the page for the issuer. Throws ApiError. */
export async function signInAtIssuer(): Promise<void> {
  const here = location.pathname === CALLBACK ? '/console' : location.pathname + location.search
  const { url } = await client.post(LOGIN_PATH, { body: { place: here.slice(0, 1_000) }, retry: false })
  sessionStorage.setItem(BEGUN, new URL(url).searchParams.get('state') ?? '')
  leaveFor(url)
}

/** Only the web: an address of another kind could run a script. */
function leaveFor(url: string): void {
  if (/^https?:$/.test(new URL(url).protocol)) location.assign(url)
}

/** Takes the answer of the issuer out of the address, so that it is not in the history, and signs in with it. */
async function finishAtIssuer(): Promise<void> {
  const answer = location.search.slice(1)
  history.replaceState(history.state, '', CALLBACK)
  session.set({ state: 'checking' })
  const begun = sessionStorage.getItem(BEGUN)
  sessionStorage.removeItem(BEGUN)
  const given = new URLSearchParams(answer)
  const state = given.get('state')
  if (state === null || state !== begun) return session.set({ state: 'out', reason: NOT_BEGUN })
  const refused = given.get('error')
  if (refused !== null) return session.set({ state: 'out', reason: refusedBecause(refused) })
  try {
    const place = await exchange(`console_oidc.${btoa(answer).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')}`)
    // the page begins anew where it was left
    location.replace(place ?? '/console')
  } catch (error) {
    session.set({ state: 'out', reason: messageOf(error) })
  }
}

const NOT_BEGUN = 'This sign-in was not begun in this tab. Sign in again.'

/** The text of an address is not shown: someone else can have written it. */
const refusedBecause = (error: string) =>
  error === 'access_denied'
    ? 'You did not allow the sign-in at the issuer, or may not use this console.'
    : 'The issuer refused the sign-in.'

/** Begins a session with a credential. Returns the place to show. Throws ApiError. */
async function exchange(credential: string): Promise<string | undefined> {
  const headers = { authorization: `Bearer ${credential}` }
  return (await client.post(SESSION_PATH, { body: { credential }, headers, retry: false })).place
}

/** Throws ApiError. */
export async function signIn(credential: string): Promise<void> {
  await exchange(credential)
  // no place of the page
  if (location.pathname === CALLBACK) return location.replace('/console')
  try {
    session.set({ state: 'in', me: await client.get('/api/v1/me') })
  } catch (error) {
    if (isApiError(error) && error.status === 401) throw new Error(INSECURE, { cause: error })
    throw error
  }
}

const INSECURE =
  'The server accepted the credential, but this browser does not send its cookie from here. Open the console over HTTPS, or in a browser on the machine of the server.'

export async function signOut(): Promise<void> {
  const ended = await client.delete(SESSION_PATH)
  session.set({ state: 'out' })
  if (ended) leaveFor(ended.end_session_url)
}

/** Whether the caller may use routes of a scope. */
export const allows = ({ scopes }: Me, scope: string): boolean => scopes.includes('*') || scopes.includes(scope)

/** The text of a field of a form, without blanks around it. */
export function textIn(data: FormData, name: string): string {
  const value = data.get(name)
  return typeof value === 'string' ? value.trim() : ''
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

type Facts = { readonly [name in 'code' | 'hint' | 'requestId']?: string | undefined }

/** What an error says beyond its message. */
export function factsOf(error: unknown): Facts {
  return error instanceof Error ? (error as Facts) : {}
}
