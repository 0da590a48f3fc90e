import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Log } from '@svc/core'
import type { ErrorTold } from '@svc/core/contracts'
import { peerOf } from './address.ts'
import { sendError } from './answer.ts'
import { type Answer, explainThrown } from './errors.ts'
import type { Exchange } from './exchange.ts'
import type { Journal } from './journal.ts'
import { createSeldom } from './seldom.ts'

/** How what failed is told: to the caller in the API's terms, to the log in ours. */
export interface Refusal {
  (x: Exchange, error: unknown): void
  /** The same for an error that goes out as part of an answer. */
  told(error: ErrorTold, answer: Answer, requestId: string): Pick<Answer, 'status' | 'record'>
}

export function createRefusal(log: Log): Refusal {
  const due = createSeldom()
  const unavailable = (x: Exchange, err: unknown, code: string) => {
    const left_out = due(code)
    if (left_out !== undefined) log.warn({ err, request_id: x.requestId, error_code: code, left_out }, 'a request was refused')
  }
  const send = (x: Exchange, answer: Answer) => {
    try {
      sendError(x, answer)
    } catch (err) {
      // a plugin has put into it what no header can carry: that costs the answer, not the worker
      log.error({ err, request_id: x.requestId }, 'an answer could not be sent')
      x.res.destroy()
    }
  }
  const refuse = (x: Exchange, error: unknown) => {
    if (x.gone) return log.debug({ err: error, request_id: x.requestId }, 'ended after the client had left')
    const answer = explainThrown(error, x.requestId)
    if (answer.internal) log.error({ err: error, request_id: x.requestId, ...placeOf(x) }, 'a request failed')
    else if (isTrouble(answer)) unavailable(x, error, answer.record.error_code)
    else log.debug({ err: error, request_id: x.requestId }, 'a request was refused')
    if (!x.res.headersSent) return send(x, answer)
    x.refused = answer.record.error_code
    setImmediate(() => x.res.destroy()) // half an answer must not look like a whole one; what was written goes out
  }
  const told: Refusal['told'] = (error, { status, record, internal }, requestId) => {
    if (internal) log.error({ failed: error, request_id: requestId }, 'a stream failed')
    return { status, record }
  }
  return Object.assign(refuse, { told })
}

/** A caller's slip in a name is none of ours, whatever its status. */
const isTrouble = ({ status, record }: Answer) => status === 503 && record.error_code !== 'PROVIDER_NOT_FOUND'

/** Whose work it was: the plugin that brought the route, and the route. */
const placeOf = ({ route, mount }: Exchange) =>
  route ? { owner: route.plugin, route: route.route.path, name: route.name } : { route: mount?.path }

const REASONS: Readonly<Record<number, string>> = { 400: 'Bad Request', 405: 'Method Not Allowed', 413: 'Content Too Large' }

/** Answers what Node's parser refused, or no request of ours can be: there is only a socket. `headers`: name, value, name, value. */
export function createMalformed(journal: Pick<Journal, 'malformed'>, headers: readonly string[]) {
  const common = headers.flatMap((name, at) => (at % 2 === 0 ? [`${name}: ${headers[at + 1]}`] : []))
  return (answer: Answer, socket: Socket): void => {
    const { status, record } = answer
    const requestId = crypto.randomUUID()
    journal.malformed({ status, code: record.error_code, requestId, address: peerOf({ socket }), counted: isUnderWay(socket) })
    const body = JSON.stringify(record)
    const head = [
      `HTTP/1.1 ${status} ${REASONS[status]}`,
      'Connection: close',
      ...common,
      `X-Request-Id: ${requestId}`,
      'Content-Type: application/json; charset=utf-8',
      `Content-Length: ${Buffer.byteLength(body)}`,
    ]
    socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy())
  }
}

const responseOn = (socket: Socket) => (socket as { _httpMessage?: ServerResponse | null })._httpMessage ?? undefined
const isUnderWay = (socket: Socket) => responseOn(socket)?.writableFinished === false

/** A whole request that came before on the same connection and still waits for its answer: that one goes out first, and nothing after it. */
export function answersFirst(socket: Socket): boolean {
  const response = responseOn(socket)
  if (!response?.req.complete || response.writableFinished) return false
  response.shouldKeepAlive = false
  response.once('close', () => socket.destroySoon())
  return true
}
