import { isUtf8 } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type CallContext, createStepBatcher, isTree, type StepBatcher } from '@svc/core'
import type { Mount, MountWriter, RouteReply } from '@svc/core/contracts'
import { deeper, isModern, META } from '@svc/mcp-protocol'
import { retryField } from '@svc/provider-http/sse'
import {
  bodyTooLarge,
  type HttpAnswer,
  type HttpMessage,
  idOf,
  notJson,
  notRpc,
  pathUnknown,
  sessionUnknown,
  tooDeep,
  unreadable,
} from './messages.ts'
import type { Modern } from './modern.ts'
import type { PublishedServer } from './published.ts'
import { isEvents } from './sdk.ts'
import type { Sessions, Workers } from './sessions.ts'

/** Maximum size of a body. */
const BODY_BYTES = 4 * 1_048_576
/** The server closes a stream whose client reads nothing for this time. */
const STALL_MS = 60_000

/** A streamed response. */
type StreamedAnswer = HttpAnswer & { readonly body: AsyncIterable<string> }

/** Mounts the protocol at one path. */
export function createMcpMount(path: string, endpoint: Pick<Endpoint, 'answer'>, streams: OpenStreams): Mount {
  const batch = createStepBatcher() // handles bodies that arrive together in one step
  return {
    path,
    scope: 'tools',
    streams: OPEN_ENDED,
    async answer(request, ctx) {
      const read = request.url === path || pathOf(request) === path ? await messageOf(request, batch) : pathUnknown()
      if ('status' in read) return replyOf(read, ctx)
      const finalEvent = streams.finalEvent(read)
      if (finalEvent === undefined) return replyOf(await endpoint.answer(read, ctx), ctx)
      const signal = AbortSignal.any([ctx.signal, streams.signal])
      const answer = await endpoint.answer(read, { ...ctx, signal })
      const { body } = answer
      if (typeof body === 'string' || !isEvents(answer.headers)) return replyOf(answer, ctx)
      return replyOf({ ...answer, body: withFinalEvent(body, finalEvent) }, ctx)
    },
  }
}

const pathOf = ({ url = '' }: IncomingMessage) =>
  url
    .replace(/^https?:\/\/[^/]*/i, '')
    .split('?', 1)[0]!
    .replace(/\/$/, '')

/** Adds the event with the reconnection time. */
async function* withFinalEvent(body: AsyncIterable<string>, finalEvent: string): AsyncGenerator<string> {
  yield* body
  yield finalEvent
}

async function messageOf(request: IncomingMessage, batch: StepBatcher): Promise<HttpMessage | HttpAnswer> {
  const { method = 'GET', headers } = request
  const message = { method, headers: headers as HttpMessage['headers'] }
  if (method !== 'POST') return { ...message, text: '' }
  const bytes = Number(headers['content-length'] ?? 0) > BODY_BYTES ? undefined : await readBytes(request, batch)
  if (!bytes) return bodyTooLarge(BODY_BYTES)
  return isUtf8(bytes) ? { ...message, text: bytes.toString() } : unreadable('the body is not valid UTF-8')
}

/** Reads the body. Returns `undefined` as soon as it is too large. */
function readBytes(request: IncomingMessage, batch: StepBatcher): Promise<Buffer | undefined> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size <= BODY_BYTES) chunks.push(chunk)
      else resolve(undefined)
    })
    request.on('end', () => batch(() => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))))
    request.on('error', reject)
  })
}

function replyOf({ status, headers, body }: HttpAnswer, ctx: CallContext): RouteReply | MountWriter {
  if (typeof body !== 'string') return response => stream(response, { status, headers, body }, ctx)
  return body === '' ? { status, headers } : { status, headers, text: body }
}

async function stream(
  response: ServerResponse,
  { status, headers, body }: StreamedAnswer,
  { signal }: CallContext
): Promise<void> {
  if (signal.aborted) return void response.destroy()
  response.writeHead(status, headers)
  response.flushHeaders()
  // keep-alive comments are more frequent than this timeout
  response.setTimeout(STALL_MS, () => response.destroy())
  try {
    await pipeline(Readable.from(body), response, { signal })
  } catch (error) {
    // not an error: the client closed the connection
    if (!signal.aborted && !response.destroyed) throw error
  }
}

/** Streams without an end: event streams of sessions, and subscriptions. They end when their worker drains. */
export interface OpenStreams {
  /** Aborts when the streams must end. */
  readonly signal: AbortSignal
  /** Returns the final event of the stream that a request opens, `undefined` if it opens no such stream. */
  finalEvent(message: HttpMessage): string | undefined
  /** Ends all open and all future streams. Clients then reconnect to another worker. */
  end(): void
}

/** Requests that open such a stream, by the content of a header. */
const OPEN_ENDED = [
  { method: 'GET', header: 'accept', holds: 'text/event-stream' },
  { method: 'POST', header: 'mcp-method', holds: 'subscriptions/listen' },
] as const

export function createOpenStreams(info: PublishedServer): OpenStreams {
  const ending = new AbortController()
  return {
    signal: ending.signal,
    finalEvent(message) {
      const [session, subscription] = OPEN_ENDED
      if (isOpening(message, session)) return `${retryField()}\n`
      return isOpening(message, subscription)
        ? `${retryField()}event: message\ndata: ${JSON.stringify(subscriptionEnd(message, info))}\n\n`
        : undefined
    },
    end: () => ending.abort(new Error('the worker ended the stream: reconnect')),
  }
}

const isOpening = ({ method, headers }: HttpMessage, item: (typeof OPEN_ENDED)[number]) =>
  method === item.method && (headers[item.header] ?? '').includes(item.holds)

/** Returns the result that ends a subscription. */
function subscriptionEnd({ text }: HttpMessage, info: PublishedServer) {
  const body: unknown = JSON.parse(text)
  const id = isTree(body) ? idOf(body) : null
  const meta = { 'io.modelcontextprotocol/subscriptionId': id, 'io.modelcontextprotocol/serverInfo': info }
  return { jsonrpc: '2.0', id, result: { resultType: 'complete', _meta: meta } }
}

/** Maximum nesting of a message. Recursive functions must not exceed the stack. */
export const DEEPEST = 100

interface EndpointOptions {
  readonly path: string
  readonly modern: Modern
  readonly sessions: Sessions
  readonly workers: Workers
}

/** One path of the protocol, for both eras. */
export interface Endpoint {
  answer(message: HttpMessage, ctx: CallContext): Promise<HttpAnswer>
  /** Answers a request that another worker forwards to a session of this worker. */
  answerHere(message: HttpMessage, ctx: CallContext): Promise<HttpAnswer>
}

export function createEndpoint({ path, modern, sessions, workers }: EndpointOptions): Endpoint {
  const here = (message: HttpMessage, body: unknown, ctx: CallContext) =>
    sessions.answer(message, body, message.headers['mcp-session-id'], ctx)
  return {
    async answer(message, ctx) {
      const rejection = rejectionOf(message)
      if (rejection) return rejection
      const body = bodyOf(message)
      if (deeper(body, DEEPEST)) return tooDeep(DEEPEST, idOf(body))
      if (message.method === 'POST' && body !== undefined && !isRpc(body)) return notRpc()
      if (isStateless(message, body)) return modern.answer(message, body, ctx)
      const found = workers.elsewhere(message.headers['mcp-session-id'], ctx)
      const worker = found instanceof Promise ? await found : found
      if (worker === undefined) return here(message, body, ctx)
      return (await workers.ask(worker, { path, message }, ctx)) ?? sessionUnknown()
    },
    answerHere: (message, ctx) => here(message, bodyOf(message), ctx),
  }
}

const JSON_TYPE = /^application\/json\s*(?:;|$)/i

function rejectionOf({ method, headers }: HttpMessage): HttpAnswer | undefined {
  if (method !== 'POST') return undefined
  const coding = headers['content-encoding'] ?? 'identity'
  const isJson = JSON_TYPE.test(headers['content-type'] ?? '') && coding.toLowerCase() === 'identity'
  return isJson ? undefined : notJson()
}

/** Parses the body. Returns `undefined` if it is not valid JSON. */
function bodyOf({ method, text }: HttpMessage): unknown {
  if (method !== 'POST') return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const isRpc = (body: unknown) => Array.isArray(body) || (isTree(body) && body.jsonrpc === '2.0')

/** Whether a request belongs to the stateless era, by its header or its `_meta`. The handler of that era reports its errors. */
function isStateless({ method, headers }: HttpMessage, body: unknown): boolean {
  if (method !== 'POST' || body === undefined) return false
  if (Array.isArray(body)) return body.some(hasEnvelope)
  return isModern(headers['mcp-protocol-version'] ?? '') || hasEnvelope(body)
}

const hasEnvelope = (message: unknown) =>
  isTree(message) && isTree(message.params) && isTree(message.params._meta) && META.version in message.params._meta
