import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Log } from '@svc/core'
import type { PublicError } from '@svc/core/contracts'
import { peerOf } from './listener.ts'
import { JSON_TYPE } from './answer.ts'
import type { Context, Middleware, RequestState } from './context.ts'
import { type Answer, explainThrown } from './errors.ts'
import type { Journal } from './journal.ts'
import { createLogThrottle } from './log-throttle.ts'

/** How failures are reported: to the caller in the API's terms, to the log in ours. */
export interface Refusal {
  /** Turns what later middleware throws into the error record. Nothing passes it: Koa's own handler would remove all headers. */
  readonly middleware: Middleware
  /** The same for an error that goes out as part of an answer. */
  toReply(error: PublicError, answer: Answer, requestId: string): Pick<Answer, 'status' | 'record'>
}

export function createRefusal(log: Log): Refusal {
  const due = createLogThrottle()
  const unavailable = (state: RequestState, err: unknown, code: string) => {
    const left_out = due(code)
    if (left_out !== undefined)
      log.warn({ err, request_id: state.requestId, error_code: code, left_out }, 'a request was refused')
  }
  const note = (state: RequestState, err: unknown, answer: Answer) => {
    if (answer.internal) log.error({ err, request_id: state.requestId, ...placeOf(state) }, 'a request failed')
    else if (isTrouble(answer)) unavailable(state, err, answer.record.error_code)
    else log.debug({ err, request_id: state.requestId }, 'a request was refused')
  }
  const send = (ctx: Context, answer: Answer) => {
    try {
      sendError(ctx, answer)
    } catch (err) {
      // a plugin has put into it what no header can carry: that costs the answer, not the worker
      log.error({ err, request_id: ctx.state.requestId }, 'an answer could not be sent')
      ctx.respond = false
      ctx.res.destroy()
    }
  }
  const refuse = (ctx: Context, error: unknown) => {
    const { state } = ctx
    if (state.gone) return log.debug({ err: error, request_id: state.requestId }, 'ended after the client had left')
    const answer = explainThrown(error, state.requestId)
    state.refused = answer.record.error_code
    note(state, error, answer)
    if (!ctx.headerSent) return send(ctx, answer)
    setImmediate(() => ctx.res.destroy()) // half an answer must not look like a whole one; what was written goes out
  }
  return {
    async middleware(ctx, next) {
      try {
        await next()
      } catch (error) {
        refuse(ctx, error)
      }
    },
    toReply(error, { status, record, internal }, requestId) {
      if (internal) log.error({ failed: error, request_id: requestId }, 'a stream failed')
      return { status, record }
    },
  }
}

/** Answers with the error record. */
function sendError(ctx: Context, { status, record, retryAfter }: Answer): void {
  const body = JSON.stringify(record)
  if (retryAfter !== undefined) ctx.set('Retry-After', String(retryAfter))
  ctx.set('Content-Type', JSON_TYPE)
  ctx.respond = true // a mount that failed before it wrote had switched it off
  ctx.status = status
  ctx.body = body
}

/** A caller's slip in a name is none of ours, whatever its status. */
const isTrouble = ({ status, record }: Answer) => status === 503 && record.error_code !== 'PROVIDER_NOT_FOUND'

/** Whose work it was: the plugin that brought the route, and the route. */
const placeOf = ({ route, mount }: RequestState) =>
  route ? { owner: route.plugin, route: route.route.path, name: route.name } : { route: mount?.path }

const REASONS: Readonly<Record<number, string>> = { 400: 'Bad Request', 405: 'Method Not Allowed', 413: 'Content Too Large' }

/** Answers what Node's parser refused, or no request of ours can be: there is only a socket. */
export function createMalformed(journal: Pick<Journal, 'malformed'>, headers: Readonly<Record<string, string>>) {
  const common = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  return (answer: Answer, socket: Socket): void => {
    const { status, record } = answer
    const requestId = crypto.randomUUID()
    journal.malformed({ status, code: record.error_code, requestId, address: peerOf({ socket }), counted: isAnswering(socket) })
    const body = JSON.stringify(record)
    const head = [
      `HTTP/1.1 ${status} ${REASONS[status]}`,
      'Connection: close',
      ...common,
      `X-Request-Id: ${requestId}`,
      `Content-Type: ${JSON_TYPE}`,
      `Content-Length: ${Buffer.byteLength(body)}`,
    ]
    socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy())
  }
}

const responseOn = (socket: Socket) => (socket as { _httpMessage?: ServerResponse | null })._httpMessage ?? undefined
/** Whether a request on this connection has no whole answer yet. */
export const isAnswering = (socket: Socket) => responseOn(socket)?.writableFinished === false

/** Answers after which their connections close. */
const last = new WeakSet<ServerResponse>()

/** A whole request that came before on the same connection and still waits for its answer: that one goes out first, and nothing after it, however often it is asked. */
export function answersFirst(socket: Socket): boolean {
  const response = responseOn(socket)
  if (!response?.req.complete || response.writableFinished) return false
  if (last.has(response)) return true
  last.add(response)
  response.shouldKeepAlive = false
  response.once('close', () => socket.destroySoon())
  return true
}
