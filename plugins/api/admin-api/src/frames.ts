import { type CallContext, codeOf, redactData } from '@svc/core'
import { errorEvent, explain, toPublicError } from '@svc/api-types'
import { eventFrame } from '@svc/provider-http/sse'

/** The data of an event of a stream. */
export type StreamEvent = { readonly type: string; readonly [field: string]: unknown }

export interface FrameOptions<T> {
  /** The event of an item. `undefined`: the item has no frame. */
  readonly record: (item: T) => StreamEvent | undefined
  /** The last event of a stream that fails after its first event. */
  readonly failed: () => StreamEvent
}

/**
 * The items as frames of an event stream. An error before the first frame is thrown, and becomes an error response. A later one becomes an
 * `error` event, and the event of `failed` ends the stream.
 */
export async function* framesOf<T>(
  items: AsyncIterable<T>,
  { record, failed }: FrameOptions<T>,
  ctx: CallContext
): AsyncGenerator<string, void> {
  let id = 0
  const frame = (event: StreamEvent) => eventFrame(++id, event.type, JSON.stringify(event))
  try {
    for await (const item of items) {
      const event = record(item)
      if (event) yield frame(event)
    }
  } catch (error) {
    if (id === 0 || (ctx.signal.aborted && !isCut(ctx))) throw error
    yield frame(errorFrame(isCut(ctx) ? ctx.signal.reason : error, ctx))
    yield frame(failed())
  }
}

/** Whether the server stops while the client is still connected. */
const isCut = ({ signal }: CallContext) => signal.aborted && codeOf(signal.reason) === 'UNAVAILABLE'

/** The `error` event of any error. */
export const errorFrame = (error: unknown, { requestId }: CallContext): StreamEvent =>
  redactData({ ...errorEvent(explain(toPublicError(error), requestId).record) })
