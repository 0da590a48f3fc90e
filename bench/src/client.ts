import { once } from 'node:events'
import { createConnection, type Socket } from 'node:net'

/** The end of one response, as seen by its connection. */
export interface Answered {
  readonly status: number
  readonly bytes: number
  /** The body, if it was kept. */
  readonly body: string
  /** Time at which the expected text arrived, by `performance.now()`; NaN if there is none. */
  readonly markedAt: number
}

/**
 * One keep-alive connection that sends requests and waits for responses. Raw, because it must cost less than the measured
 * server.
 */
export interface Connection {
  /** `mark`: a text of the body whose arrival is recorded. */
  ask(request: Buffer, keep: boolean, mark?: string): Promise<Answered>
  close(): void
}

const HEAD_END = Buffer.from('\r\n\r\n')
const LAST_CHUNK = '0\r\n\r\n'

/** Opens a connection. Rejects when no server listens. */
export function connect(port: number): Promise<Connection> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ port, host: '127.0.0.1', noDelay: true })
    socket.once('error', reject).once('connect', () => {
      socket.off('error', reject)
      resolve(connectionOver(socket))
    })
  })
}

/** Sends a request and leaves at the first data of the response. */
export async function leaveEarly(port: number, request: Buffer): Promise<void> {
  const socket = createConnection({ port, host: '127.0.0.1', noDelay: true })
  socket.write(request)
  const [chunk] = (await once(socket, 'data')) as [Buffer]
  if (!chunk.toString('latin1', 0, 12).endsWith('200')) throw new Error(`no stream: ${chunk.toString('latin1', 0, 500)}`)
  socket.destroy()
}

function connectionOver(socket: Socket): Connection {
  let waiting: PromiseWithResolvers<Answered> | undefined
  let answer = newAnswer(false)
  const fail = (error: Error) => waiting?.reject(error)
  socket.on('error', fail).on('close', () => fail(new Error('the connection was closed')))
  socket.on('data', (chunk: Buffer) => {
    if (answer.take(chunk)) waiting?.resolve(answer.done())
  })
  return {
    ask(request, keep, mark) {
      waiting = Promise.withResolvers()
      answer = newAnswer(keep, mark)
      socket.write(request)
      return waiting.promise
    },
    close: () => void socket.destroy(),
  }
}

/** Finds the end of a response by its length, else by its last chunk. */
function newAnswer(keep: boolean, mark?: string) {
  let begin = ''
  let markedAt = Number.NaN
  let head = ''
  let body = ''
  let bytes = 0
  let length = -1
  let tail = ''
  const look = (chunk: Buffer, text: string) => {
    begin += chunk.toString('latin1')
    if (begin.includes(text)) markedAt = performance.now()
  }
  const takeBody = (chunk: Buffer): boolean => {
    bytes += chunk.length
    if (keep) body += chunk.toString('latin1')
    if (mark !== undefined && Number.isNaN(markedAt)) look(chunk, mark)
    if (length >= 0) return bytes >= length
    tail = (tail + chunk.toString('latin1', Math.max(0, chunk.length - LAST_CHUNK.length))).slice(-LAST_CHUNK.length)
    return tail === LAST_CHUNK
  }
  return {
    take(chunk: Buffer): boolean {
      if (head !== '') return takeBody(chunk)
      const at = chunk.indexOf(HEAD_END)
      if (at === -1) throw new Error('the head of the answer did not come in one piece')
      head = chunk.toString('latin1', 0, at)
      const mark = head.search(/content-length:/i)
      if (mark !== -1) length = Number.parseInt(head.slice(mark + 15), 10)
      return length === 0 || (chunk.length > at + 4 ? takeBody(chunk.subarray(at + 4)) : false)
    },
    done: (): Answered => ({ status: Number(head.slice(9, 12)), bytes, body, markedAt }),
  }
}

/** Additional request headers. */
export type Headers = Readonly<Record<string, string>>

/** The bytes of a request. */
export function requestFor(method: 'GET' | 'POST', path: string, body?: object, headers: Headers = {}): Buffer {
  const text = body === undefined ? '' : JSON.stringify(body)
  const type = body === undefined ? '' : `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\n`
  const more = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(`${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${more.join('')}${type}\r\n${text}`)
}
