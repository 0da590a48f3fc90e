import type { ServerResponse } from 'node:http'
import { show } from '@svc/core'
import { HEARTBEAT } from '@svc/provider-http/sse'
import { answerInvalid } from './errors.ts'
import type { Context, Life } from './context.ts'

export interface StreamLimits {
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
export async function sendStream(ctx: Context, items: AsyncIterable<string>, type: string, parts: StreamParts): Promise<void> {
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

/** An item, whoever wrote the route. Throws ROUTE_ANSWER_INVALID. */
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
