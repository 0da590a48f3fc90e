import { isUtf8 } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createStepBatcher, type StepBatcher, type CallContext } from '@svc/core'
import type { Mount, MountWriter, RouteReply } from '@svc/core/contracts'
import type { Endpoint } from './endpoint.ts'
import { bodyTooLarge, pathUnknown, unreadable } from './faults.ts'
import type { HttpAnswer, HttpMessage } from './message.ts'
import { ENDLESS, type Streams } from './streams.ts'
import { isEvents } from './web.ts'

/** Bytes of a body. */
const BODY_BYTES = 4 * 1_048_576
/** A reader that takes nothing for so long is cut off. */
const STALL_MS = 60_000

/** An answer that comes bit by bit. */
type Streamed = HttpAnswer & { readonly body: AsyncIterable<string> }

/** The protocol at one path. */
export function createMcpMount(path: string, endpoint: Pick<Endpoint, 'answer'>, streams: Streams): Mount {
  const together = createStepBatcher() // all that follows on a body
  return {
    path,
    scope: 'tools',
    streams: ENDLESS,
    async answer(request, ctx) {
      const read = request.url === path || pathOf(request) === path ? await messageOf(request, together) : pathUnknown()
      if ('status' in read) return replyOf(read, ctx)
      const farewell = streams.farewell(read)
      if (farewell === undefined) return replyOf(await endpoint.answer(read, ctx), ctx)
      const signal = AbortSignal.any([ctx.signal, streams.signal])
      const answer = await endpoint.answer(read, { ...ctx, signal })
      const { body } = answer
      if (typeof body === 'string' || !isEvents(answer.headers)) return replyOf(answer, ctx)
      return replyOf({ ...answer, body: withFarewell(body, farewell) }, ctx)
    },
  }
}

const pathOf = ({ url = '' }: IncomingMessage) =>
  url
    .replace(/^https?:\/\/[^/]*/i, '')
    .split('?', 1)[0]!
    .replace(/\/$/, '')

/** However it ends, the client is told when to come back. */
async function* withFarewell(body: AsyncIterable<string>, farewell: string): AsyncGenerator<string> {
  yield* body
  yield farewell
}

async function messageOf(request: IncomingMessage, together: StepBatcher): Promise<HttpMessage | HttpAnswer> {
  const { method = 'GET', headers } = request
  const message = { method, headers: headers as HttpMessage['headers'] }
  if (method !== 'POST') return { ...message, text: '' }
  const bytes = Number(headers['content-length'] ?? 0) > BODY_BYTES ? undefined : await readBytes(request, together)
  if (!bytes) return bodyTooLarge(BODY_BYTES)
  return isUtf8(bytes) ? { ...message, text: bytes.toString() } : unreadable('the body is not valid UTF-8')
}

/** The body; `undefined` as soon as it is too large. */
function readBytes(request: IncomingMessage, together: StepBatcher): Promise<Buffer | undefined> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size <= BODY_BYTES) chunks.push(chunk)
      else resolve(undefined)
    })
    request.on('end', () => together(() => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))))
    request.on('error', reject)
  })
}

function replyOf({ status, headers, body }: HttpAnswer, ctx: CallContext): RouteReply | MountWriter {
  if (typeof body !== 'string') return response => stream(response, { status, headers, body }, ctx)
  return body === '' ? { status, headers } : { status, headers, text: body }
}

async function stream(response: ServerResponse, { status, headers, body }: Streamed, { signal }: CallContext): Promise<void> {
  if (signal.aborted) return void response.destroy()
  response.writeHead(status, headers)
  response.flushHeaders()
  // what keeps a stream alive comes more often
  response.setTimeout(STALL_MS, () => response.destroy())
  try {
    await pipeline(Readable.from(body), response, { signal })
  } catch (error) {
    // its client has left
    if (!signal.aborted && !response.destroyed) throw error
  }
}
