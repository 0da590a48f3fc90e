import { isTree, type CallContext } from '@svc/core'
import { askable } from './dialog.ts'
import { answerPlain, type Begun, LEGACY_FRAME, plainLegacy } from './fast.ts'
import { idTaken } from './faults.ts'
import { type HttpAnswer, type HttpMessage, idOf, jsonAnswer, type RpcId } from './message.ts'
import { follow } from './notices.ts'
import { createProtocolServer } from './protocol-server.ts'
import type { Published } from './published.ts'
import { carry, loadSdk, type Server } from './sdk.ts'
import { answerOf, webRequest } from './web.ts'

/** One client between its `initialize` and its end. */
export interface Session {
  readonly id: string
  /** `performance.now()` of its last request's end. */
  readonly touched: number
  /** Something of it runs, or a stream is open. */
  readonly busy: boolean
  answer(message: HttpMessage, body: unknown, ctx: CallContext): Promise<HttpAnswer>
  close(): Promise<void>
}

export interface SessionParts {
  readonly id: string
  readonly published: Published
  /** Its work outlives the requests that begin it: a client may leave the line and still want it done. */
  readonly own: CallContext
  /** The session came to its end: by its client, or by `close`. */
  readonly onclose: () => void
}

/** Makes a session; its first request must be `initialize`. */
export async function openSession({ id, published, own, onclose }: SessionParts): Promise<Session> {
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
    const authInfo = carry({ ctx: { ...ctx, signal: lasting }, begun: answer?.begun })
    const parsed = message.method === 'POST' ? { parsedBody: body } : {}
    const response = await transport.handleRequest(webRequest(message), { ...parsed, authInfo })
    // the SDK answers nothing to what was cancelled, and would keep its line open for ever
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
      const asked = idOf(body)
      if (asked !== null && open.ids.has(asked)) return idTaken(asked)
      const done = open.begin(asked)
      try {
        const answer = await work(message, body, ctx)
        if (typeof answer.body !== 'string') return { ...answer, body: passing(answer.body, done) }
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

/** How much of a session is under way, under which ids, and since when nothing is. */
function createOpen() {
  const open = { count: 0, ids: new Set<RpcId>(), touched: performance.now() }
  return Object.assign(open, {
    /** Answers what ends it. */
    begin(id: RpcId | null): () => void {
      open.count++
      if (id !== null) open.ids.add(id)
      return () => {
        open.count--
        if (id !== null) open.ids.delete(id)
        open.touched = performance.now()
      }
    },
  })
}

async function* passing(items: AsyncIterable<string>, done: () => void): AsyncGenerator<string> {
  try {
    yield* items
  } finally {
    done()
  }
}

/** Answers calls and lists without the SDK, and what cancels such a call. */
function createFast(server: Server, published: Published, ended: AbortSignal) {
  const running = new Map<RpcId, AbortController>()
  const known = lastOf(askable)
  let logs = false
  ended.addEventListener('abort', () => {
    for (const one of running.values()) one.abort(ended.reason)
  })
  return async (message: HttpMessage, body: unknown, ctx: CallContext): Promise<HttpAnswer | Begun | undefined> => {
    const said = cancelledBy(body)
    const cancelled = said === undefined ? undefined : running.get(said)
    if (cancelled) {
      cancelled.abort(new Error('the caller cancelled it'))
      return ACCEPTED
    }
    // who sets a level wants to read what is logged
    if (isTree(body) && body.method === 'logging/setLevel') logs = true
    const plain = plainLegacy(message.headers, body)
    if (!plain || running.has(plain.id) || message.method !== 'POST') return undefined
    const ending = new AbortController()
    running.set(plain.id, ending)
    try {
      const can = known(server.getClientCapabilities())
      return await answerPlain(plain, LEGACY_FRAME, published, { ctx: { ...ctx, signal: ending.signal }, can, logs })
    } catch (error) {
      // whoever cancelled it wants no answer, and its line has to end
      if (ending.signal.aborted) return ACCEPTED
      throw error
    } finally {
      running.delete(plain.id)
    }
  }
}

/** What was made of the last thing, for as long as it is the same. */
function lastOf<K, V>(make: (key: K) => V): (key: K) => V {
  let last: { readonly key: K; readonly value: V } | undefined
  return key => (last?.key === key ? last : (last = { key, value: make(key) })).value
}

const ACCEPTED: HttpAnswer = { ...jsonAnswer('', {}), status: 202 }

/** The id of the request that a message cancels. */
function cancelledBy(body: unknown): RpcId | undefined {
  if (!isTree(body) || body.method !== 'notifications/cancelled' || !isTree(body.params)) return undefined
  const { requestId } = body.params
  return typeof requestId === 'string' || typeof requestId === 'number' ? requestId : undefined
}
