import { hash } from 'node:crypto'
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
      description: 'Seconds for which the workers collect events after the last reader has disconnected',
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

/** The category of events between the workers. Readers do not see them. */
const FEED = 'FEED'
/** A worker begins to send its events, from this number on. */
export const OPENED = { category: FEED, type: 'feed_opened' } as const
/** The last event that a worker sends. */
export const CLOSED = { category: FEED, type: 'feed_closed' } as const
/** A worker has exited without its last event, so nothing is known of what it had not sent yet. The others add this event themselves. */
const BROKEN = { category: FEED, type: 'feed_broken' } as const
const isOf = (topic: { readonly type: string }, { category, type }: NumberedEvent) => category === FEED && type === topic.type
export const isClosing = (event: NumberedEvent): boolean => isOf(CLOSED, event)

interface Kept {
  readonly event: NumberedEvent
  /** The short name of its worker. */
  readonly from: string
  readonly bytes: number
}

/** The last number of each worker that a reader has got, by the short names of the workers. */
type Position = Map<string, number>

const MOST_BYTES = 8 * 1024 * 1024
/** Workers whose numbers are remembered, most of which have exited. Their cursor fits into a header. */
const MOST_WORKERS = 500
/** The number of BROKEN: what arrives later does not count. */
const BROKEN_SEQ = 999_999_999_999_999

/** 48 bits: among 500 workers, two with the same one are less probable than 10⁻⁹. */
const shortName = (worker: string): string => hash('sha256', worker, 'base64url').slice(0, 8)

/** The worker that is silent for longest is forgotten first. Returns its short name. */
function remember(position: Position, from: string, seq: number): string | undefined {
  position.delete(from)
  position.set(from, seq)
  const [oldest] = position.keys()
  if (position.size <= MOST_WORKERS || oldest === undefined) return
  position.delete(oldest)
  return oldest
}
/** Longest cursor that is read. */
const LONGEST_CURSOR = 65_536

/** The beginning of the cursors of a server, before their encoding. */
const prefixOf = (server: string) => `feed:${hash('sha256', server, 'hex').slice(0, 12)}:`

const cursorOf = (prefix: string, position: Position): string =>
  Buffer.from(`${prefix}${[...position].map(([from, seq]) => `${from}~${seq}`).join()}`).toString('base64url')

function positionIn(prefix: string, cursor: string): Position {
  const text = cursor.length > LONGEST_CURSOR ? '' : Buffer.from(cursor, 'base64url').toString()
  if (!text.startsWith(prefix)) throw cursorInvalid()
  const parts = text.slice(prefix.length).split(',').filter(Boolean)
  return new Map(
    parts.map(part => {
      const [, from, seq] = /^([\w-]{8})~(\d{1,15})$/.exec(part) ?? []
      if (from === undefined) throw cursorInvalid()
      return [from, Number(seq)]
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
    const from = shortName(event.worker)
    if (event.seq <= (this.#last.get(from) ?? 0)) return
    const forgotten = remember(this.#last, from, event.seq)
    if (forgotten !== undefined) this.#firstOf.delete(forgotten)
    if (!this.#firstOf.has(from)) this.#firstOf.set(from, event.seq)
    const bytes = JSON.stringify(event).length
    this.#kept.push({ event, from, bytes })
    this.#bytes += bytes
    while (this.#count > this.#keep || (this.#bytes > MOST_BYTES && this.#count > 1)) this.#drop()
    for (const reader of this.#waiting) reader.wake()
  }

  /** A worker has exited. If its last event is not here, readers learn that events may be lost. */
  exited(worker: string): void {
    const from = shortName(worker)
    if (
      !this.#last.has(from) ||
      this.#kept.some((kept, at) => at >= this.#dropped && kept.from === from && isClosing(kept.event))
    )
      return
    const by = { principal: 'system', requestId: 'event-feed' }
    this.add({ worker, seq: BROKEN_SEQ, ...by, ...BROKEN, data: {}, timestamp: Date.now() })
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
        const kept = this.#kept[at - this.#first]
        if (!kept) {
          await new Promise<void>(resolve => (waiting.wake = resolve))
          continue
        }
        at += 1
        const { event, from: worker } = kept
        const { seq } = event
        const known = position.get(worker) ?? (this.#firstOf.get(worker) ?? 1) - 1
        if (seq <= known) continue
        remember(position, worker, seq)
        if (isOf(BROKEN, event)) lost += 1
        // a new reader does not miss what happened before its worker began to send
        else if (!isNew || !isOf(OPENED, event)) lost += seq - known - 1
        if (event.category === FEED || !isWanted(event, filter)) continue
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
