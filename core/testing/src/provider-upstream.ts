import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'

/** A request as a fake upstream has received it. */
export interface Received {
  readonly method: string
  /** Path and query. */
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** The body, where it is JSON. */
  readonly body: unknown
}

/** How a fake upstream answers one request: well, or with every fault there is. */
export interface Reply {
  /** Aborts when the client has left. */
  readonly gone: AbortSignal
  json(status: number, body: unknown, headers?: Readonly<Record<string, string>>): void
  /** Any body as it is: a page, half a JSON. */
  raw(status: number, type: string, body: string, headers?: Readonly<Record<string, string>>): void
  redirect(status: number, location: string): void
  /** Begins a stream of events, so that a client sees the answer begin. */
  begin(headers?: Readonly<Record<string, string>>): void
  /** Writes a piece of the stream (begins it, if need be), and waits while the client takes no more. */
  write(text: string | Uint8Array): Promise<void>
  /** Writes a piece in portions of `size` bytes, each a chunk of its own: characters and line ends are cut. */
  split(text: string, size?: number): Promise<void>
  /** Writes pieces until the client leaves. */
  endless(piece: (at: number) => string): Promise<void>
  /** Ends the stream as it should. */
  end(text?: string): void
  /** Breaks the connection in the middle. */
  cut(): void
  /** Waits until the client leaves: says nothing. */
  silence(): Promise<void>
}

export type Answerer = (received: Received, reply: Reply) => unknown

/** A server on loopback that answers as it is told. */
export interface FakeUpstream extends AsyncDisposable {
  /** Without a slash at its end. */
  readonly url: string
  /** All it has received, in order. */
  readonly received: readonly Received[]
  /** Requests that it is serving now. */
  open(): number
  /** Connections that are open now, the idle ones included. */
  sockets(): number
  /** Connections there have ever been. */
  connected(): number
  /** Answers otherwise from now on. */
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
    void serve(request, response, received, (one, reply) => answerer(one, reply))
  })
  server.on('connection', socket => {
    connected++
    sockets.add(socket.setNoDelay(true))
    socket.once('close', () => sockets.delete(socket))
  })
  // samples of a plugin open one for all its cases, and nobody closes it: waiting for requests holds up no process
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
  const reply = createReply(response)
  try {
    const text = Buffer.concat(await request.toArray()).toString('utf8')
    const { method = '', url: path = '', headers } = request
    const one = { method, path, headers, text, body: parsed(text) }
    received.push(one)
    await answerer(one, reply)
  } catch (error) {
    if (reply.gone.aborted) return
    // A test sees its own fault as an answer that no upstream gives.
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

const EVENTS = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' }

function createReply(response: ServerResponse): Reply {
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
    response.writeHead(200, { ...EVENTS, ...headers })
    response.flushHeaders()
  }
  // Waits until the piece is on its way: a cut that follows cannot overtake it.
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
