import { type ChatEvent, endEvent, errorEvent, eventOf, toPublicError } from '@svc/api-types'
import { type CallContext, codeOf } from '@svc/core'
import type { Http, PublicError, RunEvent, TurnEvent, Workflows } from '@svc/core/contracts'
import { eventBody } from './run-files.ts'
import { eventFrame, HEARTBEAT, plainFrame, retryField } from '@svc/provider-http/sse'

type Start = Extract<TurnEvent, { type: 'start' }>

/**
 * Yields the events of a turn as frames of an event stream; the first has the number after `after`. Throws errors before `start`;
 * after `start`, the stream always ends with `end`.
 */
export async function* framesOf(
  events: AsyncIterable<TurnEvent>,
  after: number,
  http: Http,
  ctx: CallContext
): AsyncGenerator<string, void> {
  const began = performance.now()
  let id = after
  let start: Start | undefined
  let ended = false
  try {
    for await (const event of events) {
      if (event.type === 'token') {
        yield tokenFrame(++id, event)
        continue
      }
      if (event.type === 'reasoning') continue // no route asks for it
      if (event.type === 'start') start = event
      if (event.type === 'end' && event.status === 'cancelled' && isCut(ctx)) {
        ended = true
        yield frame(++id, await explained(http, toPublicError(ctx.signal.reason), ctx))
        yield frame(++id, endEvent({ ...event, status: 'failed' }))
        continue
      }
      ended = event.type === 'end'
      yield frame(++id, event.type === 'error' ? await explained(http, event.error, ctx) : eventOf(event))
    }
  } catch (error) {
    if (!start || ended || (ctx.signal.aborted && !isCut(ctx))) throw error
    yield frame(++id, await explained(http, toPublicError(isCut(ctx) ? ctx.signal.reason : error), ctx))
    yield frame(++id, failedEnd(start, performance.now() - began))
  }
}

/** Whether the server stops while the client is still connected. */
const isCut = ({ signal }: CallContext) => signal.aborted && codeOf(signal.reason) === 'UNAVAILABLE'

/** Builds the frame of a token by hand, because this is the hot path. */
function tokenFrame(id: number, { content, index }: Extract<TurnEvent, { type: 'token' }>): string {
  return `id: ${id}\nevent: token\ndata: {"type":"token","content":${JSON.stringify(content)},"index":${index}}\n\n`
}

const frame = (id: number, event: ChatEvent) => eventFrame(id, event.type, JSON.stringify(event))

async function explained(http: Http, error: PublicError, ctx: CallContext): Promise<ChatEvent> {
  return errorEvent((await http.explain(error, ctx)).record)
}

const failedEnd = ({ requestId, provider, model }: Start, durationMs: number) =>
  endEvent({
    requestId,
    provider,
    model,
    durationMs,
    timestamp: new Date().toISOString(),
    status: 'failed',
    usage: { input: 0, output: 0, total: 0 },
  })

/** Events of runs as frames of event streams. */
export interface RunStreams {
  /** Yields the events of a run after `after`, past and new, until the run ends. */
  of(id: string, after: number, ctx: CallContext): AsyncGenerator<string, void>
  /** Ends all open streams. Their last field tells clients when to reconnect, to another worker. */
  leave(): void
}

export function createRunStreams(workflows: Workflows): RunStreams {
  const leaving = new AbortController()
  return {
    leave: () => leaving.abort(),
    async *of(id, after, ctx) {
      await workflows.get(id, ctx)
      // a run can have no events for days, so a heartbeat shows the client at once that the stream is open
      yield HEARTBEAT
      const signal = AbortSignal.any([ctx.signal, leaving.signal])
      try {
        for await (const event of workflows.events(id, after, { ...ctx, signal })) yield frameOf(id, event)
      } catch (error) {
        if (!leaving.signal.aborted) throw error
      }
      if (leaving.signal.aborted) yield `${retryField()}\n`
    },
  }
}

/** Events that are not stored have no id, so that a reconnecting client names the last stored event. */
function frameOf(id: string, event: RunEvent): string {
  const data = JSON.stringify(eventBody(id, event))
  return event.id === undefined ? plainFrame(event.type, data) : eventFrame(event.id, event.type, data)
}
