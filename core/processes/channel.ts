import type { ServiceToken, SlotToken, Use } from '../src/token.ts'
import { cannotCross, channelBroken, fromWire, notPlain, pluginGone, toWire } from './errors.ts'
import { ANSWER, CALL, cheatIn, FAIL, HELLO, ITEM, isMessage, type Message, PROTOCOL, SHAPE, type Shape } from './message.ts'
import { createServer } from './serve.ts'
import { askShapes, type Caller, createStub, type Receiver } from './stub.ts'
import type { Transport } from './wire.ts'

/** A contract: the token of a service or of a slot's items. */
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
  readonly onFault?: (error: unknown, where: string) => void
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
  handshake(use: Use): Promise<void>
  /** Sends what is ready, then ends: calls that wait, here and there, fail with PLUGIN_GONE. */
  close(): void
}

/** Opens a channel over a transport: `openChannel(socketTransport(socket), { name: 'weather' })`. */
export function openChannel(transport: Transport, options: ChannelOptions): Channel {
  const { name, self = name, graceMs = 5000 } = options
  const over = new AbortController()
  const receivers = new Map<number, Receiver>()
  const outbox = createOutbox(transport, self, over.signal, (message, error) => undeliverable(message, error))
  const { post } = outbox
  const server = createServer({ self, name, post, onFault: options.onFault })
  let lastId = 0

  const undeliverable = (message: Message, error: Error) => {
    if (message[0] === CALL) return receivers.get(message[1])?.fail(error)
    if (message[0] === ITEM) server.drop(message[1])
    const failed = message[0] === FAIL && !transport.strict ? { ...message[2], details: {} } : toWire(error)
    if (message[0] === ITEM || message[0] === ANSWER || message[0] === FAIL) post([FAIL, message[1], failed], 'error')
  }
  const end = (why: string) => {
    if (over.signal.aborted) return
    const error = pluginGone(name, why)
    over.abort(error)
    server.stop(error)
    for (const receiver of receivers.values()) receiver.fail(error)
  }
  const receive = (message: Message): boolean => {
    if (message[0] === HELLO) return message[1] === PROTOCOL
    if (message[0] === ITEM) return receivers.get(message[1])?.item(message[2]) ?? true
    if (message[0] === ANSWER) receivers.get(message[1])?.done(message[2])
    else if (message[0] === FAIL) receivers.get(message[1])?.fail(fromWire(message[2]))
    else return server.take(message)
    return true
  }
  const receiveAll = (batch: unknown) => {
    for (const message of Array.isArray(batch) ? batch : [batch]) {
      if (over.signal.aborted) return
      if (isMessage(message) && receive(message)) continue
      end(channelBroken(name, 'an unknown word').message)
      return transport.close()
    }
  }
  const caller: Caller = {
    graceMs,
    post,
    enlist(receiver) {
      if (over.signal.aborted) queueMicrotask(() => receiver.fail(over.signal.reason))
      else receivers.set(++lastId, receiver)
      return lastId
    },
    delist: id => void receivers.delete(id),
  }
  const close = () => {
    outbox.flush()
    end('the channel was closed')
    transport.close()
  }
  transport.listen(receiveAll, end)
  post([HELLO, PROTOCOL], 'hello')
  return {
    name,
    signal: over.signal,
    offer: (path, token, implementation) => server.offer(path, shapeOf(token), implementation as object),
    reach<T>(path: string, token: Contract<T>, { only, data }: ReachOptions = {}): T {
      post([SHAPE, path, shapeOf(token)], path)
      // The table follows from the interface by type, so what it builds is the interface: the one place where that is said.
      return Object.freeze({ ...data, ...createStub(caller, path, token.methods, only) }) as T
    },
    handshake: use => askShapes(caller, use),
    close,
    [Symbol.dispose]: close,
  }
}

const shapeOf = ({ name, api, methods }: Contract<never>): Shape => ({ name, api, methods })

interface Outbox {
  post(message: Message, label: string): void
  flush(): void
}

/** Gathers what is said in one turn of the loop into one send; a message that may not cross is kept from the others. */
function createOutbox(
  transport: Transport,
  self: string,
  over: AbortSignal,
  refuse: (message: Message, error: Error) => void
): Outbox {
  let messages: Message[] = []
  let labels: string[] = []
  const sendOne = (message: Message, label: string) => {
    try {
      transport.send([message])
    } catch (error) {
      const cheat = cheatIn(message, label)
      refuse(message, cheat ? notPlain(self, cheat) : cannotCross(self, label, error))
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
  return {
    flush,
    post(message, label) {
      if (over.aborted) return
      const cheat = transport.strict ? cheatIn(message, label) : undefined
      if (cheat) return refuse(message, notPlain(self, cheat))
      if (messages.push(message) === 1) process.nextTick(flush)
      labels.push(label)
    },
  }
}
