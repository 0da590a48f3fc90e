import type { ServerResponse } from 'node:http'
import { redactText, show } from '@svc/core'
import type { RouteReply, RouteStreamHead, RouteStreamItem } from '@svc/core/contracts'
import type { Context, Life } from './context.ts'
import { answerInvalid } from './errors.ts'

export const isBytes = (value: unknown): value is Uint8Array => value instanceof Uint8Array

/** Whether a reply is the whole answer, not the head of a stream. */
export const hasContent = ({ body, text, bytes }: RouteReply): boolean =>
  body !== undefined || text !== undefined || bytes !== undefined

/** The times of all streams. */
export interface StreamLimits {
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
export async function sendStream(
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
  if (hasContent(reply)) {
    if (reply.holdMs !== undefined) throw answerInvalid('holdMs beside content')
    return undefined
  }
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
  using _open = life.streams.add(ctx)
  using outlet = createOutlet(ctx.res, parts, isEvents)
  if (isEvents) ctx.state.endStream = event => outlet.endWith(event)
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

/** An event ends with an empty line. */
const EVENT_END = /(?:\n\n|\n\r\n|\r\r|\n\r)$/
/** Length of the longest end of an event. */
const END_LENGTH = 4

/** Follows the text of an event stream. */
function createEventTail() {
  let tail = ''
  return {
    push(text: string) {
      tail = text.length >= END_LENGTH ? text.slice(-END_LENGTH) : (tail + text).slice(-END_LENGTH)
    },
    /** Whether the text ends between two events. In the middle of an event, a heartbeat or another event would change it. */
    isBetweenEvents: () => tail === '' || EVENT_END.test(tail),
  }
}

/** Collects the text of one tick into one write: what one read of the upstream has brought. */
function createTextBuffer(res: ServerResponse, stallMs: number) {
  let pending = ''
  let isScheduled = false
  let blocked: Promise<void> | undefined
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
  return {
    write,
    flush,
    /** Returns the length of the text that is not written yet. */
    add: (text: string) => (pending += text).length,
    isEmpty: () => pending === '',
    /** While the client reads nothing, a promise that resolves when it reads again. */
    blocked: () => blocked,
    /** Writes at the end of this tick. Unlike a check phase, the next tick does not wait for the sockets of other streams. */
    schedule() {
      if (!isScheduled) process.nextTick(flush)
      isScheduled = true
    },
    end() {
      if (!res.destroyed) res.end(redactText(pending))
      if (res.writableLength > 0) res.setTimeout(stallMs)
      pending = ''
    },
  }
}

/** Writes a stream and its heartbeats. Waits for slow readers. */
function createOutlet(res: ServerResponse, { heartbeatMs, stallMs, heartbeat }: StreamOptions, events: boolean): Outlet {
  const buffer = createTextBuffer(res, stallMs)
  const tail = createEventTail()
  res.on('timeout', () => res.destroy())
  const beat = () => {
    if (buffer.isEmpty() && tail.isBetweenEvents()) buffer.add(heartbeat)
    buffer.flush()
  }
  const timer = events ? setInterval(beat, heartbeatMs) : undefined
  return {
    take(text) {
      const length = buffer.add(text)
      if (events) tail.push(text)
      const blocked = buffer.blocked()
      if (blocked) return blocked
      if (length >= CHUNK) {
        buffer.flush()
        return buffer.blocked() ?? turn()
      }
      buffer.schedule()
      return undefined
    },
    async takeBytes(bytes) {
      while (!buffer.isEmpty() && !res.destroyed) {
        buffer.flush()
        await buffer.blocked()
      }
      if (events) tail.push(Buffer.from(bytes.subarray(-END_LENGTH)).toString('latin1'))
      if (bytes.length > 0 && !res.destroyed) buffer.write(bytes)
      await (buffer.blocked() ?? turn())
    },
    end: () => buffer.end(),
    endWith(event) {
      if (!tail.isBetweenEvents()) return false
      buffer.add(event)
      buffer.end()
      return true
    },
    [Symbol.dispose]() {
      clearInterval(timer)
      buffer.flush()
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
