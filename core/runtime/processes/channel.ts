import { defineService, type ServiceToken, type SlotToken, type CallContext } from '@svc/core'
import { type ChannelLimits, cannotCross, notPlain, pluginGone, toWire } from './errors.ts'
import { ANSWER, CALL, nonPlainPart, FAIL, HELLO, ITEM, isMessage, type Message, PROTOCOL, SHAPE, type Shape } from './message.ts'
import { ChannelServer } from './serve.ts'
import { createCaller } from './stub.ts'
import type { Transport } from './wire.ts'

/** A contract to offer or reach: the token of a service, or of a slot for its items. */
export type Contract<T> = ServiceToken<T> | SlotToken<T>

export interface ReachOptions {
  /** Creates only these methods: the optional ones that the remote item has (`methodsOf`). */
  readonly only?: readonly string[]
  /** The data members of the item (`dataOf`). */
  readonly data?: object
}

export interface ChannelOptions {
  /** The name of the other side, for errors. */
  readonly name: string
  /** The name of this side, for errors about values that cannot cross. Default: `name`. */
  readonly self?: string
  /**
   * Milliseconds that the other side has to end a call that was aborted or left. Then the caller continues without it. Default
   * 5000.
   */
  readonly graceMs?: number
  /** Receives errors without a code before they cross as INTERNAL_ERROR, so that this side can log their stack. */
  readonly onError?: (error: unknown, where: string) => void
  /** Errors of calls cross with their stack: for a side that the other one does not have to keep its code from. */
  readonly sendsStacks?: boolean
  /** Limits of what an untrusted side can occupy here at a time. Default: none. */
  readonly callLimits?: ChannelLimits
  /** The other side broke the protocol, and the channel is closed. */
  readonly onBreach?: (why: string) => void
}

/** Calls and streams of any contract over one transport, in both directions. */
export interface Channel extends Disposable {
  readonly name: string
  /** Aborts when the channel is closed. The reason is the PLUGIN_GONE error that pending calls get. */
  readonly signal: AbortSignal
  /** Offers an implementation to the other side and returns the removal. */
  offer<T>(path: string, token: Contract<T>, implementation: NoInfer<T>): () => void
  /** Returns a stub of what the other side offers at `path`, now or later. Its methods come from this side's token. */
  reach<T>(path: string, token: Contract<T>, options?: ReachOptions): T
  /** Compares the contracts that were reached so far with those of the other side. Throws CONTRACT_MISMATCH. */
  handshake(ctx: CallContext): Promise<void>
  /** Sends pending messages and closes the channel. Pending calls on both sides fail with PLUGIN_GONE. */
  readonly close: () => void
}

interface Greeting {
  greet(ctx: CallContext): Promise<void>
}
const Greeting = defineService<Greeting>('greeting', { api: 1, methods: { greet: 'call' } })

/** Opens a channel over a transport: `openChannel(socketTransport(socket), { name: 'weather' })`. */
export function openChannel(transport: Transport, options: ChannelOptions): Channel {
  const { name, self = name, graceMs = 5000, onError, onBreach, sendsStacks = false, callLimits = NO_LIMITS } = options
  const ending = new AbortController()
  const over = ending.signal
  /** Replaces a message that cannot cross: a result becomes a failure, a call fails here. */
  const refuse = (message: Message, error: Error): Message | undefined => {
    if (message[0] === CALL) caller.fail(message[1], error)
    if (message[0] === ITEM) server.drop(message[1])
    if (message[0] === FAIL && !transport.strict) return [FAIL, message[1], { ...message[2], details: {} }]
    return message[0] === ITEM || message[0] === ANSWER || message[0] === FAIL ? [FAIL, message[1], toWire(error)] : undefined
  }
  const { post, flush } = createOutbox(transport, self, over, refuse)
  const server = new ChannelServer({ self, name, over, post, onError, sendsStacks, callLimits })
  const caller = createCaller({ name, graceMs, over, post, callLimits })

  const end = (why: string, isBreach = false) => {
    if (over.aborted) return
    ending.abort(pluginGone(name, why))
    server.stop()
    caller.stop()
    if (isBreach) onBreach?.(why)
  }
  const receive = (message: Message, bytes: number) => {
    if (message[0] === HELLO) return message[1] === PROTOCOL
    const isAnswer = message[0] === ANSWER || message[0] === ITEM || message[0] === FAIL
    return isAnswer ? caller.take(message, bytes) : server.take(message, bytes)
  }
  const receiveAll = (batch: unknown, bytes = 0) => {
    const each = Array.isArray(batch) ? bytes / batch.length : 0
    const good = Array.isArray(batch) && batch.every(message => over.aborted || (isMessage(message) && receive(message, each)))
    if (good) return
    end('it sent an invalid message', true)
    transport.close()
  }
  const close = () => {
    flush()
    end('the channel was closed')
    transport.close()
  }
  const reach = <T>(path: string, token: Contract<T>, { only, data }: ReachOptions = {}): T => {
    post([SHAPE, path, shapeOf(token)], path)
    // The only cast: the method table follows from the interface by type, so the stub implements it.
    return Object.freeze({ ...data, ...caller.stub(path, token.methods, only) }) as T
  }
  transport.listen(receiveAll, end)
  post([HELLO, PROTOCOL], 'hello')
  server.offer('', shapeOf(Greeting), { greet: async () => server.check() })
  return {
    name,
    signal: over,
    offer: (path, token, implementation) => server.offer(path, shapeOf(token), implementation as object),
    reach,
    handshake: ctx => reach('', Greeting).greet(ctx),
    close,
    [Symbol.dispose]: close,
  }
}

const NO_LIMITS: ChannelLimits = { calls: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY }

const shapeOf = ({ name, api, methods }: Shape): Shape => ({ name, api, methods })

/** Sends the messages of one event loop turn together. A message that cannot cross is separated from the others. */
function createOutbox(
  transport: Transport,
  self: string,
  over: AbortSignal,
  refuse: (message: Message, error: Error) => Message | undefined
) {
  let messages: Message[] = []
  let labels: string[] = []
  const sendOne = (message: Message, label: string) => {
    try {
      transport.send([message])
    } catch (error) {
      const cheat = nonPlainPart(message, label)
      const other = refuse(message, cheat ? notPlain(self, cheat) : cannotCross(self, label, error))
      if (other) sendOne(other, label)
    }
  }
  const flush = () => {
    const [batch, names] = [messages, labels]
    messages = []
    labels = []
    if (over.aborted || batch.length === 0) return
    try {
      transport.send(batch)
    } catch {
      batch.forEach((message, i) => sendOne(message, names[i]!))
    }
  }
  const post = (message: Message, label: string) => {
    if (over.aborted) return
    const cheat = transport.strict ? nonPlainPart(message, label) : undefined
    const sendable = cheat ? refuse(message, notPlain(self, cheat)) : message
    if (!sendable) return
    if (messages.push(sendable) === 1) process.nextTick(flush)
    labels.push(label)
  }
  return { post, flush }
}

/** Names of the methods that an item has. */
export function methodsOf<T>(token: Contract<T>, item: T): string[] {
  return Object.keys(token.methods).filter(method => typeof Reflect.get(item as object, method) === 'function')
}

/** Data members of an item. */
export function dataOf<T>(token: Contract<T>, item: T): Record<string, unknown> {
  return Object.fromEntries(Object.entries(item as object).filter(([key]) => !Object.hasOwn(token.methods, key)))
}
