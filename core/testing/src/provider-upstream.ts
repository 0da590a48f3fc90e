import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'

/** A request that a fake upstream has received. */
export interface Received {
  readonly method: string
  /** Path and query. */
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** The body, if it is JSON. */
  readonly body: unknown
}

/** Answers one request of a fake upstream, correctly or with any kind of error. */
export interface Reply {
  /** Aborts when the client has left. */
  readonly gone: AbortSignal
  json(status: number, body: unknown, headers?: Readonly<Record<string, string>>): void
  /** Sends any body: a page, half of a JSON. */
  raw(status: number, type: string, body: string, headers?: Readonly<Record<string, string>>): void
  redirect(status: number, location: string): void
  /** Starts a stream, so that a client sees the start of the answer: of lines if the request accepts `application/x-ndjson`, else of events. */
  begin(headers?: Readonly<Record<string, string>>): void
  /** Writes a piece of the stream, starting it if necessary, and waits while the client does not read. */
  write(text: string | Uint8Array): Promise<void>
  /** Writes a piece in chunks of `size` bytes, which splits characters and line ends. */
  split(text: string, size?: number): Promise<void>
  /** Writes pieces until the client leaves. */
  endless(piece: (at: number) => string): Promise<void>
  /** Ends the stream correctly. */
  end(text?: string): void
  /** Breaks the connection. */
  cut(): void
  /** Waits without sending anything until the client leaves. */
  silence(): Promise<void>
}

export type Answerer = (received: Received, reply: Reply) => unknown

/** A configurable server on loopback. */
export interface FakeUpstream extends AsyncDisposable {
  /** Without a slash at its end. */
  readonly url: string
  /** All received requests in order. */
  readonly received: readonly Received[]
  /** Number of requests that it is serving now. */
  open(): number
  /** Number of open connections, including idle ones. */
  sockets(): number
  /** Total number of connections. */
  connected(): number
  /** Changes the answers from now on. */
  answer(by: Answerer): void
  close(): Promise<void>
}

/** Opens a fake upstream: `await using upstream = await openUpstream((request, reply) => reply.json(200, {}))`. */
export async function openUpstream(by: Answerer): Promise<FakeUpstream> {
  let answerer = by
  const received: Received[] = []
  const sockets = new Set<Socket>()
  let [open, connected] = [0, 0]
  const server = createServer((request, response) => {
    open++
    response.once('close', () => open--)
    void serve(request, response, received, (item, reply) => answerer(item, reply))
  })
  server.on('connection', socket => {
    connected++
    sockets.add(socket.setNoDelay(true))
    socket.once('close', () => sockets.delete(socket))
  })
  // The samples of a plugin open one server for all cases and do not close it, so it must not keep the process alive.
  server.listen(0, '127.0.0.1').unref()
  await once(server, 'listening')
  const close = async () => {
    if (!server.listening) return
    const closed = once(server, 'close')
    server.close()
    server.closeAllConnections()
    await closed
  }
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    open: () => open,
    sockets: () => sockets.size,
    connected: () => connected,
    answer: next => void (answerer = next),
    close,
    [Symbol.asyncDispose]: close,
  }
}

async function serve(request: IncomingMessage, response: ServerResponse, received: Received[], answerer: Answerer) {
  const reply = createReply(response, request.headers.accept)
  try {
    const text = Buffer.concat(await request.toArray()).toString('utf8')
    const { method = '', url: path = '', headers } = request
    const found = { method, path, headers, text, body: parsed(text) }
    received.push(found)
    await answerer(found, reply)
  } catch (error) {
    if (reply.gone.aborted) return
    // An error of the test shows as an answer that no upstream gives.
    if (response.headersSent) response.destroy()
    else reply.raw(599, 'text/plain', `the fake upstream failed: ${String(error)}`)
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const EVENTS = 'text/event-stream; charset=utf-8'
const LINES = 'application/x-ndjson'

function createReply(response: ServerResponse, accept = ''): Reply {
  const type = accept.includes(LINES) ? LINES : EVENTS
  const gone = new AbortController()
  const writing = new Set<() => void>()
  response.once('close', () => {
    gone.abort()
    for (const release of writing) release()
  })
  const raw: Reply['raw'] = (status, type, body, headers = {}) =>
    void response.writeHead(status, { ...headers, 'content-type': type }).end(body)
  const begin: Reply['begin'] = (headers = {}) => {
    if (response.headersSent) return
    response.writeHead(200, { 'content-type': type, 'cache-control': 'no-cache', ...headers })
    response.flushHeaders()
  }
  // Waits until the piece is sent, so that a following cut cannot overtake it.
  const write: Reply['write'] = async piece => {
    begin()
    if (gone.signal.aborted) return
    const { promise, resolve } = Promise.withResolvers<void>()
    writing.add(resolve)
    response.write(piece, () => resolve())
    await promise
    writing.delete(resolve)
  }
  return {
    gone: gone.signal,
    raw,
    json: (status, body, headers) => raw(status, 'application/json', JSON.stringify(body), headers),
    redirect: (status, location) => raw(status, 'text/plain', '', { location }),
    begin,
    write,
    async split(text, size = 1) {
      const bytes = Buffer.from(text)
      for (let at = 0; at < bytes.length; at += size) await write(bytes.subarray(at, at + size))
    },
    async endless(piece) {
      for (let at = 0; !gone.signal.aborted; at++) {
        await write(piece(at))
        await setImmediate()
      }
    },
    end(text = '') {
      begin()
      response.end(text)
    },
    cut: () => void response.destroy(),
    async silence() {
      if (!gone.signal.aborted) await once(gone.signal, 'abort')
    },
  }
}
