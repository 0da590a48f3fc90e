import { defineService, type ServiceToken, type SlotToken, type CallContext } from '@svc/core'
import { type CallLimits, cannotCross, notPlain, pluginGone, toWire } from './errors.ts'
import { ANSWER, CALL, nonPlainPart, FAIL, HELLO, ITEM, isMessage, type Message, PROTOCOL, SHAPE, type Shape } from './message.ts'
import { Server } from './serve.ts'
import { createCaller } from './stub.ts'
import type { Transport } from './wire.ts'

/** What can be offered and reached: the token of a service, or of a slot for its items. */
export type Contract<T> = ServiceToken<T> | SlotToken<T>

export interface ReachOptions {
  /** Builds only these methods: the optional ones that the far item really has (`methodsOf`). */
  readonly only?: readonly string[]
  /** The item's members that are no methods, fixed (`dataOf`). */
  readonly data?: object
}

export interface ChannelOptions {
  /** The far side's name: "the process of <name> is gone". */
  readonly name: string
  /** This side's name: whom to blame when something is sent that may not cross. Default: `name`. */
  readonly self?: string
  /** Milliseconds that the far side has to end what was aborted or left; then its caller goes on without it. Default 5000. */
  readonly graceMs?: number
  /** Hears of errors without a code before they cross as INTERNAL_ERROR: their stack belongs into this side's log. */
  readonly onError?: (error: unknown, where: string) => void
  /** What a far side that is not trusted may make this one hold at a time. Default: as much as it likes. */
  readonly callLimits?: CallLimits
  /** The far side has done what it may not: the channel is over. */
  readonly onBreach?: (why: string) => void
}

/** Calls and streams of any contract over one transport, both ways. */
export interface Channel extends Disposable {
  readonly name: string
  /** Aborts when the channel is over; its reason is the PLUGIN_GONE error that waiting calls get. */
  readonly signal: AbortSignal
  /** Lets the far side reach an implementation; returns the removal. */
  offer<T>(path: string, token: Contract<T>, implementation: NoInfer<T>): () => void
  /** A stub of what the far side offers at `path`, now or later. Its methods come from this side's own token. */
  reach<T>(path: string, token: Contract<T>, options?: ReachOptions): T
  /** Compares the contracts of all that was reached so far with the far side's. Throws CONTRACT_MISMATCH. */
  handshake(ctx: CallContext): Promise<void>
  /** Sends what is ready, then ends: calls that wait, here and there, fail with PLUGIN_GONE. */
  readonly close: () => void
}

interface Greeting {
  greet(ctx: CallContext): Promise<void>
}
const Greeting = defineService<Greeting>('greeting', { api: 1, methods: { greet: 'call' } })

/** Opens a channel over a transport: `openChannel(socketTransport(socket), { name: 'weather' })`. */
export function openChannel(transport: Transport, options: ChannelOptions): Channel {
  const { name, self = name, graceMs = 5000, onError, onBreach, callLimits = NO_LIMITS } = options
  const ending = new AbortController()
  const over = ending.signal
  /** What to say instead of a message that may not cross: an answer becomes a failure, a call fails here. */
  const refuse = (message: Message, error: Error): Message | undefined => {
    if (message[0] === CALL) caller.fail(message[1], error)
    if (message[0] === ITEM) server.drop(message[1])
    if (message[0] === FAIL && !transport.strict) return [FAIL, message[1], { ...message[2], details: {} }]
    return message[0] === ITEM || message[0] === ANSWER || message[0] === FAIL ? [FAIL, message[1], toWire(error)] : undefined
  }
  const { post, flush } = createOutbox(transport, self, over, refuse)
  const server = new Server({ self, name, over, post, onError, callLimits })
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
    end('it does not speak the words of this channel', true)
    transport.close()
  }
  const close = () => {
    flush()
    end('the channel was closed')
    transport.close()
  }
  const reach = <T>(path: string, token: Contract<T>, { only, data }: ReachOptions = {}): T => {
    post([SHAPE, path, shapeOf(token)], path)
    // The table follows from the interface by type, so what it builds is that interface: the one place where this is said.
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

const NO_LIMITS: CallLimits = { calls: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY }

const shapeOf = ({ name, api, methods }: Shape): Shape => ({ name, api, methods })

/** Gathers what is said in one turn of the loop into one send; a message that may not cross is kept from the others. */
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

/** The methods of its table that an item really has. */
export function methodsOf<T>(token: Contract<T>, item: T): string[] {
  return Object.keys(token.methods).filter(method => typeof Reflect.get(item as object, method) === 'function')
}

/** The members of an item that are no methods of its contract. */
export function dataOf<T>(token: Contract<T>, item: T): Record<string, unknown> {
  return Object.fromEntries(Object.entries(item as object).filter(([key]) => !Object.hasOwn(token.methods, key)))
}
