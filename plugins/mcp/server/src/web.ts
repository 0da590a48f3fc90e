// Between our messages and the web's, which the SDK speaks.
import type { HttpAnswer, HttpMessage } from './message.ts'

/** Nobody calls it: the SDK wants a whole address. */
const ADDRESS = 'http://localhost/mcp'

/** A request for the SDK; the body goes beside it, parsed. The signal's abort is the client's leaving. */
export function webRequest({ method, headers }: HttpMessage, signal?: AbortSignal): Request {
  const given = Object.entries(headers).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, value]]
  )
  return new Request(ADDRESS, { method, headers: given, ...(signal && { signal }) })
}

const EVENTS = 'text/event-stream'

/** The SDK's answer as ours: events come bit by bit until the signal, all else in one piece. */
export async function answerOf(response: Response, signal: AbortSignal): Promise<HttpAnswer> {
  const { status } = response
  // the connection is not the SDK's to keep
  const headers = Object.fromEntries([...response.headers].filter(([name]) => name !== 'connection' && name !== 'content-length'))
  const { body } = response
  if (body === null || !isEvents(headers)) return { status, headers, body: await response.text() }
  return { status, headers, body: textsOf(body, signal) }
}

export const isEvents = (headers: HttpAnswer['headers']) => headers['content-type']?.startsWith(EVENTS) === true

async function* textsOf(body: ReadableStream<Uint8Array>, signal: AbortSignal): AsyncGenerator<string> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  const leave = () => void reader.cancel().catch(() => {})
  if (signal.aborted) leave()
  signal.addEventListener('abort', leave, { once: true })
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield decoder.decode(value, { stream: true })
    }
  } finally {
    signal.removeEventListener('abort', leave)
    leave()
  }
}
