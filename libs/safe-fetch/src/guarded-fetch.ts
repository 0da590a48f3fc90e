import type { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { type AddressGuard, createAddressGuard } from './addresses.ts'
import { ACCEPTED, decoded } from './body.ts'
import { fromBody, fromNetwork, redirectInvalid, redirectWithBody, tooManyRedirects, tooSlow, urlInvalid } from './errors.ts'
import { createGuardedResolve, type Resolve } from './resolve.ts'

export interface GuardedFetchOptions {
  /** Reachable although not public: addresses, networks, names (`10.0.0.0/8`, `internal.example`, `*.internal.example`). */
  readonly allow?: readonly string[]
  /** Servers of the operator that requests can name: each at its own port and its own addresses. */
  readonly servers?: readonly AddressGuard[]
  /** Replaces `allow` and `servers`: the guard of a server, for requests to that server itself. */
  readonly guard?: AddressGuard
  /** The only permitted ports. Default: all. */
  readonly ports?: readonly number[]
  readonly userAgent?: string
  /** Certificates to trust in addition to those of Node, as PEM. */
  readonly ca?: string
  readonly limits?: Partial<FetchLimits>
  /** Maximum milliseconds to resolve a name; default 5,000. */
  readonly dnsMs?: number
  /** Maximum milliseconds to connect, including TLS; default 10,000. */
  readonly connectMs?: number
  /** Maximum connections to one origin; default 16. */
  readonly connections?: number
  /** Milliseconds for which an idle connection is kept; 0 keeps none; default 1,000. */
  readonly keepAliveMs?: number
  /** Maximum bytes of response headers; default 32 KiB. */
  readonly headerBytes?: number
  /** Resolves names in place of the system. */
  readonly resolve?: Resolve
}

export interface GuardedRequest {
  /** Default GET. */
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /** Overrides limits for this request. */
  readonly limits?: Partial<FetchLimits>
}

export interface GuardedResponse {
  readonly status: number
  /** Names in lower case. Repeated headers are joined by ", ". */
  readonly headers: Readonly<Record<string, string>>
  /** The final URL, after all redirects. */
  readonly url: string
  readonly redirects: number
  /** Decompressed; read it to its end, leave it early (`break`), or discard it. */
  readonly body: AsyncIterable<Uint8Array>
  /** Leaves the body unread. */
  discard(): void
}

/** HTTP requests to untrusted URLs. */
export interface GuardedFetch extends AsyncDisposable {
  /**
   * Requests a URL. The signal aborts the request and the body. Throws URL_INVALID, ADDRESS_FORBIDDEN, HOST_UNKNOWN, CONNECTION_FAILED, CERTIFICATE_INVALID,
   * RESPONSE_INVALID, REDIRECT_REFUSED, FETCH_TIMEOUT. The body throws BODY_TOO_LARGE and BODY_INVALID, too.
   */
  fetch(url: string, ctx: { readonly signal: AbortSignal }, request?: GuardedRequest): Promise<GuardedResponse>
  /** Closes all connections, including those in use. */
  close(): Promise<void>
}

const DNS_MS = 5_000
const CONNECT_MS = 10_000
const CONNECTIONS = 16
const KEEP_ALIVE_MS = 1_000
const HEADER_BYTES = 32_768

/** Creates a fetch that reaches public addresses only. It loads undici at the first request. Throws CONFIG_INVALID. */
export function createGuardedFetch(options: GuardedFetchOptions = {}): GuardedFetch {
  const guard = options.guard ?? createAddressGuard(options.allow, options.servers)
  let opened: Promise<Opened> | undefined
  const close = async () => {
    await (await opened)?.agent.destroy()
  }
  return {
    async fetch(written, ctx, asked = {}) {
      ctx.signal.throwIfAborted()
      const url = checkUrl(written, options.ports)
      const limits = { ...LIMITS, ...options.limits, ...asked.limits }
      const { request, agent } = await (opened ??= open(guard, options))
      const first: Step = { url, method: asked.method ?? 'GET', headers: headersOf(asked, options), body: asked.body }
      return follow(first, { limits, ports: options.ports, request, agent }, ctx.signal)
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

interface Opened {
  readonly agent: Dispatcher
  readonly request: typeof import('undici').request
}

async function open(guard: AddressGuard, options: GuardedFetchOptions): Promise<Opened> {
  const { createAgent, request } = await import('./connector.ts')
  const agent = createAgent({
    guard,
    resolve: createGuardedResolve(guard, options.dnsMs ?? DNS_MS, options.resolve),
    connectMs: options.connectMs ?? CONNECT_MS,
    connections: options.connections ?? CONNECTIONS,
    keepAliveMs: options.keepAliveMs ?? KEEP_ALIVE_MS,
    headerBytes: options.headerBytes ?? HEADER_BYTES,
    ca: options.ca,
  })
  return { agent, request }
}

function headersOf({ headers = {} }: GuardedRequest, { userAgent }: GuardedFetchOptions): Record<string, string> {
  const given = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const)
  return {
    ...(userAgent !== undefined && { 'user-agent': userAgent }),
    'accept-encoding': ACCEPTED,
    ...Object.fromEntries(given),
  }
}

interface RequestOptions extends Opened {
  readonly limits: FetchLimits
  readonly ports: readonly number[] | undefined
}

/** Follows redirects, and checks each URL like the first. */
async function follow(first: Step, options: RequestOptions, signal: AbortSignal): Promise<GuardedResponse> {
  const { limits, ports } = options
  const ending = endingOf(first.url, limits.totalMs, signal)
  let step = first
  try {
    for (let redirects = 0; ; redirects++) {
      const answer = await ask(step, options, ending.signal)
      const next = limits.redirects > 0 ? redirectOf(step, answer.statusCode, oneOf(answer.headers.location), ports) : undefined
      if (!next) return respond(step.url, answer, redirects, limits, ending)
      answer.body.on('error', () => {}).destroy()
      if (redirects === limits.redirects) throw tooManyRedirects(step.url, limits.redirects)
      step = next
    }
  } catch (error) {
    ending.end()
    throw ending.signal.aborted ? ending.signal.reason : fromNetwork(step.url, error)
  }
}

async function ask(
  step: Step,
  { request, agent, limits }: RequestOptions,
  signal: AbortSignal
): Promise<Dispatcher.ResponseData> {
  const { method, headers, body } = step
  return request(step.url, {
    method: method as Dispatcher.HttpMethod,
    headers,
    ...(body !== undefined && { body }),
    dispatcher: agent,
    signal,
    headersTimeout: limits.headersMs,
    bodyTimeout: limits.idleMs,
  })
}

function respond(
  url: URL,
  answer: Dispatcher.ResponseData,
  redirects: number,
  limits: FetchLimits,
  ending: Ending
): GuardedResponse {
  const headers = Object.fromEntries(Object.entries(answer.headers).map(([name, value]) => [name, joined(value)]))
  const encoding = headers['content-encoding']
  const raw = answer.body.on('error', () => {}).once('close', () => ending.end())
  const leave = () => {
    ending.end()
    raw.destroy()
  }
  const body = guarded(url, raw, { ...limits, encoding }, ending.signal, leave)
  return { status: answer.statusCode, headers, url: url.href, redirects, body, discard: leave }
}

async function* guarded(
  url: URL,
  raw: Readable,
  form: FetchLimits & { encoding: string | undefined },
  signal: AbortSignal,
  leave: () => void
): AsyncGenerator<Uint8Array> {
  try {
    yield* decoded(raw, { url, ...form })
  } catch (error) {
    throw signal.aborted ? signal.reason : fromBody(url, error)
  } finally {
    leave()
  }
}

interface Ending {
  readonly signal: AbortSignal
  /** Stops the timer. */
  end(): void
}

/** Aborts with the caller's signal, or when the time is over. */
function endingOf(url: URL, ms: number, signal: AbortSignal): Ending {
  const controller = new AbortController()
  const onAbort = () => controller.abort(signal.reason)
  const timer = setTimeout(() => controller.abort(tooSlow(url, ms)), ms)
  signal.addEventListener('abort', onAbort, { once: true })
  return {
    signal: controller.signal,
    end() {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
    },
  }
}

const oneOf = (value: string | string[] | undefined) => (Array.isArray(value) ? value[0] : value)
const joined = (value: string | string[] | undefined) => (Array.isArray(value) ? value.join(', ') : (value ?? ''))

/** One request of a chain of redirects. */
interface Step {
  readonly url: URL
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Uint8Array | undefined
}

/** Parses and checks a URL. Throws URL_INVALID. */
function checkUrl(written: string, ports: readonly number[] | undefined, base?: URL): URL {
  const url = URL.parse(written, base?.href)
  if (!url) throw urlInvalid('is not valid', 'Write a full URL, such as https://example.com/page')
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw urlInvalid(`has the scheme ${url.protocol.slice(0, -1)}`, 'Use http or https')
  if (url.username !== '' || url.password !== '') throw urlInvalid('contains a user name or password', 'Remove them from the URL')
  const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80)
  if (ports && !ports.includes(port)) throw urlInvalid(`has port ${port}`, `Use one of these ports: ${ports.join(', ')}`)
  return url
}

const REDIRECTS = new Set([301, 302, 303, 307, 308])
/** Headers that another origin gets: any other could hold a key. */
const HARMLESS = new Set(['accept', 'accept-encoding', 'accept-language', 'user-agent', 'content-type'])
const OF_BODY = /^content-/

/** Returns the next step for a redirect. Throws URL_INVALID, REDIRECT_REFUSED. */
function redirectOf(step: Step, status: number, location: string | undefined, ports: readonly number[] | undefined) {
  if (location === undefined || !REDIRECTS.has(status)) return undefined
  if (!URL.canParse(location, step.url.href)) throw redirectInvalid(step.url)
  const url = checkUrl(location, ports, step.url)
  const same = url.origin === step.url.origin
  const asGet = (status === 303 && step.method !== 'HEAD') || (status < 303 && step.method === 'POST')
  if (!same && !asGet && step.body !== undefined) throw redirectWithBody(step.url)
  const keeps = (name: string) => (same || HARMLESS.has(name)) && !(asGet && OF_BODY.test(name))
  const headers = Object.fromEntries(Object.entries(step.headers).filter(([name]) => keeps(name)))
  return { url, headers, method: asGet ? 'GET' : step.method, body: asGet ? undefined : step.body } satisfies Step
}

/** Limits of one request with its redirects and its body. */
export interface FetchLimits {
  /** Total milliseconds, including the body; default 60,000. */
  readonly totalMs: number
  /** Milliseconds from the request to the end of the response's headers; default 20,000. */
  readonly headersMs: number
  /** Milliseconds between two chunks of the body; default 20,000. */
  readonly idleMs: number
  /** Bytes of the body as received, possibly compressed; default 10 MiB. */
  readonly wireBytes: number
  /** Bytes of the decompressed body; default 10 MiB. */
  readonly bodyBytes: number
  /** Maximum redirects to follow; 0 returns the redirect itself; default 5. */
  readonly redirects: number
}

const LIMITS: FetchLimits = {
  totalMs: 60_000,
  headersMs: 20_000,
  idleMs: 20_000,
  wireBytes: 10_485_760,
  bodyBytes: 10_485_760,
  redirects: 5,
}
