import { type BusEvent, type CallContext, type Events, type Log, withTimeout } from '@svc/core'
import type { FeedEvent, Json, Peers } from '@svc/core/contracts'
import { CLOSED, type EventRing, isClosing, type NumberedEvent, OPENED } from './ring.ts'

/** The topic between the workers. */
export const TOPIC = 'event-feed'
/** Events are sent to the other workers together. */
const SEND_MS = 50
const MOST_AT_ONCE = 500
/** A worker that starts waits so long for the events that the others keep. */
const JOIN_MS = 2_000
/** A worker that ends waits so long until the others have its last events. */
const LEAVE_MS = 2_000
/** Bytes of a message. The bus of a cluster takes 64 KiB, with what it adds. */
const MOST_BYTES = 56 * 1024
/** Bytes. Larger data does not leave its worker: the feed shows that it was there. */
const MOST_DATA = 16 * 1024

interface ExchangeOptions {
  /** The name of this worker. */
  readonly worker: string
  readonly ring: EventRing
  readonly events: Events
  readonly peers: Peers | undefined
  /** Milliseconds after the last reader of any worker for which this one collects events. */
  readonly lingerMs: number
  readonly log: Log
  readonly lasting: CallContext
}

/** Orders events of several workers by time. Those of one worker stay in the order of their numbers, even if its clock was set back. */
function inOrder(events: readonly NumberedEvent[]): NumberedEvent[] {
  const latest = new Map<string, number>()
  const timed = events
    .toSorted((a, b) => a.seq - b.seq)
    .map(event => {
      const time = Math.max(latest.get(event.worker) ?? 0, event.timestamp)
      latest.set(event.worker, time)
      return { event, time }
    })
  return timed.toSorted((a, b) => a.time - b.time).map(({ event }) => event)
}

/**
 * Fills the ring: with the events of this worker, which it sends to the others, and with theirs. Without a reader, it does not read the bus: an event then costs
 * next to nothing.
 */
export class Exchange implements Disposable {
  readonly #options: ExchangeOptions
  readonly #outgoing: NumberedEvent[] = []
  #sending: NodeJS.Timeout | undefined
  #readers = 0
  #reminding: NodeJS.Timeout | undefined
  #sleeping: NodeJS.Timeout | undefined
  /** Ends the collection. Undefined: this worker collects nothing. */
  #following: AbortController | undefined
  #followed: Promise<void> | undefined
  /** Events of others that arrive before those that happened before them. Undefined: this worker has got those. */
  #early: NumberedEvent[] | undefined = []

  constructor(options: ExchangeOptions) {
    this.#options = options
  }

  /** Gets the events that the others keep. Readers come afterwards. */
  async begin(): Promise<undefined> {
    await this.#broadcast(this.#options.worker, JOIN_MS)
    const early = this.#early ?? []
    this.#early = undefined
    for (const event of inOrder(early)) this.#options.ring.add(event)
  }

  /** Sends what is not sent yet, and that nothing follows. */
  async end(): Promise<void> {
    const { events, lasting } = this.#options
    if (!this.#following) return
    await events.publish(CLOSED, {}, lasting)
    await this.#followed
    clearTimeout(this.#sending)
    await Promise.all(messagesOf(this.#outgoing.splice(0)).map(some => this.#broadcast(some as unknown as Json, LEAVE_MS)))
  }

  /** A reader begins: all workers collect events until it is disposed, and some time longer. */
  #reader(): Disposable {
    this.#readers += 1
    this.#stayAwake()
    if (this.#readers === 1) {
      const remind = () => void this.#broadcast(true)
      remind()
      this.#reminding = setInterval(remind, this.#options.lingerMs / 3).unref()
    }
    return { [Symbol.dispose]: () => this.#readerLeft() }
  }

  /** While they are read, all workers collect events. */
  async *collected(events: AsyncIterable<FeedEvent>): AsyncGenerator<FeedEvent, void> {
    using _reader = this.#reader()
    yield* events
  }

  /** Takes events of another worker, `true` from one with a reader, or the name of one that starts and asks for those so far. */
  async take(message: Json): Promise<void> {
    const { worker, ring, events, peers, lasting } = this.#options
    if (message === true) this.#stayAwake()
    if (Array.isArray(message)) {
      const others = (message as unknown as NumberedEvent[]).filter(event => event.worker !== worker)
      if (this.#early) this.#early.push(...others)
      else for (const event of others) ring.add(event)
    }
    if (typeof message !== 'string' || message === worker || !peers || !this.#following) return
    // tells the new worker the number of this one, even if it has sent no event
    void events.publish(OPENED, {}, lasting)
    for (const some of messagesOf(ring.all())) await this.#tell(message, some as unknown as Json, peers)
    await this.#tell(message, true, peers)
  }

  [Symbol.dispose](): void {
    this.#following?.abort()
    clearInterval(this.#reminding)
    clearTimeout(this.#sleeping)
    clearTimeout(this.#sending)
  }

  #readerLeft(): void {
    this.#readers -= 1
    if (this.#readers === 0) clearInterval(this.#reminding)
    this.#stayAwake()
  }

  /** Collects events for the next `lingerMs`. */
  #stayAwake(): void {
    const { lingerMs, events, lasting } = this.#options
    clearTimeout(this.#sleeping)
    if (lasting.signal.aborted) return
    this.#sleeping = setTimeout(() => (this.#readers > 0 ? this.#stayAwake() : this.#sleep()), lingerMs).unref()
    if (this.#following) return
    this.#following = new AbortController()
    this.#followed = this.#follow(AbortSignal.any([lasting.signal, this.#following.signal]))
    void events.publish(OPENED, {}, lasting)
  }

  #sleep(): void {
    this.#following?.abort()
    this.#following = undefined
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { worker, ring, events, peers, lasting } = this.#options
    for await (const event of events.subscribe({}, { ...lasting, signal })) {
      const numbered = { worker, ...plain(event) }
      ring.add(numbered)
      if (peers) this.#outgoing.push(numbered)
      if (isClosing(numbered)) break
      if (peers) this.#sending ??= setTimeout(() => this.#send(), SEND_MS).unref()
    }
  }

  #send(): void {
    this.#sending = undefined
    for (const some of messagesOf(this.#outgoing.splice(0, MOST_AT_ONCE))) void this.#broadcast(some as unknown as Json)
    if (this.#outgoing.length > 0) this.#sending = setTimeout(() => this.#send(), SEND_MS).unref()
  }

  /** Waits for the others, but not longer than `limitMs`. */
  async #broadcast(message: Json, limitMs?: number): Promise<void> {
    const { peers, log, lasting } = this.#options
    if (!peers) return
    const sent = peers.broadcast(TOPIC, message, lasting)
    await (limitMs === undefined ? sent : withTimeout(limitMs, () => sent)).catch((err: unknown) =>
      log.debug({ err }, 'some workers did not receive the events of this worker in time')
    )
  }

  async #tell(to: string, message: Json, peers: Peers): Promise<void> {
    for await (const _ of peers.ask(to, TOPIC, message, this.#options.lasting)) break
  }
}

/** Divides events into lists that fit into a message, in their order. */
function messagesOf(events: readonly NumberedEvent[]): NumberedEvent[][] {
  const lists: NumberedEvent[][] = []
  let bytes = MOST_BYTES
  for (const event of events) {
    const more = Buffer.byteLength(JSON.stringify(event)) + 1
    const isFull = bytes + more > MOST_BYTES || lists.at(-1)!.length >= MOST_AT_ONCE
    if (isFull) lists.push([])
    bytes = isFull ? more : bytes + more
    lists.at(-1)!.push(event)
  }
  return lists
}

function plain({ category, type, data, timestamp, seq, principal, requestId }: BusEvent): Omit<NumberedEvent, 'worker'> {
  const text = JSON.stringify(data)
  const fits = Buffer.byteLength(text) <= MOST_DATA
  const shown = fits ? (JSON.parse(text) as NumberedEvent['data']) : { too_large: text.length }
  return { category, type, data: shown, timestamp, seq, principal, requestId }
}
