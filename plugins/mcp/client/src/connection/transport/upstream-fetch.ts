import type { UnderlyingSource } from 'node:stream/web'
import { codeOf, svcError } from '@svc/core'
import { createGuardedFetch, type GuardedFetch, type GuardedResponse } from '@svc/safe-fetch'
import type { HttpOptions, NamedServers } from '../options.ts'

/** The web's `fetch`, as far as the SDK uses it. */
export type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>

export interface UpstreamFetch {
  readonly fetch: Fetch
  /** The `Authorization` header of the request that got this 401 response. */
  readonly refused: (response: Response) => string | undefined
  /** Closes all connections. */
  close(): Promise<void>
}

const ENDLESS_MS = 2 ** 31 - 1
const ENDLESS_BYTES = Number.MAX_SAFE_INTEGER
/** Limits of requests to other servers: metadata for logins, and tokens. */
const FOREIGN = { totalMs: 30_000, wireBytes: 1_048_576, bodyBytes: 1_048_576, redirects: 0 }
/** Limits of requests to the server: only the timeout of the call applies, because servers can be silent for long. Redirects are errors. */
const OWN = { totalMs: ENDLESS_MS, headersMs: 0, idleMs: 0, wireBytes: ENDLESS_BYTES, bodyBytes: ENDLESS_BYTES, redirects: 0 }
const CONNECTIONS = 72
const KEEP_ALIVE_MS = 30_000
/** Node looks up two names at a time in the whole process: a fast lookup can wait for slow ones. */
const DNS_MS = 20_000

/**
 * Sends requests to the MCP server with its key, whatever its address is. Requests of a login reach public addresses, the configured servers, and those in `allow`; they
 * reach the MCP server only at its own port and resolved addresses. A body, or an event of a stream, of more than `most` bytes fails, and `tooLong` is called.
 */
export function createUpstreamFetch(
  options: HttpOptions,
  { itself, logins }: NamedServers,
  most: number,
  tooLong: () => () => void
): UpstreamFetch {
  const server = new URL(options.url)
  const more = { dnsMs: DNS_MS, ...(options.ca !== undefined && { ca: options.ca }) }
  const own = createGuardedFetch({
    guard: itself.guard,
    connections: CONNECTIONS,
    keepAliveMs: KEEP_ALIVE_MS,
    limits: OWN,
    ...more,
  })
  const foreign = createGuardedFetch({ allow: options.allow ?? [], servers: [itself, ...logins], limits: FOREIGN, ...more })
  const open = new Set<GuardedResponse>()
  const refused = new WeakMap<Response, string>()
  return {
    async fetch(to, init = {}) {
      const url = new URL(to)
      const isServer = url.origin === server.origin && url.pathname === server.pathname
      if (!isServer && options.networkAccess === false) throw forbidden(url)
      const headers = new Headers(init.headers)
      if (isServer) addKey(headers, options)
      const report = tooLong()
      const response = await ask(isServer ? own : foreign, url, headers, init).catch((error: unknown) => {
        throw !isServer && codeOf(error) === 'ADDRESS_FORBIDDEN' ? loginForbidden(url, error) : error
      })
      open.add(response)
      const raw = respond(response, most, report, () => open.delete(response))
      const isForm = (headers.get('content-type') ?? '').startsWith('application/x-www-form-urlencoded')
      const answer = await withoutCredentials(
        raw,
        credentialsOf(headers, options.apiKeyHeader, isForm ? init.body : undefined),
        isForm
      )
      if (response.status === 401) refused.set(answer, headers.get('authorization') ?? '')
      return answer
    },
    refused: response => refused.get(response),
    async close() {
      for (const response of open) response.discard()
      await Promise.all([own.close(), foreign.close()])
    },
  }
}

function addKey(headers: Headers, { apiKey, apiKeyHeader = 'authorization' }: HttpOptions): void {
  if (apiKey !== undefined) headers.set(apiKeyHeader, apiKeyHeader === 'authorization' ? `Bearer ${apiKey}` : apiKey)
}

function ask(through: GuardedFetch, url: URL, headers: Headers, { method, body, signal }: RequestInit): Promise<GuardedResponse> {
  // a compressed stream of events would arrive late
  headers.set('accept-encoding', 'identity')
  return through.fetch(
    url.href,
    { signal: signal ?? new AbortController().signal },
    {
      ...(method !== undefined && { method }),
      headers: Object.fromEntries(headers),
      ...(body !== undefined &&
        body !== null && { body: body instanceof Uint8Array ? body : String(body as string | URLSearchParams) }),
    }
  )
}

const WITHOUT_BODY = new Set([101, 204, 205, 304])

function respond(response: GuardedResponse, most: number, report: () => void, over: () => void): Response {
  const { status, headers } = response
  if (WITHOUT_BODY.has(status)) {
    response.discard()
    over()
    return new Response(null, { status, headers })
  }
  const isStream = (headers['content-type'] ?? '').startsWith('text/event-stream')
  const body = isStream ? cappedEvents(response.body, most, report) : capped(response.body, most, report)
  return new Response(streamOf(body, response, over), { status, headers })
}

/** Cancelling a generator that has not started has no effect, so `cancel` discards the response itself. */
function streamOf(body: AsyncGenerator<Uint8Array>, response: GuardedResponse, over: () => void): ReadableStream<Uint8Array> {
  const end = () => {
    response.discard()
    over()
  }
  const source: UnderlyingSource<Uint8Array> = {
    async pull(controller) {
      try {
        const { value, done } = await body.next()
        if (done !== true) return controller.enqueue(value)
        over()
        controller.close()
      } catch (error) {
        over()
        controller.error(error)
      }
    },
    cancel: end,
  }
  return new ReadableStream(source, { highWaterMark: 0 })
}

async function* capped(body: AsyncIterable<Uint8Array>, most: number, report: () => void): AsyncGenerator<Uint8Array> {
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > most) throw tooLarge(most, report)
    yield chunk
  }
}

/** An event ends with an empty line: an endless event would be kept in memory. */
async function* cappedEvents(body: AsyncIterable<Uint8Array>, most: number, report: () => void): AsyncGenerator<Uint8Array> {
  let size = 0
  let before = ''
  for await (const chunk of body) {
    const text = before + Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length).toString('latin1')
    const end = Math.max(text.lastIndexOf('\n\n'), text.lastIndexOf('\n\r\n'), text.lastIndexOf('\r\r'))
    size = end < 0 ? size + chunk.length : text.length - end
    if (size > most) throw tooLarge(most, report)
    before = text.slice(-2)
    yield chunk
  }
}

function tooLarge(most: number, report: () => void): Error {
  report()
  return svcError('BODY_TOO_LARGE', `it answers with more than ${most} bytes`, { hint: 'Request less data' })
}

const forbidden = (url: URL) =>
  svcError('ADDRESS_FORBIDDEN', `${url.host} cannot be reached because network_access is false`, {
    hint: 'Set sandbox_config.network_access to true, or use a server that needs no other address',
  })

const loginForbidden = (url: URL, cause: unknown) =>
  svcError(
    'ADDRESS_FORBIDDEN',
    `${url.origin}, which the server names for logins, has an address that is not public; set oauth.issuer if it is yours`,
    {
      details: { host: url.host },
      hint: 'Set oauth.issuer to the authorization server if it is yours',
      cause,
    }
  )

/** Form fields with a credential. */
const SECRET_FIELDS = ['client_secret', 'code', 'code_verifier', 'refresh_token', 'client_assertion']
/** A shorter value is not a credential, and can be part of a word. */
const SHORTEST = 6
const MARK = '[secret]'

/** The credentials of a request: its key or token, and the secrets of a form. An error message must not repeat them. */
function credentialsOf(headers: Headers, keyHeader: string | undefined, body: unknown): string[] {
  const authorization = headers.get('authorization') ?? ''
  const [kind = '', credential = ''] = authorization.split(/\s+(.*)/s)
  const basic = /^basic$/i.test(kind) ? Buffer.from(credential, 'base64').toString().split(':').map(decoded) : []
  const key = keyHeader === undefined ? null : headers.get(keyHeader)
  const form = typeof body === 'string' || body instanceof URLSearchParams ? new URLSearchParams(body) : undefined
  const fields = SECRET_FIELDS.map(name => form?.get(name))
  const all = [credential, ...basic.slice(1), key, ...fields].filter(one => typeof one === 'string' && one.length >= SHORTEST)
  const forms = (all as string[]).flatMap(one => [one, encodeURIComponent(one), JSON.stringify(one).slice(1, -1)])
  // the longest first: one can contain another
  return [...new Set(forms)].sort((a, b) => b.length - a.length)
}

const decoded = (text: string) => new URLSearchParams(`v=${text}`).get('v') ?? text

/** Removes credentials from an error response: its text goes into logs, health and answers. Does not change a token response. */
async function withoutCredentials(response: Response, credentials: readonly string[], isForm: boolean): Promise<Response> {
  if (response.body === null || credentials.length === 0 || (response.status < 400 && !isForm)) return response
  const text = await response.text()
  const isToken = response.status < 400 && /"access_token"\s*:/.test(text)
  const clean = isToken ? text : credentials.reduce((all, one) => all.replaceAll(one, MARK), text)
  return new Response(clean, { status: response.status, headers: response.headers })
}
