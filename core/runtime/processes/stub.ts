import type { MethodKind, CallContext } from '@svc/core'
import { type ChannelLimits, deadlineExceeded, fromWire, toWire, unreadTooMuch, contextMissing } from './errors.ts'
import {
  ABORT,
  ANSWER,
  CALL,
  CREDIT,
  FAIL,
  ITEM,
  type Message,
  plainContext,
  RETURN,
  WINDOW,
  type WireContext,
} from './message.ts'

/** One pending call or stream of the calling side. */
interface PendingCall {
  /** Takes an item of a stream. Returns false when the item exceeds the window. */
  item(value: unknown, bytes: number): boolean
  done(value: unknown): void
  fail(error: unknown): void
  /** Stops observing signal and deadline. */
  stop?: () => void
}

type Method = (...args: unknown[]) => unknown

/** The calling side of a channel. */
export interface Caller {
  /** Creates a stub: a plain object with the methods of the table. */
  stub(path: string, methods: Readonly<Record<string, MethodKind>>, only?: readonly string[]): Record<string, Method>
  /** Returns whether the message is valid. */
  take(message: Message, bytes: number): boolean
  fail(id: number, error: unknown): void
  /** Fails all pending calls, because the other side is gone. */
  stop(): void
}
interface CallerOptions {
  /** The name of the other side. */
  readonly name: string
  readonly graceMs: number
  /** Aborted when the other side is gone. */
  readonly over: AbortSignal
  post(message: Message, label: string): void
  readonly callLimits: ChannelLimits
}
/** The operations that calls and streams need of the calling side. */
interface CallerLink extends CallerOptions {
  begin(waiting: PendingCall, path: string, method: string, args: unknown[], ctx: CallContext): number
  /** Settles a call, unless it is already settled. */
  settle(id: number, how: (waiting: PendingCall) => void): void
  /** Releases credit for items that were read or dropped. */
  read(bytes: number): void
}

export function createCaller(options: CallerOptions): Caller {
  const waiting = new Map<number, PendingCall>()
  let lastId = 0
  let unread = 0
  const settle: CallerLink['settle'] = (id, how) => {
    const pendingCall = waiting.get(id)
    if (!pendingCall) return
    waiting.delete(id)
    pendingCall.stop?.()
    how(pendingCall)
  }
  const begin: CallerLink['begin'] = (item, path, method, args, ctx) => {
    const id = ++lastId
    const label = `${path}.${method}`
    waiting.set(id, item)
    options.post([CALL, id, path, method, args, wireContext(ctx)], label)
    if (options.over.aborted) settle(id, w => w.fail(options.over.reason))
    // A call that could not be sent has already failed.
    if (waiting.has(id)) item.stop = follow(line, id, ctx, label)
    return id
  }
  const line: CallerLink = { ...options, begin, settle, read: bytes => void (unread -= bytes) }
  const fail = (id: number, error: unknown) => settle(id, item => item.fail(error))
  const takeItem = (id: number, value: unknown, bytes: number) => {
    const pendingCall = waiting.get(id)
    if (!pendingCall) return true
    if (unread + bytes > options.callLimits.bytes) {
      options.post([RETURN, id], '')
      fail(id, unreadTooMuch(options.name, options.callLimits.bytes))
      return true
    }
    unread += bytes
    return pendingCall.item(value, bytes)
  }
  return {
    stub(path, methods, only) {
      const kinds = Object.entries(methods).filter(([method]) => only?.includes(method) ?? true)
      return Object.fromEntries(
        kinds.map(([method, kind]) => [method, (kind === 'call' ? callOf : streamOf)(line, path, method)])
      )
    },
    take(message, bytes) {
      if (message[0] === ITEM) return takeItem(message[1], message[2], bytes)
      if (message[0] === ANSWER) settle(message[1], item => item.done(message[2]))
      else if (message[0] === FAIL) fail(message[1], fromWire(message[2]))
      return true
    },
    fail,
    stop: () => [...waiting.keys()].forEach(id => fail(id, options.over.reason)),
  }
}

function callOf(line: CallerLink, path: string, method: string): Method {
  return (...args) =>
    new Promise((done, fail) => {
      const ctx = takeContext(args, path, method)
      line.begin({ item: () => false, done, fail }, path, method, args, ctx)
    })
}

function streamOf(line: CallerLink, path: string, method: string): Method {
  return (...args) => {
    const ctx = takeContext(args, path, method)
    return read(line, ctx, waiting => line.begin(waiting, path, method, args, ctx))
  }
}

/** Removes the context, the last argument, from the others. */
function takeContext(args: unknown[], path: string, method: string): CallContext {
  const ctx = args.pop() as CallContext | undefined
  if (!(ctx?.signal instanceof AbortSignal)) throw contextMissing(`${path}.${method}`)
  return ctx
}

/**
 * The near end of a stream. Like every generator it starts with the first `next`. Unlike others it reads ahead, up to the
 * window.
 */
async function* read(line: CallerLink, ctx: CallContext, begin: (waiting: PendingCall) => number): AsyncGenerator<unknown, void> {
  const items: (readonly [value: unknown, bytes: number])[] = []
  const state: { ended: boolean; failed: boolean; error?: unknown; wake?: () => void } = { ended: false, failed: false }
  const end = (failed: boolean, error?: unknown) => {
    Object.assign(state, { ended: true, failed, error })
    state.wake?.()
  }
  const change = () => new Promise<void>(resolve => (state.wake = resolve))
  const item = (value: unknown, bytes: number) => {
    state.wake?.()
    return items.push([value, bytes]) <= WINDOW
  }
  // The reader leaves: the remote generator runs its `finally`, and its errors arrive here, as in one process.
  const leave = async () => {
    line.post([RETURN, id], '')
    const timer = setTimeout(() => line.settle(id, entry => entry.done(undefined)), line.graceMs)
    while (!state.ended) await change()
    clearTimeout(timer)
    if (state.failed && !ctx.signal.aborted) throw state.error
  }
  const id = begin({ item, done: () => end(false), fail: error => end(true, error) })
  let taken = 0
  try {
    for (;;) {
      while (items.length > 0) {
        if (++taken === WINDOW / 2 && !state.ended) {
          line.post([CREDIT, id, taken], '')
          taken = 0
        }
        const [value, bytes] = items.shift()!
        line.read(bytes)
        yield value
      }
      if (state.ended) break
      await change()
    }
    if (state.failed) throw state.error
  } finally {
    if (!state.ended) await leave()
    for (const [, bytes] of items) line.read(bytes)
  }
}

// A later ABORT would come too late: the method would start without it.
const wireContext = (ctx: CallContext): WireContext =>
  ctx.signal.aborted ? { ...plainContext(ctx), aborted: toWire(ctx.signal.reason) } : plainContext(ctx)

const LONGEST_TIMER = 2 ** 31 - 1

/**
 * Forwards signal and deadline. After an abort, the result of the other side counts, as in one process: it can be partial. Only
 * a side that does not answer within the grace time is given up.
 */
function follow(line: CallerLink, id: number, { signal, deadline }: CallContext, label: string): () => void {
  let timer: NodeJS.Timeout | undefined
  const leave = (reason: unknown) => {
    stop()
    line.post([ABORT, id, toWire(reason)], label)
    timer = setTimeout(() => line.settle(id, item => item.fail(reason)), line.graceMs)
  }
  const onAbort = () => leave(signal.reason)
  const stop = () => {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
  }
  const ms = (deadline ?? Number.POSITIVE_INFINITY) - Date.now()
  signal.addEventListener('abort', onAbort, { once: true })
  if (ms <= LONGEST_TIMER) timer = setTimeout(() => leave(deadlineExceeded(label)), Math.max(0, ms))
  if (signal.aborted) onAbort()
  return stop
}
