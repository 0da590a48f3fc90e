import { isUtf8 } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type CallContext, createStepBatcher, isTree, type StepBatcher } from '@svc/core'
import type { Mount, MountWriter, RouteReply } from '@svc/core/contracts'
import { retryField } from '@svc/provider-http/sse'
import type { Endpoint } from './endpoint.ts'
import { bodyTooLarge, type HttpAnswer, type HttpMessage, idOf, pathUnknown, unreadable } from './messages.ts'
import type { ServerInfo } from './published.ts'
import { isEvents } from './sdk.ts'

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

export function createOpenStreams(info: ServerInfo): OpenStreams {
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

const isOpening = ({ method, headers }: HttpMessage, one: (typeof OPEN_ENDED)[number]) =>
  method === one.method && (headers[one.header] ?? '').includes(one.holds)

/** Returns the result that ends a subscription. */
function subscriptionEnd({ text }: HttpMessage, info: ServerInfo) {
  const body: unknown = JSON.parse(text)
  const id = isTree(body) ? idOf(body) : null
  const meta = { 'io.modelcontextprotocol/subscriptionId': id, 'io.modelcontextprotocol/serverInfo': info }
  return { jsonrpc: '2.0', id, result: { resultType: 'complete', _meta: meta } }
}
