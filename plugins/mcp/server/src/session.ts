import { type CallContext, isTree } from '@svc/core'
import { answerPlain, type StartedCall, LEGACY_FRAME, plainLegacy } from './fast.ts'
import { type HttpAnswer, type HttpMessage, idOf, idTaken, jsonAnswer, type RpcId } from './messages.ts'
import { createProtocolServer, follow } from './protocol-server.ts'
import type { Published } from './published.ts'
import { answerOf, askable, attachContext, loadSdk, type Server, webRequest } from './sdk.ts'

/** A session of the legacy era, from `initialize` to its end. */
export interface McpSession {
  readonly id: string
  /** `performance.now()` at the end of its last request. */
  readonly touched: number
  /** Whether a request is running or a stream is open. */
  readonly busy: boolean
  answer(message: HttpMessage, body: unknown, ctx: CallContext): Promise<HttpAnswer>
  close(): Promise<void>
}

interface SessionOptions {
  readonly id: string
  readonly published: Published
  /** Context of its calls. They continue when the client closes the connection of the request. */
  readonly own: CallContext
  /** Called when the client or `close` ends the session. */
  readonly onclose: () => void
}

/** Creates a session. Its first request must be `initialize`. */
export async function openSession({ id, published, own, onclose }: SessionOptions): Promise<McpSession> {
  const sdk = await loadSdk()
  const ending = new AbortController()
  const transport = new sdk.WebStandardStreamableHTTPServerTransport({ sessionIdGenerator: () => id })
  const server = createProtocolServer(sdk, published)
  const stopFollowing = follow(server, sdk, published)
  server.onclose = () => {
    stopFollowing()
    ending.abort(new Error('the session ended'))
    onclose()
  }
  await server.connect(transport)
  const fast = createFast(server, published, ending.signal)
  const lasting = AbortSignal.any([own.signal, ending.signal])
  const open = createOpen()
  const work = async (message: HttpMessage, body: unknown, ctx: CallContext): Promise<HttpAnswer> => {
    const answer = await fast(message, body, ctx)
    if (answer && !('begun' in answer)) return answer
    const authInfo = attachContext({ ctx: { ...ctx, signal: lasting }, begun: answer?.begun })
    const parsed = message.method === 'POST' ? { parsedBody: body } : {}
    const response = await transport.handleRequest(webRequest(message), { ...parsed, authInfo })
    // the SDK does not answer a cancelled request, and would never close its stream
    const cancelled = cancelledBy(body)
    if (cancelled !== undefined) transport.closeSSEStream(cancelled)
    return answerOf(response, ctx.signal)
  }
  return {
    id,
    get touched() {
      return open.touched
    },
    get busy() {
      return open.count > 0
    },
    async answer(message, body, ctx) {
      const requestId = idOf(body)
      if (requestId !== null && open.ids.has(requestId)) return idTaken(requestId)
      const done = open.begin(requestId)
      try {
        const answer = await work(message, body, ctx)
        if (typeof answer.body !== 'string') return { ...answer, body: withEnd(answer.body, done, ctx.signal) }
        done()
        return answer
      } catch (error) {
        done()
        throw error
      }
    },
    close: () => server.close(),
  }
}

/** Counts the running requests of a session. `touched` is the end of the last one. */
function createOpen() {
  const open = { count: 0, ids: new Set<RpcId>(), touched: performance.now() }
  return Object.assign(open, {
    /** Returns a function that ends the request, once. */
    begin(id: RpcId | null): () => void {
      let isOver = false
      open.count++
      if (id !== null) open.ids.add(id)
      return () => {
        if (isOver) return
        isOver = true
        open.count--
        if (id !== null) open.ids.delete(id)
        open.touched = performance.now()
      }
    },
  })
}

/** Calls `done` after the last item, or when the signal aborts: the reading never begins if the client has left by then. */
function withEnd(items: AsyncIterable<string>, done: () => void, signal: AbortSignal): AsyncIterable<string> {
  const end = () => {
    signal.removeEventListener('abort', end)
    done()
  }
  signal.addEventListener('abort', end, { once: true })
  if (signal.aborted) end()
  return endingWith(items, end)
}

async function* endingWith(items: AsyncIterable<string>, end: () => void): AsyncGenerator<string> {
  try {
    yield* items
  } finally {
    end()
  }
}

/** Answers plain requests without the SDK, and handles their cancellation. */
function createFast(server: Server, published: Published, ended: AbortSignal) {
  const running = new Map<RpcId, AbortController>()
  const askableOnce = memoizeLast(askable)
  let logs = false
  ended.addEventListener('abort', () => {
    for (const abortController of running.values()) abortController.abort(ended.reason)
  })
  return async (message: HttpMessage, body: unknown, ctx: CallContext): Promise<HttpAnswer | StartedCall | undefined> => {
    const cancelledId = cancelledBy(body)
    const cancelled = cancelledId === undefined ? undefined : running.get(cancelledId)
    if (cancelled) {
      cancelled.abort(new Error('the caller cancelled the call'))
      return ACCEPTED
    }
    // a client that sets a level wants log messages
    if (isTree(body) && body.method === 'logging/setLevel') logs = true
    const plain = plainLegacy(message.headers, body)
    if (!plain || running.has(plain.id) || message.method !== 'POST') return undefined
    const ending = new AbortController()
    running.set(plain.id, ending)
    try {
      const can = askableOnce(server.getClientCapabilities())
      return await answerPlain(plain, LEGACY_FRAME, published, { ctx: { ...ctx, signal: ending.signal }, can, logs })
    } catch (error) {
      // a cancelled request gets no result, but the HTTP response must end
      if (ending.signal.aborted) return ACCEPTED
      throw error
    } finally {
      running.delete(plain.id)
    }
  }
}

/** Caches the result for the last argument. */
function memoizeLast<K, V>(make: (key: K) => V): (key: K) => V {
  let last: { readonly key: K; readonly value: V } | undefined
  return key => (last?.key === key ? last : (last = { key, value: make(key) })).value
}

const ACCEPTED: HttpAnswer = { ...jsonAnswer('', {}), status: 202 }

/** Returns the id of the request that a message cancels. */
function cancelledBy(body: unknown): RpcId | undefined {
  if (!isTree(body) || body.method !== 'notifications/cancelled' || !isTree(body.params)) return undefined
  const { requestId } = body.params
  return typeof requestId === 'string' || typeof requestId === 'number' ? requestId : undefined
}
