import type { ServerResponse } from 'node:http'
import { type Log, redactText, show } from '@svc/core'
import { type Mount, ROUTE_HEADERS, type RouteReply, type RouteRequest } from '@svc/core/contracts'
import { HEARTBEAT } from '@svc/provider-http/sse'
import type { Bound, Context, Life, Middleware } from './context.ts'
import { isApiHeader } from './error-formats.ts'
import { answerInvalid } from './errors.ts'
import { hasContent, isBytes, sendStream, type StreamLimits } from './stream.ts'

export const JSON_TYPE = 'application/json; charset=utf-8'
const TEXT_TYPE = 'text/plain; charset=utf-8'
const BYTES_TYPE = 'application/octet-stream'
/** Length above which an answer gets a stall timeout, because it does not fit into the buffer of a socket. */
const LARGE = 65_536

interface AnswerDependencies {
  readonly life: Life
  readonly limits: StreamLimits
  /** Headers of every answer. */
  readonly common: Readonly<Record<string, string>>
  readonly log: Log
}

/** The last middleware: calls the route or mount and sends its answer. */
export function createAnswer({ life, limits, common, log }: AnswerDependencies): Middleware {
  const replies = createRouteReplies(log)
  const send = (ctx: Context, reply: RouteReply) => sendReply(ctx, reply, common, limits.stallMs)

  const answer = async (ctx: Context, bound: Bound) => {
    const { route } = bound
    if (!route.stream)
      return send(ctx, replies.fit(bound, checkedReply(await route.handle!(requestOf(ctx), ctx.state.callContext))))
    if (ctx.method === 'HEAD') return send(ctx, { status: 200, text: '' })
    const start = (head: RouteReply | undefined) => {
      const reply = head && replies.fit(bound, checkedReply(head))
      if (reply && hasContent(reply)) {
        send(ctx, reply)
        return undefined
      }
      const { type, headers } = replies.forStream(bound, typeIn(reply) ?? route.streams ?? TEXT_TYPE)
      if (reply?.headers) setHeaders(ctx, reply.headers, common)
      ctx.set(headers)
      return { status: reply?.status ?? 200, type }
    }
    await sendStream(ctx, route.stream(requestOf(ctx), ctx.state.callContext), start, {
      ...limits,
      life,
      heartbeat: route.heartbeat ?? HEARTBEAT,
    })
  }
  /** Passes the raw request, including its body, to a mount, which writes or returns the answer. */
  const handOver = async (ctx: Context, mount: Mount) => {
    if (!mount.answer) return mount.handle!(ctx.req, rawResponse(ctx, life), ctx.state.callContext)
    const reply = await mount.answer(ctx.req, ctx.state.callContext)
    if (typeof reply === 'function') return reply(rawResponse(ctx, life))
    send(ctx, replies.fit({ name: mount.path, plugin: undefined, isIsolated: false }, checkedReply(reply)))
  }
  return ctx => (ctx.state.mount ? handOver(ctx, ctx.state.mount) : answer(ctx, ctx.state.route!))
}

/** Returns the request in the form that routes get. */
function requestOf(ctx: Context): RouteRequest {
  const { query, body, bytes, route } = ctx.state
  const { accepts, rawBody } = route!.route
  const raw = bytes && { ...(accepts === 'bytes' ? { bytes } : {}), ...(rawBody ? { rawBody: bytes } : {}) }
  return { params: ctx.params as RouteRequest['params'], query, headers: headersOf(ctx), body, ...raw }
}

function headersOf({ req }: Context): Readonly<Record<string, string>> {
  const cookies = req.headers['set-cookie']
  // Node joins all repeated headers into a string, except set-cookie
  return (cookies ? { ...req.headers, 'set-cookie': cookies.join(', ') } : req.headers) as Record<string, string>
}

/** Returns the raw response, with the common headers, for a mount that writes it without Koa. */
function rawResponse(ctx: Context, life: Life): ServerResponse {
  ctx.respond = false
  ctx.res.statusCode = 200 // Koa begins with 404
  if (life.draining) ctx.set('Connection', 'close')
  return ctx.res
}

/** Sets the answer of a route on the Koa context. */
function sendReply(
  ctx: Context,
  { status, headers, body, text, bytes }: RouteReply,
  common: Readonly<Record<string, string>>,
  stallMs: number
): void {
  if (ctx.state.gone || ctx.headerSent) return
  const content = body === undefined ? (redacted(text) ?? bytes) : redacted(JSON.stringify(body))
  if (headers) setHeaders(ctx, headers, common)
  if (content === undefined) {
    if (body !== undefined) throw answerInvalid('a body that cannot be converted to JSON')
    ctx.body = null // also prevents Koa's status text as the body
    ctx.status = status ?? 204
    return
  }
  ctx.status = status ?? 200
  if (!headers || !ctx.has('Content-Type')) ctx.set('Content-Type', body === undefined ? typeOf(content) : JSON_TYPE)
  ctx.body = typeof content === 'string' ? content : bufferOf(content)
  limitStall(ctx, content.length, stallMs)
}

const redacted = (text: string | undefined) => (text === undefined ? undefined : redactText(text))

const typeOf = (content: string | Uint8Array) => (typeof content === 'string' ? TEXT_TYPE : BYTES_TYPE)

/** Koa sends a Buffer. It shares the memory of the bytes. */
const bufferOf = ({ buffer, byteOffset, byteLength }: Uint8Array) => Buffer.from(buffer, byteOffset, byteLength)

/** Limits the time in which a client reads nothing of a large answer, or of one that waits for earlier answers on its connection. */
function limitStall({ req, res }: Context, length: number, stallMs: number): void {
  const isQueued = res.socket === null
  if (length > LARGE || isQueued) req.socket.setTimeout(stallMs)
  if (isQueued) res.setTimeout(stallMs) // an earlier answer can have reset the timeout of the connection
}

/** Sets the headers of a route. They replace common headers, except `Vary`, which is merged. Throws Node's error for an invalid header. */
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

/** Checks the reply of a route. Throws ROUTE_ANSWER_INVALID. */
function checkedReply(reply: RouteReply): RouteReply {
  if (typeof reply !== 'object' || reply === null) throw answerInvalid(show(reply))
  const { status = 200, text, body, bytes, headers } = reply
  if (!Number.isInteger(status) || status < 200 || status > 599) throw answerInvalid(`the status ${show(status)}`)
  if (text !== undefined && typeof text !== 'string') throw answerInvalid(`${show(text)} as its text`)
  if (bytes !== undefined && !isBytes(bytes)) throw answerInvalid(`${show(bytes)} as its bytes`)
  if ([text, body, bytes].filter(content => content !== undefined).length > 1)
    throw answerInvalid('more than one of body, text and bytes')
  if (typeof body === 'function' || typeof body === 'symbol') throw answerInvalid(`${show(body)} as its body`)
  if (headers !== undefined) checkHeaders(headers)
  return reply
}

/** The content type of a reply. Names of headers can be in any case. */
const typeIn = (reply: RouteReply | undefined) =>
  Object.entries(reply?.headers ?? {}).find(([name]) => name.toLowerCase() === 'content-type')?.[1]

function checkHeaders(headers: unknown) {
  if (typeof headers !== 'object' || headers === null) throw answerInvalid(`${show(headers)} as its headers`)
  for (const [name, value] of Object.entries(headers))
    if (typeof value !== 'string') throw answerInvalid(`${show(value)} as its header ${name}`)
}

const OF_THE_SERVER: ReadonlySet<string> = new Set(ROUTE_HEADERS.server)
const OF_ISOLATED: ReadonlySet<string> = new Set(ROUTE_HEADERS.isolated)

/** Types that a browser never executes: JSON, event streams, plain text. */
const DATA = /^(?:application\/(?:[\w.+-]+\+)?json|text\/plain|text\/event-stream)\s*(?:;\s*charset="?utf-8"?\s*)?$/i
/**
 * Policy for all other types: the browser can show the content and its inline styles, but without scripts, forms, other documents or
 * the origin of this server. Styles load nothing: images and fonts are `default-src`.
 */
const SANDBOX = "sandbox; default-src 'none'; style-src 'unsafe-inline'"
const POLICY = 'content-security-policy'
/** Script types, anywhere in a list of types. Pages of this server such as `/docs` run scripts from it, so an isolated plugin must not serve any. */
const SCRIPT = /(?:java|ecma|live|j)script/i
const PLAIN = 'text/plain; charset=utf-8'

/** A path of this server. Browsers ignore tabs and treat a backslash as a slash, so `/\t/evil.example` would lead to another server. */
const OWN_PATH = /^\/(?![/\\])[\x21-\x7e]*$/
/** Statuses that make a client send the same body to another route. */
const RESENDING = [307, 308]

/** Maximum number of warnings; each is logged once. */
const MOST_WARNINGS = 1_000

/** The source of an answer: a route, or a mount named by its path. */
type Source = Pick<Bound, 'name' | 'plugin' | 'isIsolated'>

/** Removes from answers of routes what a route is not allowed to send. */
interface RouteReplies {
  /** Returns the answer without forbidden headers; each removed header is logged once. Throws ROUTE_ANSWER_INVALID. */
  fit(from: Source, reply: RouteReply): RouteReply
  /** Returns the content type of a stream and its additional headers. */
  forStream(bound: Bound, type: string): { readonly type: string; readonly headers: Readonly<Record<string, string>> }
}

function createRouteReplies(log: Pick<Log, 'warn'>): RouteReplies {
  const warned = new Set<string>()
  const warn = ({ name, plugin, isIsolated }: Source, header: string) => {
    const key = `${name} ${header}`
    if (warned.has(key) || warned.size >= MOST_WARNINGS) return
    warned.add(key)
    const why = isIsolated ? 'a route of an isolated plugin cannot set it' : 'only the server sets it'
    log.warn({ of: plugin, route: name, header }, `removed a header from the answer of a route: ${why}`)
  }
  return {
    fit(from, reply) {
      const { isIsolated } = from
      const type = isIsolated && reply.bytes && typeIn(reply) === undefined ? { 'content-type': BYTES_TYPE } : undefined
      if (reply.headers === undefined && !type) return reply
      const given = Object.entries({ ...reply.headers, ...type })
      const isAllowed = ([name]: [string, string]) => canSet(isIsolated, name.toLowerCase())
      const headers = Object.fromEntries(given.filter(isAllowed))
      for (const header of given) if (!isAllowed(header)) warn(from, header[0].toLowerCase().slice(0, 100))
      return isIsolated ? fitIsolated({ ...reply, headers }) : { ...reply, headers }
    },
    forStream: ({ isIsolated }, type) => (isIsolated ? shownAs(type) : { type, headers: {} }),
  }
}

const canSet = (isIsolated: boolean, name: string) =>
  isIsolated ? OF_ISOLATED.has(name) || name.startsWith(ROUTE_HEADERS.prefix) || isApiHeader(name) : !OF_THE_SERVER.has(name)

function fitIsolated(reply: RouteReply): RouteReply {
  const { headers = {}, status = 200 } = reply
  const byName = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
  if (byName.size < Object.keys(headers).length) throw answerInvalid('a header twice')
  const location = byName.get('location')
  if (location !== undefined && !OWN_PATH.test(location)) throw answerInvalid('a Location that is not a path of this server')
  if (RESENDING.includes(status)) throw answerInvalid(`the status ${status}, which makes clients send their body elsewhere`)
  const given = byName.get('content-type')
  if (given === undefined) return { ...reply, headers }
  const { type, headers: more } = shownAs(given)
  return { ...reply, headers: { ...Object.fromEntries(byName), 'content-type': type, ...more } }
}

/** Returns a content type and headers with which a browser cannot run the content of an isolated plugin. */
function shownAs(type: string): ReturnType<RouteReplies['forStream']> {
  if (SCRIPT.test(type)) return { type: PLAIN, headers: { [POLICY]: SANDBOX } }
  return { type, headers: DATA.test(type) ? {} : { [POLICY]: SANDBOX } }
}
