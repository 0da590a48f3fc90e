import type { BusEvent, CallContext, Events, Log } from '@svc/core'
import type { Json, Peers } from '@svc/core/contracts'
import type { EventRing, NumberedEvent } from './ring.ts'

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
  readonly log: Log
  readonly lasting: CallContext
}

/** Fills the ring: with the events of this worker, which it sends to the others, and with theirs. */
export interface Exchange extends Disposable {
  /** Asks the others for the events that they keep. */
  begin(): undefined
  /** Takes events of another worker, or the name of one that starts and asks for those so far. */
  take(message: Json): Promise<void>
}

export function createExchange({ worker, ring, events, peers, log, lasting }: ExchangeOptions): Exchange {
  const outgoing: NumberedEvent[] = []
  let timer: NodeJS.Timeout | undefined
  const broadcast = (message: Json) =>
    peers
      ?.broadcast(TOPIC, message, lasting)
      .catch((err: unknown) => log.debug({ err }, 'some workers did not get the events of this one'))
  const send = () => {
    timer = undefined
    for (const some of messagesOf(outgoing.splice(0, MOST_AT_ONCE))) void broadcast(some as unknown as Json)
    if (outgoing.length > 0) timer = setTimeout(send, SEND_MS).unref()
  }
  const follow = async () => {
    let seq = 0
    for await (const event of events.subscribe({}, lasting)) {
      seq += 1 + event.lost
      const numbered = { worker, seq, ...plain(event) }
      ring.add(numbered)
      if (!peers) continue
      outgoing.push(numbered)
      timer ??= setTimeout(send, SEND_MS).unref()
    }
  }
  const sendAll = async (to: string, through: Peers) => {
    for (const some of messagesOf(ring.all()))
      for await (const _ of through.ask(to, TOPIC, some as unknown as Json, lasting)) break
  }
  void follow()
  return {
    begin: () => void broadcast(worker),
    async take(message) {
      if (Array.isArray(message))
        for (const event of message as unknown as NumberedEvent[]) if (event.worker !== worker) ring.add(event)
      if (typeof message === 'string' && message !== worker && peers) await sendAll(message, peers)
    },
    [Symbol.dispose]: () => clearTimeout(timer),
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

function plain({ category, type, data, timestamp }: BusEvent): Omit<NumberedEvent, 'worker' | 'seq'> {
  const text = JSON.stringify(data)
  const fits = Buffer.byteLength(text) <= MOST_DATA
  return { category, type, data: fits ? (JSON.parse(text) as NumberedEvent['data']) : { too_large: text.length }, timestamp }
}
