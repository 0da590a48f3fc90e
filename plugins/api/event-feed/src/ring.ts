import { createHash } from 'node:crypto'
import { type EventFilter, schema, svcError, type SvcError } from '@svc/core'
import type { FeedEvent, FeedQuery, Json } from '@svc/core/contracts'

export interface EventsConfig {
  keep: number
  linger_s: number
}

export const EVENTS_CONFIG = schema<EventsConfig>({
  type: 'object',
  additionalProperties: false,
  properties: {
    keep: { type: 'integer', minimum: 1, maximum: 1_000_000, default: 10_000, description: 'Events that each worker keeps' },
    linger_s: {
      type: 'integer',
      minimum: 1,
      maximum: 86_400,
      default: 600,
      description: 'Seconds after the last reader for which the workers still collect events',
    },
  },
})

/** An event with its number in the worker where it happened, from 1 without gaps. */
export interface NumberedEvent {
  readonly worker: string
  readonly seq: number
  readonly principal: string
  readonly requestId: string
  readonly category: string
  readonly type: string
  readonly data: { readonly [member: string]: Json | undefined }
  readonly timestamp: number
}

/** A worker begins to send its events. Readers do not see events of this category; this one tells the number of the worker. */
export const OPENED = { category: 'FEED', type: 'feed_opened' } as const
const isOpening = ({ category, type }: NumberedEvent) => category === OPENED.category && type === OPENED.type

interface Kept {
  readonly event: NumberedEvent
  readonly bytes: number
}

/** The last number of each worker that a reader has got. */
type Position = Map<string, number>

const MOST_BYTES = 8 * 1024 * 1024
/** Dead workers whose numbers are remembered. */
const MOST_WORKERS = 1_000
/** Longest cursor that is read. */
const LONGEST_CURSOR = 65_536

/** The beginning of the cursors of a server, before their encoding. */
const prefixOf = (server: string) => `feed:${createHash('sha256').update(server).digest('hex').slice(0, 12)}:`

const cursorOf = (prefix: string, position: Position): string =>
  Buffer.from(`${prefix}${[...position].map(([worker, seq]) => `${worker}~${seq}`).join()}`).toString('base64url')

function positionIn(prefix: string, cursor: string): Position {
  const text = cursor.length > LONGEST_CURSOR ? '' : Buffer.from(cursor, 'base64url').toString()
  if (!text.startsWith(prefix)) throw cursorInvalid()
  const parts = text.slice(prefix.length).split(',').filter(Boolean)
  return new Map(
    parts.map(part => {
      const [, worker, seq] = /^([^~]{1,200})~(\d{1,15})$/.exec(part) ?? []
      if (worker === undefined) throw cursorInvalid()
      return [worker, Number(seq)]
    })
  )
}

const cursorInvalid = (): SvcError =>
  svcError('CURSOR_INVALID', 'the position is not the id of an event of this server; to get new events, connect without it', {
    where: 'after',
    hint: 'Pass the cursor of the last event. To get only new events, pass no cursor',
  })

/** Events, and the position where they begin. */
export interface FeedReading {
  readonly cursor: string
  readonly events: AsyncGenerator<FeedEvent, void>
}

/** One reader: it walks through the ring, and waits at its end. */
interface Waiting {
  wake(): void
}

/** The last events of all workers, in the order of their arrival. */
export class EventRing {
  readonly #keep: number
  #kept: Kept[] = []
  /** The number of the first event of `#kept` since the start. */
  #first = 0
  /** How many events at the beginning of `#kept` are dropped. */
  #dropped = 0
  #bytes = 0
  /** The last number of each worker. */
  readonly #last: Position = new Map()
  /** The first number of each worker that this ring has got. */
  readonly #firstOf: Position = new Map()
  readonly #waiting = new Set<Waiting>()
  readonly #prefix: string

  /** `server`: what all workers of a server have in common, for cursors. */
  constructor(keep: number, server: string) {
    this.#keep = keep
    this.#prefix = prefixOf(server)
  }

  /** Adds an event, unless it is there already. */
  add(event: NumberedEvent): void {
    if (event.seq <= (this.#last.get(event.worker) ?? 0)) return
    // Moves the worker to the end: the one that is silent for longest is forgotten first.
    this.#last.delete(event.worker)
    this.#last.set(event.worker, event.seq)
    if (!this.#firstOf.has(event.worker)) this.#firstOf.set(event.worker, event.seq)
    const [oldest] = this.#last.keys()
    if (this.#last.size > MOST_WORKERS && oldest !== undefined) {
      this.#last.delete(oldest)
      this.#firstOf.delete(oldest)
    }
    const bytes = JSON.stringify(event).length
    this.#kept.push({ event, bytes })
    this.#bytes += bytes
    while (this.#count > this.#keep || (this.#bytes > MOST_BYTES && this.#count > 1)) this.#drop()
    for (const reader of this.#waiting) reader.wake()
  }

  get #count(): number {
    return this.#kept.length - this.#dropped
  }

  /** All kept events, for a worker that starts. */
  all(): NumberedEvent[] {
    return this.#kept.slice(this.#dropped).map(({ event }) => event)
  }

  /** Throws CURSOR_INVALID at once. */
  read({ after, ...filter }: FeedQuery, signal: AbortSignal): FeedReading {
    const isNew = after === undefined
    const position = isNew ? new Map(this.#last) : positionIn(this.#prefix, after)
    // encoded again: decoding ignores characters that a line of a stream must not contain
    const cursor = cursorOf(this.#prefix, position)
    const from = isNew ? this.#first + this.#kept.length : this.#first
    return { cursor, events: this.#walk({ position, from, isNew }, filter, signal) }
  }

  async *#walk(
    { position, from, isNew }: { readonly position: Position; readonly from: number; readonly isNew: boolean },
    filter: EventFilter,
    signal: AbortSignal
  ): AsyncGenerator<FeedEvent, void> {
    let lost = 0
    const waiting: Waiting = { wake() {} }
    const wake = () => waiting.wake()
    this.#waiting.add(waiting)
    signal.addEventListener('abort', wake, { once: true })
    try {
      for (let at = from; !signal.aborted; ) {
        at = Math.max(at, this.#first + this.#dropped)
        const event = this.#kept[at - this.#first]?.event
        if (!event) {
          await new Promise<void>(resolve => (waiting.wake = resolve))
          continue
        }
        at += 1
        const { worker, seq } = event
        const known = position.get(worker) ?? (this.#firstOf.get(worker) ?? 1) - 1
        if (seq <= known) continue
        // a new reader does not miss what happened before its worker began to send
        if (!isNew || !isOpening(event)) lost += seq - known - 1
        position.set(worker, seq)
        if (event.category === OPENED.category || !isWanted(event, filter)) continue
        yield { ...event, cursor: cursorOf(this.#prefix, position), lost }
        lost = 0
      }
    } finally {
      this.#waiting.delete(waiting)
      signal.removeEventListener('abort', wake)
    }
  }

  /** Removes dropped events from the list only now and then, because that moves all others. */
  #drop(): void {
    this.#bytes -= this.#kept[this.#dropped]!.bytes
    this.#dropped += 1
    if (this.#dropped < this.#kept.length / 2) return
    this.#kept = this.#kept.slice(this.#dropped)
    this.#first += this.#dropped
    this.#dropped = 0
  }
}

const isWanted = ({ category, type }: NumberedEvent, { categories, types }: EventFilter) =>
  categories?.includes(category) !== false && types?.includes(type) !== false
