import type { ServerResponse } from 'node:http'
import { type Log, show } from '@svc/core'
import { type Mount, ROUTE_HEADERS, type RouteReply, type RouteRequest } from '@svc/core/contracts'
import { HEARTBEAT } from '@svc/provider-http/sse'
import type { Bound, Context, Life, Middleware } from './context.ts'
import { answerInvalid } from './errors.ts'

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

/** Checks the reply of a route. Throws ROUTE_ANSWER_INVALID. */
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

const OF_THE_SERVER: ReadonlySet<string> = new Set(ROUTE_HEADERS.server)
const OF_ISOLATED: ReadonlySet<string> = new Set(ROUTE_HEADERS.isolated)

/** JSON, an event stream or plain text: no browser runs anything of these. */
const DATA = /^(?:application\/(?:[\w.+-]+\+)?json|text\/plain|text\/event-stream)\s*(?:;\s*charset="?utf-8"?\s*)?$/i
/** What a browser may do with anything else: show it, without scripts, forms, other documents, or the origin of this server. */
const SANDBOX = "sandbox; default-src 'none'"
const POLICY = 'content-security-policy'
/** Pages of this server, `/docs` for one, run scripts that come from it: none may come from a stranger, anywhere in a list of types. */
const SCRIPT = /(?:java|ecma|live|j)script/i
const PLAIN = 'text/plain; charset=utf-8'

/** A path of this server. Browsers drop tabs and take a backslash for a slash, so `/\t/evil.example` would lead elsewhere. */
const OWN_PATH = /^\/(?![/\\])[\x21-\x7e]*$/
/** They make a client send the same body to another route. */
const RESENDING = [307, 308]

/** Warned of once each, up to so many. */
const MOST_WARNINGS = 1_000

/** What answers: a route, or a mount by its path. */
type Source = Pick<Bound, 'name' | 'plugin' | 'isIsolated'>

/** Holds answers of routes to what a route may answer. */
interface RouteReplies {
  /** The answer without the headers that are not the route's to set; each is logged once. Throws ROUTE_ANSWER_INVALID. */
  fit(from: Source, reply: RouteReply): RouteReply
  /** The type of a stream, and what it needs beside the usual headers. */
  forStream(bound: Bound, type: string): { readonly type: string; readonly headers: Readonly<Record<string, string>> }
}

function createRouteReplies(log: Pick<Log, 'warn'>): RouteReplies {
  const warned = new Set<string>()
  const warn = ({ name, plugin, isIsolated }: Source, header: string) => {
    const key = `${name} ${header}`
    if (warned.has(key) || warned.size >= MOST_WARNINGS) return
    warned.add(key)
    const why = isIsolated ? 'a route of an isolated plugin may not set it' : 'only the server sets it'
    log.warn({ of: plugin, route: name, header }, `a header of a route was left out: ${why}`)
  }
  return {
    fit(from, reply) {
      const { isIsolated } = from
      if (reply.headers === undefined) return reply
      const given = Object.entries(reply.headers)
      const isAllowed = ([name]: [string, string]) => mayFrom(isIsolated, name.toLowerCase())
      const headers = given.every(isAllowed) ? reply.headers : Object.fromEntries(given.filter(isAllowed))
      for (const one of given) if (!isAllowed(one)) warn(from, one[0].toLowerCase().slice(0, 100))
      return isIsolated ? fitIsolated({ ...reply, headers }) : { ...reply, headers }
    },
    forStream: ({ isIsolated }, type) => (isIsolated ? shownAs(type) : { type, headers: {} }),
  }
}

const mayFrom = (isIsolated: boolean, name: string) =>
  isIsolated ? OF_ISOLATED.has(name) || name.startsWith(ROUTE_HEADERS.prefix) : !OF_THE_SERVER.has(name)

function fitIsolated(reply: RouteReply): RouteReply {
  const { headers = {}, status = 200 } = reply
  const byName = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
  if (byName.size < Object.keys(headers).length) throw answerInvalid('a header twice')
  const location = byName.get('location')
  if (location !== undefined && !OWN_PATH.test(location)) throw answerInvalid('a Location that is no path of this server')
  if (RESENDING.includes(status)) throw answerInvalid(`the status ${status}, which makes clients send their body elsewhere`)
  const given = byName.get('content-type')
  if (given === undefined) return { ...reply, headers }
  const { type, headers: more } = shownAs(given)
  return { ...reply, headers: { ...Object.fromEntries(byName), 'content-type': type, ...more } }
}

/** How a browser gets what an isolated plugin sends. */
function shownAs(type: string): ReturnType<RouteReplies['forStream']> {
  if (SCRIPT.test(type)) return { type: PLAIN, headers: { [POLICY]: SANDBOX } }
  return { type, headers: DATA.test(type) ? {} : { [POLICY]: SANDBOX } }
}

interface StreamLimits {
  /** Milliseconds between the heartbeats of an event stream. */
  readonly heartbeatMs: number
  /** Milliseconds after which a reader that takes nothing is cut off. */
  readonly stallMs: number
}
interface StreamParts extends StreamLimits {
  readonly life: Life
}

const EVENTS = 'text/event-stream'
const EVENT_HEADERS = { 'Content-Type': EVENTS, 'Cache-Control': 'no-cache', 'X-Accel-Buffering': 'no' } as const
/** So much text goes out at once, even if the loop has not turned since the last write. */
const CHUNK = 65_536

/**
 * Sends the items of a stream as they come. Headers go with the first item: what is thrown before it can still be an ordinary error record.
 * Ends when the stream does, or the reader is gone; then the iterator is returned.
 */
async function sendStream(ctx: Context, items: AsyncIterable<string>, type: string, parts: StreamParts): Promise<void> {
  const iterator = items[Symbol.asyncIterator]()
  const { state } = ctx
  let over = false
  const end = () => {
    if (!over) void iterator.return?.().catch(() => {})
    over = true
  }
  const leave = () => {
    // the server ends it, and it may have last words
    if (state.gone) end()
    else ctx.res.once('close', end)
  }
  state.ending.signal.addEventListener('abort', leave, { once: true })
  try {
    const first = await iterator.next()
    if (!first.done) textOf(first.value)
    if (!state.gone) over = await send(ctx, iterator, first, type, parts)
  } catch (error) {
    over = true
    throw error
  } finally {
    parts.life.streams.delete(ctx)
    state.ending.signal.removeEventListener('abort', leave)
    end()
  }
}

/** Checks an item of a stream. Throws ROUTE_ANSWER_INVALID. */
function textOf(item: unknown): string {
  if (typeof item !== 'string') throw answerInvalid(`${show(item)} in its stream`)
  return item
}

/** Answers whether the stream came to its own end. */
async function send(
  ctx: Context,
  iterator: AsyncIterator<string>,
  first: IteratorResult<string>,
  type: string,
  parts: StreamParts
): Promise<boolean> {
  const { life } = parts
  if (life.draining) ctx.set('Connection', 'close')
  ctx.set(type === EVENTS ? EVENT_HEADERS : { 'Content-Type': type })
  ctx.respond = false // a text that is written as it comes: a stream of Node would cost each token twice
  ctx.res.writeHead(200)
  life.streams.add(ctx)
  using outlet = createOutlet(ctx.res, parts, type === EVENTS)
  for (let item = first; !item.done; item = await iterator.next()) {
    const wait = outlet.take(textOf(item.value))
    if (wait) await wait
    if (ctx.state.gone) return false
  }
  outlet.end()
  return true
}

interface Outlet extends Disposable {
  /** Takes text; answers what to wait for before more is given. */
  take(text: string): Promise<void> | undefined
  end(): void
}

/** Gathers what comes within one turn of the loop into one write, the first at once, and holds no more than the reader takes. */
function createOutlet(res: ServerResponse, { heartbeatMs, stallMs }: StreamLimits, events: boolean): Outlet {
  let pending = ''
  let asked: NodeJS.Immediate | undefined
  let begun = false
  let blocked: Promise<void> | undefined
  res.on('timeout', () => res.destroy())
  const flush = () => {
    asked = undefined
    if (pending === '' || blocked || res.destroyed) return
    const text = pending
    pending = ''
    if (!res.write(text))
      blocked = drained(res, stallMs)
        .then(() => void (blocked = undefined))
        .then(flush)
  }
  const beat = () => {
    pending ||= HEARTBEAT
    flush()
  }
  const timer = events ? setInterval(beat, heartbeatMs) : undefined
  return {
    take(text) {
      pending += text
      if (blocked) return blocked
      if (begun && pending.length < CHUNK) return void (asked ??= setImmediate(flush))
      flush()
      if (begun) return blocked ?? turn()
      begun = true
      return blocked
    },
    end() {
      if (!res.destroyed) res.end(pending)
      if (res.writableLength > 0) res.setTimeout(stallMs)
      pending = ''
    },
    [Symbol.dispose]() {
      clearInterval(timer)
      clearImmediate(asked)
      flush()
    },
  }
}

const turn = () => new Promise<void>(resolve => setImmediate(resolve))

/** Waits until the reader has taken what was written, or is gone; one that takes nothing runs into the time-out of its socket. */
function drained(res: ServerResponse, stallMs: number): Promise<void> {
  return new Promise(resolve => {
    res.setTimeout(stallMs)
    const done = () => {
      res.setTimeout(0)
      res.off('drain', done).off('close', done)
      resolve()
    }
    res.on('drain', done).on('close', done)
  })
}
