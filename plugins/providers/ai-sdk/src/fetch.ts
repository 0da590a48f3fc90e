import { checkBaseUrl, redirected, socketFailure, usesProxy } from '@svc/provider-http'
import type { Dispatcher, fetch as undiciFetch, Response as UndiciResponse } from 'undici'
import { capped } from './capped.ts'
import { badTarget } from './errors.ts'

type Fetch = typeof globalThis.fetch

/** The only way by which a package reaches its upstream. */
export interface GuardedFetch {
  /** As the global one, but: http or https without credentials, no redirect is followed, nothing packed, answers have limits. */
  readonly fetch: Fetch
  /** Asks the place that calls go to whether it is there; before it is known, nothing. Without key, never billed. */
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

/** Makes the fetch of one entry. undici is loaded by the first call. Throws PROVIDER_CONFIG for a base URL that is none. */
export function createGuardedFetch(provider: string, baseUrl: string | undefined): GuardedFetch {
  if (baseUrl !== undefined) checkBaseUrl(baseUrl, provider)
  let place = baseUrl
  let closed = false
  let loading: Promise<Loaded> | undefined
  const loaded = () => {
    if (closed) throw socketFailure(provider, { code: 'PROVIDER_CLOSED' })
    return (loading ??= load(provider))
  }
  const guarded = async (input: string | URL | Request, init: RequestInit = {}): Promise<unknown> => {
    const { url, ...asked } = requestOf(input, init)
    const target = checkTarget(url, provider)
    place ??= target.origin
    const headers = new Headers(asked.headers)
    headers.set('accept-encoding', 'identity')
    const response = await (await loaded()).ask(target, { ...asked, headers })
    if (!REDIRECTS.has(response.status)) return response
    await response.body?.cancel()
    throw redirected(provider, response.status)
  }
  return {
    fetch: guarded as Fetch,
    async probe(signal) {
      if (place === undefined) return
      const within = AbortSignal.any([signal, AbortSignal.timeout(PROBE_MS)])
      try {
        const { body } = await (await loaded()).ask(new URL(place), { method: 'HEAD', signal: within })
        await body?.cancel()
      } catch (error) {
        signal.throwIfAborted()
        throw socketFailure(provider, within.aborted ? { code: 'ETIMEDOUT' } : (error as Error).cause)
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

/** A `Request` is another undici's: only its parts can be taken over. */
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
