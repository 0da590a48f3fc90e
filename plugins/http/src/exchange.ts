import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Principal, Together, Use } from '@svc/core'
import type { Json, Mount, RouteReply } from '@svc/core/contracts'
import type { Bound } from './routing.ts'

/** What a server knows of its own life. */
export interface Life {
  /** It is about to end: each answer closes its connection. */
  draining: boolean
  /** Nothing takes its place: what is new is refused. */
  ending: boolean
  /** Milliseconds after which a reader that takes nothing is cut off. */
  readonly stallMs: number
  /** Headers of every answer: name, value, name, value. */
  readonly headers: readonly string[]
  /** Sends the ends of answers. */
  readonly together: Together
  /** Whose answer is a stream of a route that has begun. */
  readonly streams: Set<Exchange>
}

/** One gate: lets a request pass (nothing), answers it (a reply), or refuses it (throws). */
export type Gate = (x: Exchange) => void | RouteReply | Promise<void | RouteReply>

/** One request on its way through the gates, and its answer. */
export interface Exchange {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly life: Life
  readonly method: string
  readonly path: string
  /** The query as written, without `?`. */
  readonly search: string
  /** `performance.now()` when it came. */
  readonly began: number
  readonly ending: AbortController
  requestId: string
  /** The client's address. */
  address: string
  /** W3C `traceparent`, where it is one. */
  trace: string | undefined
  /** W3C `tracestate` beside it. */
  traceState: string | undefined
  /** Headers that carry a credential, taken off the request: only schemes see them. */
  credentials: Readonly<Record<string, string>>
  /** The header among them that was given more than once. */
  doubled: string | undefined
  principal: Principal
  /** What the handler is called with; made once the principal is known. */
  use: Use
  /** The route that answers; `undefined` where none does. */
  route: Bound | undefined
  /** What takes the raw request where no route answers. */
  mount: Mount | undefined
  params: Readonly<Record<string, string>>
  /** Methods of the path, where the method of the request is none of them. */
  allowed: readonly string[]
  query: Readonly<Record<string, string>>
  body: Json | undefined
  /** Headers of the answer: name, value, name, value. */
  readonly headers: string[]
  /** The error code it was refused with. */
  refused: string | undefined
  /** Runs once when the answer is out or the client has gone. */
  left: (() => void) | undefined
  /** The client has gone, or has been cut off. */
  gone: boolean
}

const NOBODY: Principal = Object.freeze({ id: '', scopes: Object.freeze([]) })
/** What a request without credentials has. */
export const NO_CREDENTIALS: Exchange['credentials'] = Object.freeze({})
const NOTHING: Readonly<Record<string, string>> = Object.freeze({})

/** Makes what is known of a request when it comes. */
export function createExchange(req: IncomingMessage, res: ServerResponse, life: Life): Exchange {
  const target = originForm(req.url ?? '/')
  const mark = target.indexOf('?')
  const ending = new AbortController()
  return {
    req,
    res,
    life,
    method: req.method ?? 'GET',
    path: mark === -1 ? target : target.slice(0, mark),
    search: mark === -1 ? '' : target.slice(mark + 1),
    began: performance.now(),
    ending,
    requestId: '',
    address: '',
    trace: undefined,
    traceState: undefined,
    credentials: NO_CREDENTIALS,
    doubled: undefined,
    principal: NOBODY,
    use: { signal: ending.signal, principal: NOBODY, requestId: '' },
    route: undefined,
    mount: undefined,
    params: NOTHING,
    allowed: [],
    query: NOTHING,
    body: undefined,
    headers: life.headers.slice(),
    refused: undefined,
    left: undefined,
    gone: false,
  }
}

/** A request line may name the whole URL, as to a proxy: only path and query matter. */
function originForm(url: string): string {
  if (url.startsWith('/')) return url
  const match = /^https?:\/\/[^/?#]*([^#]*)/i.exec(url)
  return match ? match[1] || '/' : url
}
