import { type CallContext, defineService, type EventFilter } from '@svc/core'
import type { Json } from './store.ts'

/** An event of any worker of the server. Its data is plain: members that are not JSON are left out. */
export interface FeedEvent {
  readonly category: string
  readonly type: string
  readonly data: { readonly [member: string]: Json | undefined }
  /** Unix milliseconds, by the clock of the worker. */
  readonly timestamp: number
  /** The id of the principal that caused it. */
  readonly principal: string
  readonly requestId: string
  /** The worker where it happened. */
  readonly worker: string
  /** Number of the event in its worker (`BusEvent.seq`). With `worker`, it identifies the event. */
  readonly seq: number
  /** The position behind this event, for `after`, at any worker of the server. */
  readonly cursor: string
  /**
   * Number of events that the reader has missed since the one before: it was too slow, or was away for longer than events are kept. The filter does not apply to
   * this number. A worker that was killed counts as one, because nothing is known of what it had not sent.
   */
  readonly lost: number
}

export interface FeedQuery extends EventFilter {
  /** The cursor of the last event that the reader has got. Default: only events from now on. Throws CURSOR_INVALID. */
  readonly after?: string
}

/**
 * The events of all workers of the server (`Events` has those of one). While there is a reader, and for `events.linger_s` after the last one, each worker keeps
 * the last `events.keep` events of all. So a reader that reconnects, to whichever worker, misses none or learns how many. Events of one worker arrive in their
 * order. They are not stored.
 */
export interface EventFeed {
  /** Yields the kept events after `after`, then new ones, until the signal aborts. A slow reader misses the oldest. */
  subscribe(query: FeedQuery, ctx: CallContext): AsyncIterable<FeedEvent>
}
export const EventFeed = defineService<EventFeed>('event_feed', { api: 1, methods: { subscribe: 'stream' } })
