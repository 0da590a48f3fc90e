import type { BusEvent, CallContext, Events, Log } from '@svc/core'
import type { Json, Peers } from '@svc/core/contracts'
import { type EventRing, type NumberedEvent, OPENED } from './ring.ts'

/** The topic between the workers. */
export const TOPIC = 'event-feed'
/** Events are sent to the other workers together. */
const SEND_MS = 50
const MOST_AT_ONCE = 500
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

/** Fills the ring: with the events of this worker, which it sends to the others, and with theirs. */
export interface Exchange extends Disposable {
  /** Asks the others for the events that they keep. */
  begin(): undefined
  /** A reader begins: all workers collect events until it is disposed, and some time longer. */
  reader(): Disposable
  /**
   * Takes events of another worker, `true` from one with a reader, or the name of one that starts and asks for those so far.
   */
  take(message: Json): Promise<void>
}

/** Without a reader, it does not read the bus: an event then costs next to nothing. */
export function createExchange({ worker, ring, events, peers, lingerMs, log, lasting }: ExchangeOptions): Exchange {
  const outgoing: NumberedEvent[] = []
  let timer: NodeJS.Timeout | undefined
  let readers = 0
  let reminder: NodeJS.Timeout | undefined
  let sleeping: NodeJS.Timeout | undefined
  /** Ends the collection. Undefined: this worker collects nothing. */
  let following: AbortController | undefined
  const broadcast = (message: Json) =>
    peers
      ?.broadcast(TOPIC, message, lasting)
      .catch((err: unknown) => log.debug({ err }, 'some workers did not get the events of this one'))
  const send = () => {
    timer = undefined
    for (const some of messagesOf(outgoing.splice(0, MOST_AT_ONCE))) void broadcast(some as unknown as Json)
    if (outgoing.length > 0) timer = setTimeout(send, SEND_MS).unref()
  }
  const follow = async (signal: AbortSignal) => {
    for await (const event of events.subscribe({}, { ...lasting, signal })) {
      const numbered = { worker, ...plain(event) }
      ring.add(numbered)
      if (!peers) continue
      outgoing.push(numbered)
      timer ??= setTimeout(send, SEND_MS).unref()
    }
  }
  const tell = async (to: string, message: Json, through: Peers) => {
    for await (const _ of through.ask(to, TOPIC, message, lasting)) break
  }
  const sendAll = async (to: string, through: Peers) => {
    for (const some of messagesOf(ring.all())) await tell(to, some as unknown as Json, through)
  }
  const sleep = () => {
    following?.abort()
    following = undefined
  }
  /** Collects events for the next `lingerMs`. */
  const stayAwake = () => {
    clearTimeout(sleeping)
    if (lasting.signal.aborted) return
    sleeping = setTimeout(() => (readers > 0 ? stayAwake() : sleep()), lingerMs).unref()
    if (following) return
    following = new AbortController()
    void follow(AbortSignal.any([lasting.signal, following.signal]))
    void events.publish(OPENED, {}, lasting)
  }
  const remind = () => void broadcast(true)
  return {
    begin: () => void broadcast(worker),
    reader() {
      readers += 1
      stayAwake()
      if (readers === 1) {
        remind()
        reminder = setInterval(remind, lingerMs / 3).unref()
      }
      return {
        [Symbol.dispose]() {
          readers -= 1
          if (readers === 0) clearInterval(reminder)
          stayAwake()
        },
      }
    },
    async take(message) {
      if (message === true) stayAwake()
      if (Array.isArray(message))
        for (const event of message as unknown as NumberedEvent[]) if (event.worker !== worker) ring.add(event)
      if (typeof message !== 'string' || message === worker || !peers || !following) return
      // tells the new worker the number of this one, even if it has sent no event
      void events.publish(OPENED, {}, lasting)
      await sendAll(message, peers)
      await tell(message, true, peers)
    },
    [Symbol.dispose]() {
      sleep()
      clearInterval(reminder)
      clearTimeout(sleeping)
      clearTimeout(timer)
    },
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

function plain({ data, lost: _, ...event }: BusEvent): Omit<NumberedEvent, 'worker'> {
  const text = JSON.stringify(data)
  const fits = Buffer.byteLength(text) <= MOST_DATA
  return { ...event, data: fits ? (JSON.parse(text) as NumberedEvent['data']) : { too_large: text.length } }
}
