import type { ServerResponse } from 'node:http'
import { type Log, redactText, show } from '@svc/core'
import {
  type Mount,
  ROUTE_HEADERS,
  type RouteReply,
  type RouteRequest,
  type RouteStreamHead,
  type RouteStreamItem,
} from '@svc/core/contracts'
import { HEARTBEAT } from '@svc/provider-http/sse'
import type { Bound, Context, Life, Middleware } from './context.ts'
import { isApiHeader } from './error-formats.ts'
import { answerInvalid } from './errors.ts'

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
  const { query, bytes, route } = ctx.state
  const { body } = ctx.request as { body?: RouteRequest['body'] }
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

const isBytes = (value: unknown): value is Uint8Array => value instanceof Uint8Array

const hasContent = ({ body, text, bytes }: RouteReply) => body !== undefined || text !== undefined || bytes !== undefined

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

interface StreamLimits {
  /** Milliseconds between the heartbeats of an event stream. */
  readonly heartbeatMs: number
  /** Milliseconds after which the server disconnects a client that reads nothing. */
  readonly stallMs: number
}
interface StreamOptions extends StreamLimits {
  readonly life: Life
  /** What an event stream sends in its pauses. */
  readonly heartbeat: string
}

const EVENTS = /^text\/event-stream\s*(?:;|$)/i
const EVENT_HEADERS = { 'Cache-Control': 'no-cache', 'X-Accel-Buffering': 'no' } as const
/** Length from which pending text is written at once, before the end of the tick. */
const CHUNK = 65_536

/** Status and content type of a stream. */
interface StreamHead {
  readonly status: number
  readonly type: string
}

/**
 * Sends the items of a stream as they arrive. Headers go with the first item, so an earlier error still becomes an ordinary error record. A head without content
 * can be held back for the same reason.
 * `start` takes the reply that comes first, if there is one, and returns nothing if it was the whole response.
 * Ends when the stream ends or the client disconnects; then it calls `return` of the iterator.
 */
async function sendStream(
  ctx: Context,
  items: AsyncIterable<RouteStreamItem>,
  start: (head: RouteReply | undefined) => StreamHead | undefined,
  parts: StreamOptions
): Promise<void> {
  const iterator = items[Symbol.asyncIterator]()
  const { state } = ctx
  let over = false
  const end = () => {
    if (!over) void iterator.return?.().catch(() => {})
    over = true
  }
  const leave = () => {
    // when the server stops, the stream can still send its last event
    if (state.gone) end()
    else ctx.res.once('close', end)
  }
  state.ending.signal.addEventListener('abort', leave, { once: true })
  try {
    const first = await iterator.next()
    const reply = replyIn(first)
    const next = reply ? await afterHead(ctx, iterator, reply) : { item: first }
    if (next?.item && !next.item.done) contentOf(next.item.value)
    const head = state.gone ? undefined : start(reply)
    if (head && next) over = await send(ctx, iterator, { head, next }, parts)
  } finally {
    parts.life.streams.delete(ctx)
    state.ending.signal.removeEventListener('abort', leave)
    end()
  }
}

type StreamStep = IteratorResult<RouteStreamItem>

/** The item that follows, or the promise of it. */
type NextItem = { readonly item: StreamStep } | { readonly item?: undefined; readonly later: Promise<StreamStep> }

/** A reply in a stream: the whole answer, or the head of the stream. */
type FirstReply = RouteReply & RouteStreamHead

/** Longest time in which a head is held back. */
const LONGEST_HOLD_MS = 60_000

/** Asks for the item after a head, and waits as long as the head is held back. Returns nothing for a reply that is the whole answer. */
async function afterHead(
  ctx: Context,
  iterator: AsyncIterator<RouteStreamItem>,
  reply: FirstReply
): Promise<NextItem | undefined> {
  const { holdMs = 0 } = reply
  if (!Number.isInteger(holdMs) || holdMs < 0 || holdMs > LONGEST_HOLD_MS) throw answerInvalid(`the holdMs ${show(holdMs)}`)
  if (hasContent(reply)) return undefined
  const later = iterator.next()
  later.catch(() => {}) // if the head is not valid, nothing waits for the item
  const item = holdMs > 0 ? await settledIn(holdMs, later, ctx) : undefined
  return item ? { item } : { later }
}

/** Returns the item if it arrives in time; `undefined` too when the client disconnects. */
async function settledIn(ms: number, later: Promise<StreamStep>, { state, res }: Context): Promise<StreamStep | undefined> {
  const over = Promise.withResolvers<undefined>()
  const end = () => over.resolve(undefined)
  const timer = setTimeout(end, ms)
  res.once('close', end)
  try {
    return state.gone ? undefined : await Promise.race([later, over.promise])
  } finally {
    clearTimeout(timer)
    res.off('close', end)
  }
}

const REPLY_KEYS: readonly string[] = ['status', 'headers', 'body', 'text', 'bytes', 'holdMs'] satisfies (keyof FirstReply)[]

/** The reply in the first item of a stream. */
const replyIn = ({ done, value }: StreamStep): FirstReply | undefined => (!done && isReply(value) ? value : undefined)

const isReply = (value: unknown): value is FirstReply =>
  typeof value === 'object' &&
  value !== null &&
  Object.keys(value).length > 0 &&
  Object.keys(value).every(key => REPLY_KEYS.includes(key))

/** Checks an item of a stream. Throws ROUTE_ANSWER_INVALID. */
function contentOf(item: unknown): string | Uint8Array {
  if (typeof item !== 'string' && !isBytes(item)) throw answerInvalid(`${show(item)} in its stream`)
  return item
}

/** Returns true if the stream ended by itself. */
async function send(
  ctx: Context,
  iterator: AsyncIterator<RouteStreamItem>,
  { head: { status, type }, next }: { readonly head: StreamHead; readonly next: NextItem },
  parts: StreamOptions
): Promise<boolean> {
  const { life } = parts
  const isEvents = EVENTS.test(type)
  if (life.draining) ctx.set('Connection', 'close')
  ctx.set(isEvents ? { ...EVENT_HEADERS, 'Content-Type': type } : { 'Content-Type': type })
  ctx.respond = false // written directly, because a Node stream would double the cost of each token
  ctx.res.writeHead(status)
  if (!next.item) ctx.res.flushHeaders()
  life.streams.add(ctx)
  using outlet = createOutlet(ctx.res, parts, isEvents)
  if (isEvents) ctx.state.endStream = outlet.endWith
  for (let item = next.item ?? (await next.later); !item.done; item = await iterator.next()) {
    const content = contentOf(item.value)
    const wait = typeof content === 'string' ? outlet.take(content) : outlet.takeBytes(content)
    if (wait) await wait
    if (ctx.state.gone) return false
  }
  outlet.end()
  return true
}

interface Outlet extends Disposable {
  /** Adds text. Returns a promise to wait for before adding more. */
  take(text: string): Promise<void> | undefined
  /** Writes bytes after the text so far. */
  takeBytes(bytes: Uint8Array): Promise<void>
  end(): void
  /** Ends with this event. Returns false if a part of another event was sent. */
  endWith(event: string): boolean
}

/** Whether the text of an event stream ends between two events: with an empty line, or before the first event. */
const isBetweenEvents = (text: string) => text === '' || /(?:\n\n|\n\r\n|\r\r|\n\r)$/.test(text)
/** Length of the longest end of an event. */
const END_LENGTH = 4

/** Collects the text of one tick into one write: what one read of the upstream has brought. Waits for slow readers. */
function createOutlet(res: ServerResponse, { heartbeatMs, stallMs, heartbeat }: StreamOptions, events: boolean): Outlet {
  /** The end of what was sent, to find out whether an event is complete. */
  let tail = ''
  let pending = ''
  let isScheduled = false
  let blocked: Promise<void> | undefined
  res.on('timeout', () => res.destroy())
  const write = (content: string | Uint8Array) => {
    if (!res.write(content))
      blocked = drained(res, stallMs)
        .then(() => void (blocked = undefined))
        .then(flush)
  }
  const flush = () => {
    isScheduled = false
    if (pending === '' || blocked || res.destroyed) return
    const text = redactText(pending)
    pending = ''
    write(text)
  }
  const beat = () => {
    // in the middle of an event, a heartbeat would change it
    if (pending === '' && isBetweenEvents(tail)) pending = heartbeat
    flush()
  }
  const end = () => {
    if (!res.destroyed) res.end(redactText(pending))
    if (res.writableLength > 0) res.setTimeout(stallMs)
    pending = ''
  }
  const timer = events ? setInterval(beat, heartbeatMs) : undefined
  return {
    take(text) {
      pending += text
      if (events) tail = text.length >= END_LENGTH ? text.slice(-END_LENGTH) : (tail + text).slice(-END_LENGTH)
      if (blocked) return blocked
      if (pending.length >= CHUNK) {
        flush()
        return blocked ?? turn()
      }
      // Unlike a check phase, the next tick does not wait for the sockets of other streams.
      if (!isScheduled) process.nextTick(flush)
      isScheduled = true
      return undefined
    },
    async takeBytes(bytes) {
      while (pending !== '' && !res.destroyed) {
        flush()
        await blocked
      }
      if (events) tail = (tail + Buffer.from(bytes.subarray(-END_LENGTH)).toString('latin1')).slice(-END_LENGTH)
      if (bytes.length > 0 && !res.destroyed) write(bytes)
      await (blocked ?? turn())
    },
    end,
    endWith(event) {
      if (!isBetweenEvents(tail)) return false
      pending += event
      end()
      return true
    },
    [Symbol.dispose]() {
      clearInterval(timer)
      flush()
    },
  }
}

const turn = () => new Promise<void>(resolve => setImmediate(resolve))

/** Waits until the client has read the text or its connection closes. The socket timeout closes the connection of a client that reads nothing. */
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
