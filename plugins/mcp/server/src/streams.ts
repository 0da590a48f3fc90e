import { isTree } from '@svc/core'
import { retryField } from '@svc/provider-http/sse'
import { idOf, type HttpMessage } from './message.ts'
import type { ServerInfo } from './published.ts'

/** Streams that have no end of their own: a session's own one, and subscriptions. They end with the worker that has them. */
export interface Streams {
  /** Aborts when they are to end. */
  readonly signal: AbortSignal
  /** The last words of the stream that a request opens; `undefined` where it opens none without an end. */
  farewell(message: HttpMessage): string | undefined
  /** Ends all that are open, and each that is opened from now on at once: whoever comes back finds another worker. */
  end(): void
}

/** Requests that open such a stream, by what a header of them holds. */
export const ENDLESS = [
  { method: 'GET', header: 'accept', holds: 'text/event-stream' },
  { method: 'POST', header: 'mcp-method', holds: 'subscriptions/listen' },
] as const

export function createStreams(info: ServerInfo): Streams {
  const ending = new AbortController()
  return {
    signal: ending.signal,
    farewell(message) {
      const [session, subscription] = ENDLESS
      if (isOpening(message, session)) return `${retryField()}\n`
      return isOpening(message, subscription)
        ? `${retryField()}event: message\ndata: ${JSON.stringify(lastOf(message, info))}\n\n`
        : undefined
    },
    end: () => ending.abort(new Error('the stream has ended: come back')),
  }
}

const isOpening = ({ method, headers }: HttpMessage, one: (typeof ENDLESS)[number]) =>
  method === one.method && (headers[one.header] ?? '').includes(one.holds)

/** The result that ends a subscription in good order. */
function lastOf({ text }: HttpMessage, info: ServerInfo) {
  const body: unknown = JSON.parse(text)
  const id = isTree(body) ? idOf(body) : null
  const meta = { 'io.modelcontextprotocol/subscriptionId': id, 'io.modelcontextprotocol/serverInfo': info }
  return { jsonrpc: '2.0', id, result: { resultType: 'complete', _meta: meta } }
}
