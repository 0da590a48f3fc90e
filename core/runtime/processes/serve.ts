import { codeOf } from '@svc/core'
import { contractMismatch, differenceOf } from '@svc/core/internal'
import {
  type ChannelLimits,
  askedTooMuch,
  fromWire,
  methodUnknown,
  nothingOffered,
  readerLeft,
  toWire,
  toWireWithStack,
} from './errors.ts'
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
  SHAPE,
  type Shape,
  WINDOW,
} from './message.ts'

export interface ChannelServerOptions {
  /** The names of this side, for errors, and of the other side. */
  readonly self: string
  readonly name: string
  /** Aborted when the other side is gone. */
  readonly over: AbortSignal
  readonly post: (message: Message, label: string) => void
  readonly onError?: ((error: unknown, where: string) => void) | undefined
  readonly sendsStacks: boolean
  readonly callLimits: ChannelLimits
}
interface Offered {
  readonly shape: Shape
  readonly implementation: object
}
/** One call or stream that runs for the other side. */
interface Running {
  readonly controller: AbortController
  /** Bytes of its arguments. */
  readonly bytes: number
  credit: number
  left: boolean
  /** Set while a stream waits for its reader. */
  wake: (() => void) | undefined
}
type Method = (this: object, ...args: unknown[]) => unknown
type Call = Extract<Message, readonly [typeof CALL, ...unknown[]]>

/** The offering side of a channel. */
export class ChannelServer {
  readonly #options: ChannelServerOptions
  readonly #offers = new Map<string, Offered>()
  /** The contracts that the other side expects by path, and the paths where they match. */
  readonly #asked = new Map<string, Shape>()
  readonly #alike = new Set<string>()
  readonly #running = new Map<number, Running>()
  #runningBytes = 0
  #askedBytes = 0

  constructor(options: ChannelServerOptions) {
    this.#options = options
  }

  offer(path: string, shape: Shape, implementation: object): () => void {
    const mine = { shape, implementation }
    this.#offers.set(path, mine)
    this.#alike.delete(path)
    return () => void (this.#offers.get(path) === mine && this.#offers.delete(path))
  }

  /** Returns whether the message is valid. */
  take(message: Message, bytes: number): boolean {
    if (message[0] === CALL && this.#running.has(message[1])) return false
    if (message[0] === SHAPE) return this.#ask(message[1], message[2], bytes)
    if (message[0] === CALL) void this.#run(message, bytes)
    else if (message[0] === CREDIT) addCredit(this.#running.get(message[1]), message[2])
    else if (message[0] === RETURN) this.drop(message[1])
    else if (message[0] === ABORT) this.#running.get(message[1])?.controller.abort(fromWire(message[2]))
    return true
  }

  /** Ends the work of one call. */
  drop(id: number): void {
    leave(this.#running.get(id), readerLeft())
  }

  /** Throws CONTRACT_MISMATCH when the other side expects another contract. */
  check(): void {
    for (const path of this.#asked.keys()) this.#checkPath(path)
  }

  /** Aborts all calls and ends all streams, because the other side is gone. */
  stop(): void {
    this.#offers.clear()
    for (const item of this.#running.values()) {
      item.controller.abort(this.#options.over.reason)
      leave(item, this.#options.over.reason)
    }
  }

  #ask(path: string, shape: Shape, bytes: number): boolean {
    this.#asked.set(path, shape)
    this.#alike.delete(path)
    this.#askedBytes += bytes
    return this.#askedBytes <= this.#options.callLimits.bytes
  }

  #checkPath(path: string) {
    if (this.#alike.has(path)) return
    const [ours, theirs] = [this.#offers.get(path)?.shape, this.#asked.get(path)]
    const difference = ours && theirs && shapeDifference(theirs, ours)
    if (difference) throw contractMismatch(this.#options.name, ours.name, difference)
    this.#alike.add(path)
  }

  #find(path: string, method: string): Offered {
    const { self } = this.#options
    const offered = this.#offers.get(path)
    if (!offered) throw nothingOffered(self, path)
    this.#checkPath(path)
    // The method table of this side decides, so a caller reaches no prototype and no private member.
    if (!Object.hasOwn(offered.shape.methods, method)) throw methodUnknown(self, path, method)
    if (typeof Reflect.get(offered.implementation, method) !== 'function') throw methodUnknown(self, path, method)
    return offered
  }

  #begin(id: number, bytes: number): Running {
    const running: Running = { controller: new AbortController(), bytes, credit: WINDOW, left: false, wake: undefined }
    this.#running.set(id, running)
    this.#runningBytes += bytes
    return running
  }

  #end(id: number, { bytes }: Running) {
    this.#running.delete(id)
    this.#runningBytes -= bytes
  }

  #checkRoom() {
    const { name, callLimits: held } = this.#options
    if (this.#running.size > held.calls || this.#runningBytes > held.bytes) throw askedTooMuch(name, held)
  }

  async #run([, id, path, method, args, wire]: Call, bytes: number) {
    const { post, onError, sendsStacks } = this.#options
    const label = `${path}.${method}`
    const found = this.#begin(id, bytes)
    try {
      if (wire.aborted) found.controller.abort(fromWire(wire.aborted))
      this.#checkRoom()
      const { shape, implementation } = this.#find(path, method)
      const begin = Reflect.get(implementation, method) as Method
      const result = begin.call(implementation, ...args, { ...plainContext(wire), signal: found.controller.signal })
      const send = (item: unknown) => post([ITEM, id, item], label)
      const value = shape.methods[method] === 'call' ? await result : await pump(found, result as AsyncIterable<unknown>, send)
      this.#end(id, found)
      post([ANSWER, id, value], label)
    } catch (error) {
      this.#end(id, found)
      // A generator can react to its end by throwing.
      if (found.left && found.controller.signal.aborted) return post([ANSWER, id, undefined], label)
      if (codeOf(error) === undefined) onError?.(error, label)
      post([FAIL, id, sendsStacks ? toWireWithStack(error) : toWire(error)], label)
    }
  }
}

function leave(item: Running | undefined, reason: unknown) {
  if (!item) return
  item.left = true
  // A generator that waits for its source ends only by its signal. One that waits for its reader ends on its own.
  if (item.wake) item.wake()
  else item.controller.abort(reason)
}

function addCredit(item: Running | undefined, items: number) {
  if (!item) return
  // Credit beyond the window would fill the memory of this side.
  item.credit = Math.min(WINDOW, item.credit + Math.max(0, items))
  item.wake?.()
}

function shapeDifference(theirs: Shape, ours: Shape): string | undefined {
  return theirs.name === ours.name ? differenceOf(theirs, ours) : `it is "${ours.name}" here and "${theirs.name}" there`
}

/**
 * Runs a stream. It requests the next item only while the reader has credit. Leaving the loop runs the `finally` of the
 * generator.
 */
async function pump(running: Running, items: AsyncIterable<unknown>, send: (item: unknown) => void): Promise<void> {
  for await (const item of items) {
    if (running.left) break
    send(item)
    running.credit--
    while (running.credit === 0 && !running.left) await new Promise<void>(resolve => (running.wake = resolve))
    running.wake = undefined
    if (running.left) break
  }
}
