import type { Socket } from 'node:net'
import type { Log } from '@svc/core'
import type { ErrorTold } from '@svc/core/contracts'
import { sendError } from './answer.ts'
import { type Answer, explainMalformed, explainThrown } from './errors.ts'
import type { Exchange } from './exchange.ts'

/** How what failed is told: to the caller in the API's terms, to the log in ours. */
export interface Refusal {
  (x: Exchange, error: unknown): void
  /** The same for an error that goes out as part of an answer. */
  told(error: ErrorTold, answer: Answer, requestId: string): Pick<Answer, 'status' | 'record'>
}

export function createRefusal(log: Log): Refusal {
  const refuse = (x: Exchange, error: unknown) => {
    if (x.gone) return log.debug({ err: error, request_id: x.requestId }, 'ended after the client had left')
    const answer = explainThrown(error, x.requestId)
    if (answer.internal) log.error({ err: error, request_id: x.requestId, route: x.route?.route.path }, 'a request failed')
    else log.debug({ err: error, request_id: x.requestId }, 'a request was refused')
    if (!x.res.headersSent) return sendError(x, answer)
    x.refused = answer.record.error_code
    setImmediate(() => x.res.destroy()) // half an answer must not look like a whole one; what was written goes out
  }
  const told: Refusal['told'] = (error, { status, record, internal }, requestId) => {
    if (internal) log.error({ failed: error, request_id: requestId }, 'a stream failed')
    return { status, record }
  }
  return Object.assign(refuse, { told })
}

const REASONS: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  408: 'Request Timeout',
  431: 'Request Header Fields Too Large',
}

/** Answers what Node's parser refused: there is no request yet, only a socket. */
export function writeMalformed(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET' || answersNow(socket)) return void socket.destroy()
  const { status, record } = explainMalformed(error.code)
  const body = JSON.stringify(record)
  const head = [
    `HTTP/1.1 ${status} ${REASONS[status]}`,
    'Connection: close',
    `X-Request-Id: ${crypto.randomUUID()}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy())
}

/** Whether the answer to an earlier request is on its way: a second one in its midst would be taken for part of it. */
function answersNow(socket: Socket): boolean {
  const { _httpMessage } = socket as { _httpMessage?: { headersSent?: boolean } | null }
  return _httpMessage?.headersSent === true
}
