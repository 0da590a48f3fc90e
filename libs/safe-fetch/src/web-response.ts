import type { UnderlyingSource } from 'node:stream/web'
import { bodyTooLarge } from './errors.ts'
import type { GuardedFetch, GuardedResponse } from './guarded-fetch.ts'

export interface WebResponseOptions {
  /** Maximum bytes of the body; of each event, if it is an event stream. */
  readonly bodyBytes: number
  /** Called with the error of the body, also while nothing reads it. */
  readonly failed?: (error: unknown) => void
}

/** The `fetch` of the web over a guarded fetch. Takes text, form fields and bytes as the body. */
export const webFetch =
  (guarded: GuardedFetch, options: WebResponseOptions) =>
  async (url: URL, { method, headers, body, signal }: RequestInit = {}): Promise<Response> => {
    const sent = new Headers(headers)
    // a compressed stream of events would arrive late
    sent.set('accept-encoding', 'identity')
    const content = body instanceof Uint8Array ? body : String(body as string | URLSearchParams)
    const response = await guarded.fetch(
      url.href,
      { signal: signal ?? new AbortController().signal },
      {
        ...(method !== undefined && { method }),
        headers: Object.fromEntries(sent),
        ...(body !== undefined && body !== null && { body: content }),
      }
    )
    return webResponse(response, options)
  }

const WITHOUT_BODY = new Set([101, 204, 205, 304])

/** Converts a response to the `Response` of the web. It reads the body as the reader does. The body throws BODY_TOO_LARGE. */
export function webResponse(response: GuardedResponse, { bodyBytes, failed }: WebResponseOptions): Response {
  const { status, headers, url } = response
  if (WITHOUT_BODY.has(status)) {
    response.discard()
    return new Response(null, { status, headers })
  }
  const isStream = (headers['content-type'] ?? '').startsWith('text/event-stream')
  const size = isStream ? sizeOfEvent() : sizeOfBody()
  const chunks = response.body[Symbol.asyncIterator]()
  const read = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
    const { value, done } = await chunks.next()
    if (done === true) return controller.close()
    if (size(value) > bodyBytes) throw bodyTooLarge(new URL(url), bodyBytes, false)
    controller.enqueue(value)
  }
  const source: UnderlyingSource<Uint8Array> = {
    pull: controller =>
      read(controller).catch((error: unknown) => {
        response.discard()
        failed?.(error)
        throw error
      }),
    // a generator that has not started cannot be ended through its iterator
    cancel: () => response.discard(),
  }
  return new Response(new ReadableStream(source, { highWaterMark: 0 }), { status, headers })
}

function sizeOfBody(): (chunk: Uint8Array) => number {
  let size = 0
  return chunk => (size += chunk.length)
}

/** An event ends with an empty line: a parser would keep an endless event in memory. */
function sizeOfEvent(): (chunk: Uint8Array) => number {
  let [size, before] = [0, '']
  return chunk => {
    const text = before + Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length).toString('latin1')
    const end = Math.max(text.lastIndexOf('\n\n'), text.lastIndexOf('\n\r\n'), text.lastIndexOf('\r\r'))
    size = end < 0 ? size + chunk.length : text.length - end
    before = text.slice(-2)
    return size
  }
}
