import type { MethodKind, CallContext } from '@svc/core'
import { type CallLimits, deadlineExceeded, fromWire, toWire, unreadTooMuch, contextMissing } from './errors.ts'
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

/** One call or stream under way, as its caller sees it. */
interface PendingCall {
  /** Takes an item of a stream; answers whether it may be: more than the window is a lie. */
  item(value: unknown, bytes: number): boolean
  done(value: unknown): void
  fail(error: unknown): void
  /** Undoes what watches signal and deadline. */
  stop?: () => void
}

type Method = (...args: unknown[]) => unknown

/** The calling side of a channel. */
export interface Caller {
  /** Builds what is called like the far implementation: a plain object from the table, nothing else. */
  stub(path: string, methods: Readonly<Record<string, MethodKind>>, only?: readonly string[]): Record<string, Method>
  /** Answers whether the message may be. */
  take(message: Message, bytes: number): boolean
  fail(id: number, error: unknown): void
  /** The far side is gone: fails all that waits. */
  stop(): void
}
interface CallerOptions {
  /** The far side's name. */
  readonly name: string
  readonly graceMs: number
  /** Has aborted when the far side is gone. */
  readonly over: AbortSignal
  post(message: Message, label: string): void
  readonly callLimits: CallLimits
}
/** What a call or stream needs of the calling side. */
interface CallerLink extends CallerOptions {
  begin(waiting: PendingCall, path: string, method: string, args: unknown[], ctx: CallContext): number
  /** Ends what waits, unless it has ended. */
  settle(id: number, how: (waiting: PendingCall) => void): void
  /** Items of so many bytes have been read, or never will be. */
  read(bytes: number): void
}

export function createCaller(options: CallerOptions): Caller {
  const waiting = new Map<number, PendingCall>()
  let lastId = 0
  let unread = 0
  const settle: CallerLink['settle'] = (id, how) => {
    const one = waiting.get(id)
    if (!one) return
    waiting.delete(id)
    one.stop?.()
    how(one)
  }
  const begin: CallerLink['begin'] = (one, path, method, args, ctx) => {
    const id = ++lastId
    const label = `${path}.${method}`
    waiting.set(id, one)
    options.post([CALL, id, path, method, args, wireContext(ctx)], label)
    if (options.over.aborted) settle(id, w => w.fail(options.over.reason))
    // What may not cross has failed already.
    if (waiting.has(id)) one.stop = follow(line, id, ctx, label)
    return id
  }
  const line: CallerLink = { ...options, begin, settle, read: bytes => void (unread -= bytes) }
  const fail = (id: number, error: unknown) => settle(id, one => one.fail(error))
  const takeItem = (id: number, value: unknown, bytes: number) => {
    const one = waiting.get(id)
    if (!one) return true
    if (unread + bytes > options.callLimits.bytes) {
      options.post([RETURN, id], '')
      fail(id, unreadTooMuch(options.name, options.callLimits.bytes))
      return true
    }
    unread += bytes
    return one.item(value, bytes)
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
      if (message[0] === ANSWER) settle(message[1], one => one.done(message[2]))
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

/** The last argument, taken off the others. */
function takeContext(args: unknown[], path: string, method: string): CallContext {
  const ctx = args.pop() as CallContext | undefined
  if (!(ctx?.signal instanceof AbortSignal)) throw contextMissing(`${path}.${method}`)
  return ctx
}

/** The near end of a stream: like every generator it begins with the first `next`; unlike others it is filled ahead, by the window. */
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
  // The reader leaves: the far generator runs its own `finally`, and what that throws comes here, as in one process.
  const leave = async () => {
    line.post([RETURN, id], '')
    const timer = setTimeout(() => line.settle(id, one => one.done(undefined)), line.graceMs)
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

// An ABORT that follows the call would come too late: the method would begin unaware.
const wireContext = (ctx: CallContext): WireContext =>
  ctx.signal.aborted ? { ...plainContext(ctx), aborted: toWire(ctx.signal.reason) } : plainContext(ctx)

const LONGEST_TIMER = 2 ** 31 - 1

/**
 * Lets signal and deadline cross. What follows an abort is the far side's answer, as it would be in one process: it may still bring a partial result.
 * Only a far side that says nothing within the grace time is given up.
 */
function follow(line: CallerLink, id: number, { signal, deadline }: CallContext, label: string): () => void {
  let timer: NodeJS.Timeout | undefined
  const leave = (reason: unknown) => {
    stop()
    line.post([ABORT, id, toWire(reason)], label)
    timer = setTimeout(() => line.settle(id, one => one.fail(reason)), line.graceMs)
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
