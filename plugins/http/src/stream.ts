import type { ServerResponse } from 'node:http'
import { show } from '@svc/core'
import { HEARTBEAT } from '@svc/sse'
import { answerInvalid } from './errors.ts'
import type { Exchange } from './exchange.ts'

export interface StreamLimits {
  /** Milliseconds between the heartbeats of an event stream. */
  readonly heartbeatMs: number
  /** Milliseconds after which a reader that takes nothing is cut off. */
  readonly stallMs: number
}

const EVENTS = 'text/event-stream'
const EVENT_HEADERS = ['Content-Type', EVENTS, 'Cache-Control', 'no-cache', 'X-Accel-Buffering', 'no']
/** So much text goes out at once, even if the loop has not turned since the last write. */
const CHUNK = 65_536

/**
 * Sends the items of a stream as they come. Headers go with the first item: what is thrown before it can still be an ordinary error record.
 * Ends when the stream does, or the reader is gone; then the iterator is returned.
 */
export async function sendStream(x: Exchange, items: AsyncIterable<string>, type: string, limits: StreamLimits): Promise<void> {
  const iterator = items[Symbol.asyncIterator]()
  let over = false
  const end = () => {
    if (!over) void iterator.return?.().catch(() => {})
    over = true
  }
  const leave = () => {
    // the server ends it, and it may have last words
    if (x.gone) end()
    else x.res.once('close', end)
  }
  x.ending.signal.addEventListener('abort', leave, { once: true })
  try {
    const first = await iterator.next()
    if (!first.done) textOf(first.value)
    if (!x.gone) over = await send(x, iterator, first, type, limits)
  } catch (error) {
    over = true
    throw error
  } finally {
    x.life.streams.delete(x)
    x.ending.signal.removeEventListener('abort', leave)
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
  x: Exchange,
  iterator: AsyncIterator<string>,
  first: IteratorResult<string>,
  type: string,
  limits: StreamLimits
): Promise<boolean> {
  if (x.life.draining) x.headers.push('Connection', 'close')
  x.headers.push(...(type === EVENTS ? EVENT_HEADERS : ['Content-Type', type]))
  x.res.writeHead(200, x.headers)
  x.life.streams.add(x)
  using outlet = createOutlet(x.res, limits, type === EVENTS)
  for (let item = first; !item.done; item = await iterator.next()) {
    const wait = outlet.take(textOf(item.value))
    if (wait) await wait
    if (x.gone) return false
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
