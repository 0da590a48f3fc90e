import type { MethodKind, Use } from '../src/token.ts'
import { deadlineOver, toWire, useMissing } from './errors.ts'
import { ABORT, CALL, CREDIT, type Message, plainUse, RETURN, WINDOW } from './message.ts'

/** One call or stream under way, as its caller sees it. */
export interface Waiting {
  /** Takes an item of a stream; answers whether it may be: more than the window is a lie. */
  item(value: unknown): boolean
  done(value: unknown): void
  fail(error: unknown): void
  /** Undoes what watches signal and deadline. */
  stop?: () => void
}

/** The caller's side of a channel. */
export interface Caller {
  readonly graceMs: number
  post(message: Message, label: string): void
  /** Gives it an id; fails it when the far side is gone. */
  enlist(waiting: Waiting): number
  /** Ends it without the far side's word, unless it has ended. */
  settle(id: number, outcome: { error: unknown } | undefined): void
}

type Method = (...args: unknown[]) => unknown

/** Builds what is called like the far implementation: a plain object from the token's table, nothing else. */
export function createStub(caller: Caller, path: string, methods: Readonly<Record<string, MethodKind>>, only?: readonly string[]) {
  const kinds = Object.entries(methods).filter(([method]) => only?.includes(method) ?? true)
  return Object.fromEntries(kinds.map(([method, kind]) => [method, (kind === 'call' ? callOf : streamOf)(caller, path, method)]))
}

function callOf(caller: Caller, path: string, method: string): Method {
  const label = `${path}.${method}`
  return (...args) =>
    new Promise((done, fail) => {
      const use = takeUse(args, label)
      const id = caller.enlist({ item: () => false, done, fail })
      caller.post([CALL, id, path, method, args, plainUse(use)], label)
      follow(caller, id, use, label)
    })
}

function streamOf(caller: Caller, path: string, method: string): Method {
  const label = `${path}.${method}`
  return (...args) => {
    const use = takeUse(args, label)
    return read(caller, label, use, id => caller.post([CALL, id, path, method, args, plainUse(use)], label))
  }
}

/** The last argument, taken off the others. */
function takeUse(args: unknown[], label: string): Use {
  const use = args.pop() as Use | undefined
  if (!(use?.signal instanceof AbortSignal)) throw useMissing(label)
  return use
}

const LONGEST_TIMER = 2 ** 31 - 1

/**
 * Lets signal and deadline cross. What follows an abort is the far side's answer, as it would be in one process: it may still bring a partial result.
 * Only a far side that says nothing within the grace time is given up.
 */
function follow(caller: Caller, id: number, { signal, deadline }: Use, label: string): (() => void) | undefined {
  let timer: NodeJS.Timeout | undefined
  const leave = (reason: unknown) => {
    stop()
    caller.post([ABORT, id, toWire(reason)], label)
    timer = setTimeout(() => caller.settle(id, { error: reason }), caller.graceMs)
  }
  const onAbort = () => leave(signal.reason)
  const stop = () => {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
  }
  const ms = (deadline ?? Number.POSITIVE_INFINITY) - Date.now()
  signal.addEventListener('abort', onAbort, { once: true })
  if (ms <= LONGEST_TIMER) timer = setTimeout(() => leave(deadlineOver(label)), Math.max(0, ms))
  if (signal.aborted) onAbort()
  return stop
}
