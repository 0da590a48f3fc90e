import { checkBaseUrl, redirected, socketFailure, tooLarge, usesProxy } from '@svc/provider-http'
import type { Dispatcher, fetch as undiciFetch, Response as UndiciResponse } from 'undici'
import { badTarget } from './errors.ts'

type Fetch = typeof globalThis.fetch

/** The fetch that a package uses to reach its upstream. */
export interface ProviderFetch {
  /** Like the global fetch, but only http and https without credentials, no redirects, no compression, and size limits. */
  readonly fetch: Fetch
  /** Checks that the upstream answers. Sends nothing while its address is unknown. The request has no key and is never billed. */
  probe(signal: AbortSignal): Promise<void>
  close(): Promise<void>
}

const MIB = 1024 * 1024
const LIMITS = { answer: 64 * MIB, error: MIB / 4, line: 8 * MIB }
const CONNECT_MS = 10_000
const PROBE_MS = 5000
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

interface Loaded {
  readonly agent: Dispatcher
  ask(url: URL, init: RequestInit): Promise<UndiciResponse>
}

/** Creates the fetch of an entry. The first call loads undici. Throws PROVIDER_CONFIG for an invalid base URL. */
export function createGuardedFetch(provider: string, baseUrl: string | undefined): ProviderFetch {
  if (baseUrl !== undefined) checkBaseUrl(baseUrl, provider)
  let address = baseUrl
  let closed = false
  let loading: Promise<Loaded> | undefined
  const loaded = () => {
    if (closed) throw socketFailure(provider, { code: 'PROVIDER_CLOSED' })
    return (loading ??= load(provider))
  }
  const guarded = async (input: string | URL | Request, init: RequestInit = {}): Promise<unknown> => {
    const { url, ...request } = requestOf(input, init)
    const target = checkTarget(url, provider)
    address ??= target.origin
    const headers = new Headers(request.headers)
    headers.set('accept-encoding', 'identity')
    const response = await (await loaded()).ask(target, { ...request, headers })
    if (!REDIRECTS.has(response.status)) return response
    await response.body?.cancel()
    throw redirected(provider, response.status)
  }
  return {
    fetch: guarded as Fetch,
    async probe(signal) {
      if (address === undefined) return
      const limited = AbortSignal.any([signal, AbortSignal.timeout(PROBE_MS)])
      try {
        const { body } = await (await loaded()).ask(new URL(address), { method: 'HEAD', signal: limited })
        await body?.cancel()
      } catch (error) {
        signal.throwIfAborted()
        throw socketFailure(provider, limited.aborted ? { code: 'ETIMEDOUT' } : (error as Error).cause)
      }
    },
    async close() {
      closed = true
      await (await loading)?.agent.destroy()
    },
  }
}

async function load(provider: string): Promise<Loaded> {
  const { Agent, EnvHttpProxyAgent, fetch } = await import('undici')
  const agent = new (usesProxy() ? EnvHttpProxyAgent : Agent)({ connectTimeout: CONNECT_MS, allowH2: false })
  const dispatcher = agent.compose(capped(provider, LIMITS))
  const ask = fetch as (url: URL, init: object) => ReturnType<typeof undiciFetch>
  return { agent, ask: (url, init) => ask(url, { ...init, redirect: 'manual', dispatcher }) }
}

/** The parts of a request. A global `Request` belongs to another copy of undici, which does not accept it as a whole. */
function requestOf(input: string | URL | Request, init: RequestInit): RequestInit & { readonly url: string } {
  if (typeof input === 'string' || input instanceof URL) return { ...init, url: String(input) }
  const { url, method, headers, body, signal } = input
  return { method, headers, signal, ...(body ? { body, duplex: 'half' } : {}), ...init, url }
}

function checkTarget(text: string, provider: string): URL {
  const url = URL.parse(text)
  if (url && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '') return url
  throw badTarget(provider)
}

type Handler = Dispatcher.DispatchHandler
type Controller = Dispatcher.DispatchController
type Headers = Parameters<NonNullable<Handler['onResponseStart']>>[2]

/** Maximum bytes from an upstream. */
interface SizeLimits {
  /** A whole answer. */
  readonly answer: number
  /** An answer that is an error. */
  readonly error: number
  /** A line, because event stream parsers buffer it. */
  readonly line: number
}

/** An undici interceptor that aborts answers beyond the limits, before the package decompresses or collects them. */
const capped =
  (provider: string, limits: SizeLimits): Dispatcher.DispatcherComposeInterceptor =>
  dispatch =>
  (options, handler) =>
    dispatch(options, new Capped(handler, provider, limits))

const NEWLINE = 10

class Capped implements Handler {
  readonly #handler: Handler
  readonly #provider: string
  readonly #limits: SizeLimits
  #left: number
  #line = 0

  constructor(handler: Handler, provider: string, limits: SizeLimits) {
    this.#handler = handler
    this.#provider = provider
    this.#limits = limits
    this.#left = limits.answer
  }

  onRequestStart(controller: Controller, context: unknown): void {
    this.#handler.onRequestStart?.(controller, context)
  }

  onResponseStart(controller: Controller, status: number, headers: Headers, words?: string): void {
    if (status >= 400) this.#left = this.#limits.error
    // The request does not accept compression: a compressed answer can expand to any size.
    const coding = String(headers['content-encoding'] ?? 'identity')
    if (coding !== 'identity')
      return this.#refuse(controller, `a compressed answer (${coding.slice(0, 20)}) that the request did not accept`)
    this.#handler.onResponseStart?.(controller, status, headers, words)
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    this.#left -= chunk.length
    const last = chunk.lastIndexOf(NEWLINE)
    this.#line = last < 0 ? this.#line + chunk.length : chunk.length - last - 1
    if (this.#left < 0) return this.#refuse(controller, 'an answer that is too large')
    if (this.#line > this.#limits.line) return this.#refuse(controller, 'a frame that is too large')
    this.#handler.onResponseData?.(controller, chunk)
  }

  onResponseEnd(controller: Controller, trailers: Headers): void {
    this.#handler.onResponseEnd?.(controller, trailers)
  }

  onResponseError(controller: Controller, error: Error): void {
    this.#handler.onResponseError?.(controller, error)
  }

  #refuse(controller: Controller, what: string): void {
    controller.abort(tooLarge(this.#provider, what))
  }
}
