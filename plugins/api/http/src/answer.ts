import type { ServerResponse } from 'node:http'
import { type Log, show } from '@svc/core'
import type { Mount, RouteReply, RouteRequest } from '@svc/core/contracts'
import type { Bound, Context, Life, Middleware } from './context.ts'
import { answerInvalid } from './errors.ts'
import { createRouteReplies } from './route-replies.ts'
import { type StreamLimits, sendStream } from './stream.ts'

export const JSON_TYPE = 'application/json; charset=utf-8'
const TEXT_TYPE = 'text/plain; charset=utf-8'
/** A larger text does not fit into a socket's buffer, and neither do many answers in a row: their reader may be one that takes nothing. */
const LARGE = 65_536

interface AnswerParts {
  readonly life: Life
  readonly limits: StreamLimits
  /** Headers of every answer. */
  readonly common: Readonly<Record<string, string>>
  readonly log: Log
}

/** The last middleware: calls the route or mount, and answers with what it says. */
export function createAnswer({ life, limits, common, log }: AnswerParts): Middleware {
  const replies = createRouteReplies(log)
  const send = (ctx: Context, reply: RouteReply) => sendReply(ctx, reply, common, limits.stallMs)

  const answer = async (ctx: Context, bound: Bound) => {
    const { route } = bound
    if (!route.stream)
      return send(ctx, replies.fit(bound, checkedReply(await route.handle!(requestOf(ctx), ctx.state.callContext))))
    if (ctx.method === 'HEAD') return send(ctx, { status: 200, text: '' })
    const { type, headers } = replies.forStream(bound, route.streams ?? TEXT_TYPE)
    ctx.set(headers)
    await sendStream(ctx, route.stream(requestOf(ctx), ctx.state.callContext), type, { ...limits, life })
  }
  /** A mount gets the raw request, its body included, and writes the answer itself or says it. */
  const handOver = async (ctx: Context, mount: Mount) => {
    if (!mount.answer) return mount.handle!(ctx.req, rawResponse(ctx, life), ctx.state.callContext)
    const reply = await mount.answer(ctx.req, ctx.state.callContext)
    if (typeof reply === 'function') return reply(rawResponse(ctx, life))
    send(ctx, replies.fit({ name: mount.path, plugin: undefined, isIsolated: false }, checkedReply(reply)))
  }
  return ctx => (ctx.state.mount ? handOver(ctx, ctx.state.mount) : answer(ctx, ctx.state.route!))
}

/** A request as its route sees it. */
function requestOf(ctx: Context): RouteRequest {
  const { query, bytes } = ctx.state
  const { body } = ctx.request as { body?: RouteRequest['body'] }
  return { params: ctx.params as RouteRequest['params'], query, headers: headersOf(ctx), body, ...(bytes ? { bytes } : {}) }
}

function headersOf({ req }: Context): Readonly<Record<string, string>> {
  const cookies = req.headers['set-cookie']
  // Node joins all repeated headers but this one into text
  return (cookies ? { ...req.headers, 'set-cookie': cookies.join(', ') } : req.headers) as Record<string, string>
}

/** The response for code that writes it without Koa, with the headers of every answer. */
function rawResponse(ctx: Context, life: Life): ServerResponse {
  ctx.respond = false
  ctx.res.statusCode = 200 // Koa begins with 404
  if (life.draining) ctx.set('Connection', 'close')
  return ctx.res
}

/** Gives Koa the answer of a route. */
function sendReply(
  ctx: Context,
  { status, headers, body, text }: RouteReply,
  common: Readonly<Record<string, string>>,
  stallMs: number
): void {
  if (ctx.state.gone || ctx.headerSent) return
  const content = body === undefined ? text : JSON.stringify(body)
  if (headers) setHeaders(ctx, headers, common)
  if (content === undefined) {
    if (body !== undefined) throw answerInvalid('a body that JSON cannot hold')
    ctx.body = null // no content, and no text for the status either
    ctx.status = status ?? 204
    return
  }
  ctx.status = status ?? 200
  if (!headers || !ctx.has('Content-Type')) ctx.set('Content-Type', body === undefined ? TEXT_TYPE : JSON_TYPE)
  ctx.body = content
  const isQueued = ctx.res.socket === null // behind other answers on this connection
  if (content.length > LARGE || isQueued) ctx.req.socket.setTimeout(stallMs)
  if (isQueued) ctx.res.setTimeout(stallMs) // from its turn on, where an answer before it took the limit off
}

/** A route's own header replaces the common one (a page has a policy of its own), but `Vary` adds up. Throws what Node says of a header that it cannot send. */
function setHeaders(ctx: Context, headers: Readonly<Record<string, string>>, common: Readonly<Record<string, string>>): void {
  try {
    for (const [name, value] of Object.entries(headers))
      if (name.toLowerCase() === 'vary') ctx.vary(value)
      else ctx.set(name, value)
  } catch (error) {
    for (const name of Object.keys(headers)) ctx.remove(name)
    ctx.set(common)
    throw error
  }
}

/** Takes what a route answered, whoever wrote the route. Throws ROUTE_ANSWER_INVALID. */
function checkedReply(reply: RouteReply): RouteReply {
  if (typeof reply !== 'object' || reply === null) throw answerInvalid(show(reply))
  const { status = 200, text, body, headers } = reply
  if (!Number.isInteger(status) || status < 200 || status > 599) throw answerInvalid(`the status ${show(status)}`)
  if (text !== undefined && typeof text !== 'string') throw answerInvalid(`${show(text)} as its text`)
  if (typeof body === 'function' || typeof body === 'symbol') throw answerInvalid(`${show(body)} as its body`)
  if (headers !== undefined) checkHeaders(headers)
  return reply
}

function checkHeaders(headers: unknown) {
  if (typeof headers !== 'object' || headers === null) throw answerInvalid(`${show(headers)} as its headers`)
  for (const [name, value] of Object.entries(headers))
    if (typeof value !== 'string') throw answerInvalid(`${show(value)} as its header ${name}`)
}
