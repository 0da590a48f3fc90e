import { eventTooLarge, tooManyEvents, topicNotPermitted } from './errors.ts'
import { defineService, type CallContext } from './token.ts'

/**
 * A type of event, by category and type. The TypeScript type describes its data, which is plain. `const ToolCalled =
 * defineTopic<ToolCalled>('TOOL', 'tool_called')`
 */
export interface Topic<D extends object = object> {
  readonly category: string
  readonly type: string
  readonly '~data'?: D
}

/** Categories and types of this process: those of svc, and of plugins in its process. */
const [categories, types] = [new Set<string>(), new Set<string>()]

/** Declares a type of event. Categories are upper case, types are `snake_case`. */
export function defineTopic<D extends object>(category: string, type: string): Topic<D> {
  categories.add(category)
  types.add(type)
  return Object.freeze({ category, type })
}

/** An event on the bus. */
export interface BusEvent<D extends object = Readonly<Record<string, unknown>>> {
  readonly category: string
  readonly type: string
  readonly data: D
  /** Unix milliseconds. */
  readonly timestamp: number
  /** Number of the event in its host, from 1 without gaps. Events without a reader count too. */
  readonly seq: number
  /** The id of the principal of the call that published it. */
  readonly principal: string
  readonly requestId: string
  /** Number of events that this reader missed just before, because it was too slow. */
  readonly lost: number
}

/** Selects events by category and type. Without either, all events match. */
export interface EventFilter {
  readonly categories?: readonly string[]
  readonly types?: readonly string[]
}

/**
 * The event bus of one host, for observers. Publishing never waits: a reader that is slow, hangs or throws loses events and
 * delays no other code. Events of other workers do not arrive here.
 */
export interface Events {
  publish<D extends object>(topic: Topic<D>, data: D, ctx: CallContext): Promise<void>
  /**
   * Yields events from the first `next` until the signal aborts. When a reader is 1000 events behind, the oldest are dropped
   * and counted in `lost`.
   */
  subscribe(filter: EventFilter, ctx: CallContext): AsyncIterable<BusEvent>
}
export const Events = defineService<Events>('events', { api: 1, methods: { publish: 'call', subscribe: 'stream' } })

const DONE = Promise.resolve()
/** Characters of a category or a type. */
const LONGEST_NAME = 64
/** Characters of JSON of the data of an event: up to 1000 events wait for a slow reader. */
const LARGEST_DATA = 65_536
/** Events that an isolated plugin can publish in a second: readers keep some thousands of events of all plugins. */
const MOST_PER_SECOND = 500
/** Maximum number of events that wait for one reader. */
const WAITING = 1_000

class Reader {
  readonly #filter: EventFilter
  #waiting: BusEvent[] = []
  #lost = 0
  #wake: (() => void) | undefined

  constructor(filter: EventFilter) {
    this.#filter = filter
  }

  take(event: BusEvent) {
    const { categories, types } = this.#filter
    if (categories?.includes(event.category) === false || types?.includes(event.type) === false) return
    if (this.#waiting.push(event) > WAITING) {
      this.#waiting.shift()
      this.#lost += 1
    }
    this.#wake?.()
  }

  async *read(signal: AbortSignal): AsyncGenerator<BusEvent, void> {
    const wake = () => this.#wake?.()
    signal.addEventListener('abort', wake, { once: true })
    try {
      while (!signal.aborted) {
        const event = this.#waiting.shift()
        if (event) yield this.#withLost(event)
        else await new Promise<void>(resolve => (this.#wake = resolve))
      }
    } finally {
      signal.removeEventListener('abort', wake)
    }
  }

  #withLost(event: BusEvent): BusEvent {
    const lost = this.#lost
    this.#lost = 0
    return lost === 0 ? event : { ...event, lost }
  }
}

/**
 * The bus for a plugin in a process of its own. It publishes events of its own categories and types only: readers and webhooks
 * trust what svc says of turns, tokens and changes. Throws NOT_PERMITTED, EVENT_TOO_LARGE and RATE_LIMITED.
 */
export function eventsOfIsolated(plugin: string, events: Events): Events {
  let [second, count] = [0, 0]
  const countOne = () => {
    const now = Math.floor(performance.now() / 1000)
    if (now !== second) [second, count] = [now, 0]
    if (++count > MOST_PER_SECOND) throw tooManyEvents(plugin, MOST_PER_SECOND)
  }
  return {
    subscribe: (filter, ctx) => events.subscribe(filter, ctx),
    async publish(topic, data, ctx) {
      const [category, type] = [String(topic.category).slice(0, LONGEST_NAME), String(topic.type).slice(0, LONGEST_NAME)]
      if (categories.has(category) || types.has(type)) throw topicNotPermitted(plugin, category, type)
      const size = JSON.stringify(data).length
      if (size > LARGEST_DATA) throw eventTooLarge(plugin, size, LARGEST_DATA)
      countOne()
      await events.publish({ category, type }, data, ctx)
    },
  }
}

/** Creates the event bus of a host. */
export function createEvents(): Events {
  const readers = new Set<Reader>()
  let seq = 0
  return {
    // without a reader, an event costs a call and an addition
    publish({ category, type }, data, { principal, requestId }) {
      seq += 1
      if (readers.size === 0) return DONE
      const frozen = Object.freeze({ ...data }) as Readonly<Record<string, unknown>>
      const about = { timestamp: Date.now(), seq, principal: principal.id, requestId, lost: 0 }
      const event: BusEvent = Object.freeze({ category, type, data: frozen, ...about })
      for (const reader of readers) reader.take(event)
      return DONE
    },
    async *subscribe(filter, { signal }) {
      const reader = new Reader(filter)
      readers.add(reader)
      try {
        yield* reader.read(signal)
      } finally {
        readers.delete(reader)
      }
    },
  }
}
