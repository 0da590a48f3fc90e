import { codeOf, contractMismatch } from '../src/errors.ts'
import { differenceOf } from '../src/order.ts'
import { fromWire, methodUnknown, nothingOffered, readerLeft, toWire } from './errors.ts'
import {
  ABORT,
  ANSWER,
  CALL,
  CREDIT,
  FAIL,
  ITEM,
  type Message,
  plainUse,
  RETURN,
  SHAPE,
  type Shape,
  WINDOW,
  type WireUse,
} from './message.ts'

/** The offering side of a channel. */
export interface Server {
  offer(path: string, shape: Shape, implementation: object): () => void
  /** Answers whether the message may be. */
  take(message: Message): boolean
  /** Ends the work for one caller: its answer could not be sent. */
  drop(id: number): void
  /** Throws CONTRACT_MISMATCH when something the far side reached has another form here. */
  check(): void
  /** The far side is gone: aborts what runs for it and ends its streams. */
  stop(): void
}
interface ServerOptions {
  /** This side's name, for errors, and the far side's. */
  readonly self: string
  readonly name: string
  /** Has aborted when the far side is gone. */
  readonly over: AbortSignal
  post(message: Message, label: string): void
  onFault?: ((error: unknown, where: string) => void) | undefined
}

interface Offered {
  readonly shape: Shape
  readonly implementation: object
}
/** One call or stream that runs for the far side. */
interface Running {
  readonly controller: AbortController
  credit: number
  left: boolean
  /** Set while a stream waits for its reader. */
  wake: (() => void) | undefined
}
type Method = (this: object, ...args: unknown[]) => unknown

export function createServer({ self, name, over, post, onFault }: ServerOptions): Server {
  const offers = new Map<string, Offered>()
  const asked = new Map<string, Shape>()
  const running = new Map<number, Running>()
  const alike = new Set<string>()

  const checkPath = (path: string) => {
    if (alike.has(path)) return
    const [ours, theirs] = [offers.get(path)?.shape, asked.get(path)]
    const difference = ours && theirs && shapeDifference(theirs, ours)
    if (difference) throw contractMismatch(name, ours.name, difference)
    alike.add(path)
  }
  const ask = (path: string, shape: Shape) => {
    asked.set(path, shape)
    alike.delete(path)
  }
  const find = (path: string, method: string): Offered => {
    const offered = offers.get(path)
    if (!offered) throw nothingOffered(self, path)
    checkPath(path)
    // This side's own table says what there is: no word of the caller reaches a prototype or a private member.
    if (!Object.hasOwn(offered.shape.methods, method)) throw methodUnknown(self, path, method)
    if (typeof Reflect.get(offered.implementation, method) !== 'function') throw methodUnknown(self, path, method)
    return offered
  }
  const run = async (id: number, path: string, method: string, args: unknown[], wire: WireUse) => {
    const label = `${path}.${method}`
    const one: Running = { controller: new AbortController(), credit: WINDOW, left: false, wake: undefined }
    running.set(id, one)
    try {
      const { shape, implementation } = find(path, method)
      const begin = Reflect.get(implementation, method) as Method
      const result = begin.call(implementation, ...args, { ...plainUse(wire), signal: one.controller.signal })
      const value =
        shape.methods[method] === 'call'
          ? await result
          : await pump(one, result as AsyncIterable<unknown>, item => post([ITEM, id, item], label))
      running.delete(id)
      post([ANSWER, id, value], label)
    } catch (error) {
      running.delete(id)
      // A generator that was told to stop may well say so by throwing.
      if (one.left && one.controller.signal.aborted) return post([ANSWER, id, undefined], label)
      if (codeOf(error) === undefined) onFault?.(error, label)
      post([FAIL, id, toWire(error)], label)
    }
  }
  const leave = (one: Running | undefined, reason: unknown) => {
    if (!one) return
    one.left = true
    // A generator that waits for its own source ends only when it is told; one that waits for its reader ends by itself.
    if (one.wake) one.wake()
    else one.controller.abort(reason)
  }
  const credit = (one: Running | undefined, items: number) => {
    if (!one) return
    // Room beyond the window would fill this side's memory, so nobody can ask for it.
    one.credit = Math.min(WINDOW, one.credit + Math.max(0, items))
    one.wake?.()
  }
  return {
    offer(path, shape, implementation) {
      const mine = { shape, implementation }
      offers.set(path, mine)
      alike.delete(path)
      return () => void (offers.get(path) === mine && offers.delete(path))
    },
    take(message) {
      if (message[0] === CALL && running.has(message[1])) return false
      if (message[0] === CALL) void run(message[1], message[2], message[3], message[4], message[5])
      else if (message[0] === SHAPE) ask(message[1], message[2])
      else if (message[0] === CREDIT) credit(running.get(message[1]), message[2])
      else if (message[0] === RETURN) leave(running.get(message[1]), readerLeft())
      else if (message[0] === ABORT) running.get(message[1])?.controller.abort(fromWire(message[2]))
      return true
    },
    drop: id => leave(running.get(id), readerLeft()),
    check: () => [...asked.keys()].forEach(checkPath),
    stop() {
      offers.clear()
      for (const one of running.values()) {
        one.controller.abort(over.reason)
        leave(one, over.reason)
      }
    },
  }
}

function shapeDifference(theirs: Shape, ours: Shape): string | undefined {
  return theirs.name === ours.name ? differenceOf(theirs, ours) : `it is "${ours.name}" here and "${theirs.name}" there`
}

/** Runs a stream: asks its generator for the next item only while the reader has room for it. Leaving the loop runs its `finally`. */
async function pump(one: Running, items: AsyncIterable<unknown>, send: (item: unknown) => void): Promise<void> {
  for await (const item of items) {
    if (one.left) break
    send(item)
    one.credit--
    while (one.credit === 0 && !one.left) await new Promise<void>(resolve => (one.wake = resolve))
    one.wake = undefined
    if (one.left) break
  }
}
