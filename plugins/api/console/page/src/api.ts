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
  return url.endsWith(SESSION_PATH) || url.endsWith('/api/v1/me')
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

/** Throws ApiError. */
export async function signIn(credential: string): Promise<void> {
  await client.post(SESSION_PATH, { body: { credential }, headers: { authorization: `Bearer ${credential}` }, retry: false })
  try {
    session.set({ state: 'in', me: await client.get('/api/v1/me') })
  } catch (error) {
    if (isApiError(error) && error.status === 401) throw new Error(INSECURE, { cause: error })
    throw error
  }
}

const INSECURE =
  'The server accepted the credential, but this browser does not send its cookie from here. Open the console over HTTPS, or on the machine itself.'

export async function signOut(): Promise<void> {
  await client.delete(SESSION_PATH)
  session.set({ state: 'out' })
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
