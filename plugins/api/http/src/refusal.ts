import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type Log, redactText } from '@svc/core'
import type { PublicError } from '@svc/core/contracts'
import { peerOf } from './listener.ts'
import { JSON_TYPE } from './answer.ts'
import type { Context, Middleware, RequestState } from './context.ts'
import type { ErrorFormatting, Formatted, FormatTarget } from './error-formats.ts'
import { type ErrorAnswer, explainThrown } from './errors.ts'
import { type RequestJournal, originForm } from './journal.ts'
import { createLogThrottle } from './log-throttle.ts'

/** Reports failures: to the client as the error record, to the log with the internal error. */
export interface Refusal {
  /** Turns errors of later middleware into the error record. It handles every error, because Koa's own handler would remove all headers. */
  readonly middleware: Middleware
  /** Returns the error record of an error inside a stream, and logs an internal error. */
  toReply(error: PublicError, answer: ErrorAnswer, requestId: string): Pick<ErrorAnswer, 'status' | 'record'>
}

/** Logs failures: internal errors with their stack, failures of the server as warnings. */
function createFailureLog(log: Log) {
  const due = createLogThrottle()
  const unavailable = (state: RequestState, err: unknown, code: string) => {
    const left_out = due(code)
    if (left_out !== undefined) log.warn({ err, request_id: state.requestId, error_code: code, left_out }, 'refused a request')
  }
  /** An upstream failure is one warning. Its cause is outside of this process, so the stack is only in the log level debug. */
  const upstreamFailed = ({ record }: Pick<ErrorAnswer, 'record'>, requestId: string) => {
    const { error_code, error, details } = record
    const { provider, server } = details
    const left_out = due(`${error_code} ${String(provider ?? server)}`)
    if (left_out === undefined) return
    const source = { ...(provider === undefined ? {} : { provider }), ...(server === undefined ? {} : { server }) }
    log.warn({ ...source, reason: error.slice(0, REASON), request_id: requestId, error_code, left_out }, 'an upstream failed')
  }
  return {
    upstreamFailed,
    /** The server has ended the request. The error that its handler then threw is only in the log level debug. */
    cutOff(state: RequestState, err: unknown, { record: { error_code, error: reason } }: ErrorAnswer) {
      const facts = { request_id: state.requestId, ...sourceOf(state) }
      log.warn({ ...facts, error_code, reason }, 'ended a running request')
      log.debug({ ...facts, err }, 'the request failed after its end')
    },
    failed(state: RequestState, err: unknown, answer: ErrorAnswer) {
      if (isUpstreamFailure(answer)) upstreamFailed(answer, state.requestId)
      if (answer.internal) log.error({ err, request_id: state.requestId, ...sourceOf(state) }, failureOf(state))
      else if (isOurFailure(answer) && !isUpstreamFailure(answer)) unavailable(state, err, answer.record.error_code)
      else log.debug({ err, request_id: state.requestId }, 'refused a request')
    },
  }
}

export function createRefusal(log: Log, formatting: ErrorFormatting): Refusal {
  const notes = createFailureLog(log)
  const send = (ctx: Context, answer: ErrorAnswer, formatted: Formatted | undefined) => {
    try {
      sendError(ctx, answer, formatted)
    } catch (err) {
      // a plugin set an invalid header: only this answer fails, not the worker
      log.error({ err, request_id: ctx.state.requestId }, 'failed to send an answer')
      ctx.respond = false
      ctx.res.destroy()
    }
  }
  const refuse = async (ctx: Context, error: unknown): Promise<void> => {
    const { state } = ctx
    if (state.gone)
      return log.debug({ err: error, request_id: state.requestId }, 'the request failed after the client had disconnected')
    const thrown = explainThrown(error, state.requestId)
    const { aborted, reason } = state.ending.signal
    // Whatever a handler throws after an abort, such as an AbortError, the reason of the abort is the cause.
    const isCutOff = thrown.internal && aborted
    const answer = isCutOff ? explainThrown(reason, state.requestId) : thrown
    state.refused = answer.record.error_code
    if (isCutOff) notes.cutOff(state, error, answer)
    else notes.failed(state, error, answer)
    if (!ctx.headerSent) return send(ctx, answer, await formatting.format(targetOf(ctx), answer))
    const event = state.endStream && (await formatting.format(targetOf(ctx), answer))?.event
    if (event !== undefined && state.endStream?.(event)) return
    setImmediate(() => ctx.res.destroy()) // sends the text written so far, then closes the connection, so that the answer does not look complete
  }
  return {
    async middleware(ctx, next) {
      try {
        await next()
      } catch (error) {
        await refuse(ctx, error)
      }
    },
    toReply(error, { status, record, internal }, requestId) {
      if (internal) log.error({ failed: error, request_id: requestId }, 'a stream failed')
      else if (isUpstreamFailure({ record })) notes.upstreamFailed({ record }, requestId)
      return { status, record }
    },
  }
}

const targetOf = ({ method, path, req, state: { requestId, route, mount } }: Context): FormatTarget => ({
  method,
  path,
  headers: req.headers,
  requestId,
  route,
  mount,
})

/** Sends the error record, or what a format made of it. */
function sendError(ctx: Context, { status, record, retryAfter }: ErrorAnswer, formatted: Formatted | undefined): void {
  const body = redactText(formatted?.body ?? JSON.stringify(record))
  if (retryAfter !== undefined) ctx.set('Retry-After', String(retryAfter))
  if (formatted) ctx.set(formatted.headers)
  ctx.set('Content-Type', JSON_TYPE)
  ctx.respond = true // a mount that failed before it wrote has set it to false
  ctx.status = status
  ctx.body = body
}

/** Whether the failure is on the server's side. An unknown provider name is the caller's error, although its status is 503. */
const isOurFailure = ({ status, record }: ErrorAnswer) => status === 503 && record.error_code !== 'PROVIDER_NOT_FOUND'

/** Longest reason in a warning. */
const REASON = 500

/** Whether a model server or a tool server failed. */
const isUpstreamFailure = ({ record }: Pick<ErrorAnswer, 'record'>) => record.error_code === 'PROVIDER_ERROR'

/** Log fields for the plugin and the route of a request. */
const sourceOf = ({ route, mount }: RequestState) =>
  route ? { owner: route.plugin, route: route.route.path, name: route.name } : { route: mount?.path }

/** Names the plugin of the route: the line itself is one of this plugin. */
const failureOf = ({ route }: RequestState) =>
  route?.plugin === undefined
    ? 'a request failed'
    : `the route ${route.route.method} ${route.route.path} of ${route.plugin} failed`

const REASONS: Readonly<Record<number, string>> = { 400: 'Bad Request', 405: 'Method Not Allowed', 413: 'Content Too Large' }

interface MalformedOptions {
  readonly journal: Pick<RequestJournal, 'malformed'>
  readonly formatting: ErrorFormatting
  /** Headers of every answer. */
  readonly common: Readonly<Record<string, string>>
}

/** Answers a malformed request or a CONNECT on its raw socket, because there is no response object, or Node no longer reads its request. */
export function createMalformed({ journal, formatting, common }: MalformedOptions) {
  const write = (socket: Socket, { status, record }: ErrorAnswer, requestId: string, formatted?: Formatted) => {
    const body = redactText(formatted?.body ?? JSON.stringify(record))
    const head = [
      `HTTP/1.1 ${status} ${REASONS[status]}`,
      'Connection: close',
      ...Object.entries({ ...common, ...formatted?.headers }).map(([name, value]) => `${name}: ${value}`),
      `X-Request-Id: ${requestId}`,
      `Content-Type: ${JSON_TYPE}`,
      `Content-Length: ${Buffer.byteLength(body)}`,
    ]
    socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy())
  }
  return async (answer: ErrorAnswer, socket: Socket): Promise<void> => {
    const { status, record } = answer
    const requestId = crypto.randomUUID()
    journal.malformed({ status, code: record.error_code, requestId, address: peerOf({ socket }), counted: isAnswering(socket) })
    const response = responseOn(socket)
    if (!response || response.headersSent) return write(socket, answer, requestId)
    // the headers of the request were valid, but its body is not, or came too slowly
    const formatted = await formatting.format(brokenTarget(response.req, requestId), answer)
    if (response.headersSent || !socket.writable) socket.destroy()
    else write(socket, answer, requestId, formatted)
  }
}

const brokenTarget = ({ method = '', url = '', headers }: IncomingMessage, requestId: string): FormatTarget => ({
  method,
  path: originForm(url).split('?', 1)[0]!,
  headers,
  requestId,
  route: undefined,
  mount: undefined,
})

const responseOn = (socket: Socket) => (socket as { _httpMessage?: ServerResponse | null })._httpMessage ?? undefined
/** Whether a request on this connection has no whole answer yet. */
export const isAnswering = (socket: Socket) => responseOn(socket)?.writableFinished === false

/** Answers after which the connection closes. */
const last = new WeakSet<ServerResponse>()

/** Whether an earlier complete request on this connection still waits for its answer. That answer is sent first, then the connection closes. */
export function answersFirst(socket: Socket): boolean {
  const response = responseOn(socket)
  if (!response?.req.complete || response.writableFinished) return false
  if (last.has(response)) return true
  last.add(response)
  response.shouldKeepAlive = false
  response.once('close', () => socket.destroySoon())
  return true
}
