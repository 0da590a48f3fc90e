import { codeOf, contractMismatch } from '../src/errors.ts'
import { differenceOf } from '../src/order.ts'
import type { Use } from '../src/token.ts'
import { fromWire, methodUnknown, nothingOffered, toWire } from './errors.ts'
import {
  ABORT,
  ANSWER,
  CALL,
  CHECK,
  CREDIT,
  FAIL,
  ITEM,
  type Message,
  RETURN,
  SHAPE,
  type Shape,
  WINDOW,
  type WireUse,
} from './message.ts'

/** The offering side of a channel. */
export interface Server {
  offer(path: string, shape: Shape, implementation: object): () => void
  /** Answers whether the message was one for this side and may be. */
  take(message: Message): boolean
  /** Ends the work for one caller: its answer could not be sent. */
  drop(id: number): void
  /** The far side is gone: aborts what runs for it and ends its streams. */
  stop(reason: unknown): void
}
export interface ServerOptions {
  /** This side's name, for errors. */
  readonly self: string
  /** The far side's name. */
  readonly name: string
  post(message: Message, label: string): void
  /** Hears of errors without a code, before they cross without their stack. */
  onFault?: ((error: unknown, where: string) => void) | undefined
}

interface Offered {
  readonly shape: Shape
  readonly implementation: object
}
/** One call or stream under way for the far side. */
interface Running {
  readonly controller: AbortController
  credit(items: number): void
  leave(): void
}

type Method = (this: object, ...args: unknown[]) => unknown

export function createServer(options: ServerOptions): Server {
  const offers = new Map<string, Offered>()
  const asked = new Map<string, Shape>()
  const running = new Map<number, Running>()
  const refusalOf = (path: string) => {
    const [ours, theirs] = [offers.get(path)?.shape, asked.get(path)]
    const difference = ours && theirs && shapeDifference(theirs, ours)
    return difference ? contractMismatch(options.name, ours.name, difference) : undefined
  }
  const call = (id: number, path: string, method: string, args: unknown[], wire: WireUse): boolean => {
    if (running.has(id)) return false
    const label = `${path}.${method}`
    const fail = (error: unknown) => options.post([FAIL, id, toWire(error)], label)
    const offered = offers.get(path)
    if (!offered) return (fail(nothingOffered(options.self, path)), true)
    // This side's own table says what there is: no word of the caller reaches a prototype or a private member.
    const kind = Object.hasOwn(offered.shape.methods, method) ? offered.shape.methods[method] : undefined
    const run = kind && (Reflect.get(offered.implementation, method) as Method | undefined)
    const refusal = refusalOf(path) ?? (typeof run === 'function' ? undefined : methodUnknown(options.self, path, method))
    if (refusal || !run) return (fail(refusal), true)
    const controller = new AbortController()
    const job: Job = { id, label, controller, fault: options.onFault, post: options.post, end: () => running.delete(id), fail }
    const begin = () => run.call(offered.implementation, ...args, useOf(wire, controller.signal))
    running.set(id, kind === 'call' ? answer(job, begin) : stream(job, begin))
    return true
  }
  const check = (id: number) => {
    const refusal = [...asked.keys()].map(refusalOf).find(Boolean)
    options.post(refusal ? [FAIL, id, toWire(refusal)] : [ANSWER, id, undefined], 'handshake')
  }
  return {
    offer(path, shape, implementation) {
      const mine: Offered = { shape, implementation }
      offers.set(path, mine)
      return () => void (offers.get(path) === mine && offers.delete(path))
    },
    take(message) {
      if (message[0] === CALL) return call(message[1], message[2], message[3], message[4], message[5])
      if (message[0] === SHAPE) asked.set(message[1], message[2])
      else if (message[0] === CHECK) check(message[1])
      else if (message[0] === CREDIT) running.get(message[1])?.credit(message[2])
      else if (message[0] === RETURN) running.get(message[1])?.leave()
      else if (message[0] === ABORT) running.get(message[1])?.controller.abort(fromWire(message[2]))
      else return false
      return true
    },
    drop: id => running.get(id)?.leave(),
    stop(reason) {
      for (const one of running.values()) {
        one.controller.abort(reason)
        one.leave()
      }
      offers.clear()
    },
  }
}

function shapeDifference(theirs: Shape, ours: Shape): string | undefined {
  return theirs.name === ours.name ? differenceOf(theirs, ours) : `it is "${ours.name}" here and "${theirs.name}" there`
}

// Only the known words: what else the far side may have put there goes no further.
function useOf({ principal, requestId, trace, deadline }: WireUse, signal: AbortSignal): Use {
  return {
    signal,
    principal,
    requestId,
    ...(trace === undefined ? {} : { trace }),
    ...(deadline === undefined ? {} : { deadline }),
  }
}

interface Job {
  readonly id: number
  readonly label: string
  readonly controller: AbortController
  readonly fault: ServerOptions['onFault']
  post(message: Message, label: string): void
  end(): void
  fail(error: unknown): void
}

function failJob(job: Job, error: unknown) {
  if (codeOf(error) === undefined) job.fault?.(error, job.label)
  job.end()
  job.fail(error)
}

function doneJob(job: Job, value?: unknown) {
  job.end()
  job.post([ANSWER, job.id, value], job.label)
}

/** Runs a call. The contract says Promise; what throws at once is a failure all the same. */
function answer(job: Job, begin: () => unknown): Running {
  const run = async () => {
    try {
      doneJob(job, await begin())
    } catch (error) {
      failJob(job, error)
    }
  }
  queueMicrotask(() => void run())
  return { controller: job.controller, credit() {}, leave: () => job.controller.abort() }
}

/** Runs a stream: asks its generator for the next item only while the reader has room for it. */
function stream(job: Job, begin: () => unknown): Running {
  let credit = WINDOW
  let left = false
  let busy = false
  let wake: (() => void) | undefined
  const room = () => new Promise<void>(resolve => (wake = resolve))
  const pump = async () => {
    const iterator = (begin() as AsyncIterable<unknown>)[Symbol.asyncIterator]()
    while (!left) {
      while (credit === 0 && !left) await room()
      if (left) break
      busy = true
      const step = await iterator.next()
      busy = false
      if (step.done) return
      if (left) break
      credit--
      job.post([ITEM, job.id, step.value], job.label)
    }
    await iterator.return?.()
  }
  const run = async () => {
    try {
      await pump()
      doneJob(job)
    } catch (error) {
      if (left && busy) doneJob(job)
      else failJob(job, error)
    }
  }
  queueMicrotask(() => void run())
  return {
    controller: job.controller,
    credit(items) {
      // Room beyond the window would fill this side's memory, so nobody can ask for it.
      credit = Math.min(WINDOW, credit + Math.max(0, items))
      wake?.()
    },
    leave() {
      left = true
      // A generator that waits for its own source ends only when it is told; one that waits for room ends by itself.
      if (busy) job.controller.abort(new DOMException('the reader left', 'AbortError'))
      wake?.()
    },
  }
}
