import process from 'node:process'
import type { Dispatcher } from 'undici'

export type Handler = Dispatcher.DispatchHandler
export type Controller = Dispatcher.DispatchController
type Headers = NonNullable<Parameters<NonNullable<Handler['onResponseStart']>>[2]>

export interface WireRequest {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly headers: string[]
  readonly body: string | Uint8Array | undefined
  /** Longest wait for the headers and between two pieces of the body, in milliseconds; 0: no limit. */
  readonly silenceMs: number
}

export interface UpstreamConnection {
  /** Sends a request. `failed` receives errors that occur before the socket is open. */
  send(parts: WireRequest, handler: Handler, failed: (error: unknown) => void): void
  close(): Promise<void>
}

interface Limits {
  readonly connectMs: number
  readonly connections: number
}

/** True when Node uses the proxy of its environment. An isolated plugin has no other route to the network. */
export const usesProxy = (): boolean => process.env.NODE_USE_ENV_PROXY === '1'

async function openPool(origin: string, { connections, connectMs }: Limits): Promise<Dispatcher> {
  const options = { connections, connectTimeout: connectMs, allowH2: false }
  if (!usesProxy()) {
    const { default: Pool } = await import('./undici/pool.ts')
    return new Pool(origin, options)
  }
  const { default: EnvHttpProxyAgent } = await import('./undici/env-http-proxy-agent.ts')
  return new EnvHttpProxyAgent(options)
}

/** A pool of keep-alive connections to one origin. Loads undici with its first request. */
export function connect(origin: string, limits: Limits): UpstreamConnection {
  let pool: Dispatcher | undefined
  let opening: Promise<Dispatcher> | undefined
  let closed = false
  const send = ({ silenceMs, body, ...parts }: WireRequest, handler: Handler) =>
    void pool?.dispatch({ ...parts, origin, body: body ?? null, headersTimeout: silenceMs, bodyTimeout: silenceMs }, handler)
  return {
    send(parts, handler, failed) {
      if (closed) return failed(Object.assign(new Error('closed'), { code: 'PROVIDER_CLOSED' }))
      if (pool) return send(parts, handler)
      opening ??= openPool(origin, limits)
      opening
        .then(opened => {
          pool = opened
          if (!closed) return send(parts, handler)
          void pool.destroy()
          failed(Object.assign(new Error('closed'), { code: 'PROVIDER_CLOSED' }))
        })
        .catch(failed)
    },
    async close() {
      closed = true
      await pool?.destroy()
    },
  }
}

/** The first value of a header. */
export function headerOf(headers: Headers, name: string): string {
  const value = headers[name]
  return (Array.isArray(value) ? value[0] : value) ?? ''
}

/** Collects a body up to a limit. It drops the bytes beyond the limit and sets `over`. */
export class RequestBody {
  readonly #limit: number
  #chunks: Uint8Array[] = []
  #size = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  get over(): boolean {
    return this.#size > this.#limit
  }

  push(chunk: Uint8Array): void {
    if (this.over) return
    this.#size += chunk.length
    this.#chunks.push(this.over ? chunk.subarray(0, Math.max(0, chunk.length - (this.#size - this.#limit))) : chunk)
  }

  /** The parsed JSON, or the text if it is not valid JSON. */
  value(): unknown {
    const text = Buffer.concat(this.#chunks).toString('utf8')
    try {
      return JSON.parse(text)
    } catch {
      return text
    }
  }
}
