import { codeOf, type CallContext } from '@svc/core'
import { type Chat, type PublicError, type Http, type TurnEvent, type TurnRequest } from '@svc/core/contracts'
import { eventFrame } from '@svc/provider-http/sse'
import { type ChatEvent, endEvent, errorEvent, eventOf, toPublicError } from '@svc/api-types'

type Start = Extract<TurnEvent, { type: 'start' }>

/** A turn as frames of an event stream. What fails before `start` is thrown; a stream that has begun ends with `end`, whatever happens. */
export async function* framesOf(chat: Chat, http: Http, turn: TurnRequest, ctx: CallContext): AsyncGenerator<string, void> {
  const began = performance.now()
  let id = 0
  let start: Start | undefined
  let ended = false
  try {
    for await (const event of chat.stream(turn, ctx)) {
      if (event.type === 'token') {
        yield tokenFrame(++id, event)
        continue
      }
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

/** The server ends while its reader is still there. */
const isCut = ({ signal }: CallContext) => signal.aborted && codeOf(signal.reason) === 'UNAVAILABLE'

/** The hot one: built by hand, for one write a token is all that a token may cost. */
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
