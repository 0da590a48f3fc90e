import { ApiError, isApiError } from './errors.ts'
import type { EventStream } from './event-stream.ts'
import type { JsonSender, RequestOptions, ResumeOptions, Streamer } from './exchange.ts'
import type { BodyOf, ReplyOf, Schemas } from './paths.ts'

type ChatEvent = Schemas['ChatEvent']

/** An answer to a tool call that asks for approval. */
export type Approval = boolean | { readonly allow: boolean; readonly reason?: string }

export interface ChatStreamOptions extends RequestOptions {
  /** Answers tool calls that ask, one after the other. Makes the turn interactive. Without it, call `chat.answer`. */
  readonly onAsk?: (ask: Schemas['AskEvent']) => Approval | Promise<Approval>
  /**
   * What leaving the loop before its end, or an abort, does: `cancel` ends the turn, `close` only closes the connection. Default:
   * `cancel` for a new turn without `detach: true`, otherwise `close`.
   */
  readonly whenLeft?: 'cancel' | 'close'
}

export type ChatRequest = BodyOf<'post', '/api/v1/chat'>
export type ChatStreamRequest = BodyOf<'post', '/api/v1/chat/stream'>
export type ChatReply = ReplyOf<'post', '/api/v1/chat'>
export type ChatAnswer = BodyOf<'post', '/api/v1/chat/answer'>
export interface ChatResumeOptions extends ChatStreamOptions, ResumeOptions {}

/** Events of a turn. */
export interface ChatStream extends EventStream<ChatEvent> {
  /** Names the turn to `chat.resume` and `chat.cancel`. Undefined before the event `start`. */
  readonly turnId: string | undefined
}

export interface ChatClient {
  /** Sends a message and returns the whole reply. */
  reply(request: ChatRequest, options?: RequestOptions): Promise<ChatReply>
  /**
   * Sends a message and streams the reply.
   *
   * If the connection breaks, the client connects again: you get each event once. The stream throws TURN_LOST if the server has lost
   * the turn, and STREAM_CUT if the connection breaks before the event `start`.
   *
   * Leaving the loop before its end, or an abort, cancels the turn. With `detach: true` in the request, it only closes the connection,
   * and the turn continues to its end. See `whenLeft`. Before `start`, the turn has no name: the server cancels it after `chat.resume_s`.
   */
  stream(request: ChatStreamRequest, options?: ChatStreamOptions): ChatStream
  /**
   * Streams the events of a turn that another stream began: all of them, or those after `after`. Connects again like `stream`.
   * Throws TURN_LOST if the server does not keep the turn. Leaving the loop only closes the connection.
   */
  resume(turnId: string, options?: ChatResumeOptions): ChatStream
  /** Ends a turn. What it has said so far is stored. Without effect on a turn that has ended. Throws TURN_LOST. */
  cancel(turnId: string, options?: RequestOptions): Promise<void>
  /** Allows or denies a tool call of a stream with `interactive: true`. */
  answer(answer: ChatAnswer, options?: RequestOptions): Promise<void>
}

const TURN = '/api/v1/chat/stream/{turn_id}'
/** Longest time that a loop that was left waits for its turn to be cancelled. Otherwise the server does it after `chat.resume_s`. */
const CANCEL_MS = 5_000

export function createChatClient(json: JsonSender, stream: Streamer): ChatClient {
  const open = (begin: Begin, { onAsk, whenLeft, signal, ...options }: ChatStreamOptions): ChatStream => {
    const turn: Turn = { id: begin.turnId }
    const events = begin.open({
      isLast: event => (event as ChatEvent).type === 'end',
      isResumed: () => turn.id !== undefined,
      next: () => ({ method: 'get', path: TURN, names: { turn_id: turn.id ?? '' } }),
    }) as EventStream<ChatEvent>
    const leave = async () => {
      if ((whenLeft ?? begin.whenLeft) === 'close' || turn.id === undefined) return
      await chat.cancel(turn.id, { ...options, timeoutMs: CANCEL_MS, retry: false }).catch(() => {})
    }
    const read = () => eventsOf(turn, events, leave, signal)
    return {
      get lastEventId() {
        return events.lastEventId
      },
      get turnId() {
        return turn.id
      },
      [Symbol.asyncIterator]: () =>
        onAsk ? answered(read(), onAsk, answer => chat.answer(answer, { ...options, ...(signal ? { signal } : {}) })) : read(),
    }
  }
  const chat = {
    reply: (body: ChatRequest, options: RequestOptions = {}) => json('post', '/api/v1/chat', { body, ...options }),
    stream(request: ChatStreamRequest, options: ChatStreamOptions = {}) {
      const { onAsk, whenLeft: _, ...input } = options
      const body = onAsk ? { ...request, interactive: true } : request
      const begin: Begin['open'] = source => stream('post', '/api/v1/chat/stream', { body, ...input }, source)
      return open({ turnId: undefined, whenLeft: request.detach === true ? 'close' : 'cancel', open: begin }, options)
    },
    resume(turnId: string, options: ChatResumeOptions = {}) {
      const { onAsk: _, whenLeft: __, ...input } = options
      const begin: Begin['open'] = source => stream('get', TURN, { ...ofTurn(turnId), ...input }, source)
      return open({ turnId, whenLeft: 'close', open: begin }, options)
    },
    async cancel(turnId: string, options: RequestOptions = {}) {
      await json('post', `${TURN}/cancel`, { ...ofTurn(turnId), ...options }).catch((error: unknown) => {
        throw turnError(turnId, error)
      })
    },
    async answer(body: ChatAnswer, options: RequestOptions = {}) {
      await json('post', '/api/v1/chat/answer', { body, ...options })
    },
  }
  return chat as ChatClient
}

/** How a stream begins. */
interface Begin {
  readonly turnId: string | undefined
  readonly whenLeft: 'cancel' | 'close'
  open(source: Parameters<Streamer>[3]): EventStream<unknown>
}

interface Turn {
  id: string | undefined
}

const ofTurn = (turn_id: string) => ({ path: { turn_id } })

/** The events of a turn. `leave` is called if the loop is left before the end, or aborted, but not if the stream fails. */
async function* eventsOf(
  turn: Turn,
  events: AsyncIterable<ChatEvent>,
  leave: () => Promise<void>,
  signal: AbortSignal | undefined
): AsyncGenerator<ChatEvent, void> {
  let isOver = false
  try {
    for await (const event of events) {
      if (event.type === 'start') turn.id = event.turn_id
      isOver = event.type === 'end'
      yield event
    }
    isOver = true
  } catch (error) {
    isOver = signal?.aborted !== true
    throw turnError(turn.id, error)
  } finally {
    if (!isOver) await leave()
  }
}

/** Names the loss of a turn. Returns other errors as they are. */
function turnError(turnId: string | undefined, error: unknown): unknown {
  if (turnId === undefined || !isApiError(error, 'INVALID_VALUE')) return error
  const { status, details, requestId, message } = error
  // events that are not kept any more are named by the first that is
  if (status !== 404 && details.first === undefined) return error
  return new ApiError(`the turn is lost: ${message}`, {
    code: 'TURN_LOST',
    status,
    details: { turn_id: turnId },
    hint: 'Read the conversation: what the turn has stored is there',
    requestId,
    cause: error,
  })
}

async function* answered(
  events: AsyncIterable<ChatEvent>,
  onAsk: NonNullable<ChatStreamOptions['onAsk']>,
  answer: (answer: ChatAnswer) => Promise<void>
): AsyncGenerator<ChatEvent, void> {
  let request_id = ''
  for await (const event of events) {
    if (event.type === 'start') request_id = event.request_id
    yield event
    if (event.type !== 'ask') continue
    const approval = await onAsk(event)
    const given = typeof approval === 'boolean' ? { allow: approval } : approval
    await answer({ request_id, call_id: event.call_id, ...given }).catch((error: unknown) => {
      // the question has timed out meanwhile: tool_result says so
      if (!isApiError(error, 'INVALID_VALUE') || error.status !== 404) throw error
    })
  }
}
