import { isUtf8 } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Use } from '@svc/core'
import type { Mount } from '@svc/core/contracts'
import type { Endpoint } from './endpoint.ts'
import { bodyTooLarge, pathUnknown, unreadable } from './faults.ts'
import type { HttpAnswer, HttpMessage } from './message.ts'
import { ENDLESS, type Streams } from './streams.ts'
import { isEvents } from './web.ts'

/** Bytes of a body. */
const BODY_BYTES = 4 * 1_048_576
/** A reader that takes nothing for so long is cut off. */
const STALL_MS = 60_000

/** The protocol at one path. */
export function createMcpMount(path: string, endpoint: Pick<Endpoint, 'answer'>, streams: Streams): Mount {
  return {
    path,
    scope: 'tools',
    streams: ENDLESS,
    async handle(request, response, use) {
      const read = pathOf(request) === path ? await messageOf(request) : pathUnknown()
      if ('status' in read) return send(response, read, use)
      const farewell = streams.farewell(read)
      if (farewell === undefined) return send(response, await endpoint.answer(read, use), use)
      const signal = AbortSignal.any([use.signal, streams.signal])
      const answer = await endpoint.answer(read, { ...use, signal })
      const { body } = answer
      if (typeof body === 'string' || !isEvents(answer.headers)) return send(response, answer, use)
      await send(response, { ...answer, body: withFarewell(body, farewell) }, use)
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

async function messageOf(request: IncomingMessage): Promise<HttpMessage | HttpAnswer> {
  const { method = 'GET', headers } = request
  const message = { method, headers: headers as HttpMessage['headers'] }
  if (method !== 'POST') return { ...message, text: '' }
  const bytes = Number(headers['content-length'] ?? 0) > BODY_BYTES ? undefined : await readBytes(request)
  if (!bytes) return bodyTooLarge(BODY_BYTES)
  return isUtf8(bytes) ? { ...message, text: bytes.toString() } : unreadable('the body is not valid UTF-8')
}

/** The body; `undefined` as soon as it is too large. */
function readBytes(request: IncomingMessage): Promise<Buffer | undefined> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size <= BODY_BYTES) chunks.push(chunk)
      else resolve(undefined)
    })
    request.on('end', () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)))
    request.on('error', reject)
  })
}

async function send(response: ServerResponse, { status, headers, body }: HttpAnswer, { signal }: Use): Promise<void> {
  if (signal.aborted) return void response.destroy()
  if (typeof body === 'string') {
    response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) }).end(body)
    if (response.writableLength > 0) response.setTimeout(STALL_MS, () => response.destroy())
    return
  }
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
