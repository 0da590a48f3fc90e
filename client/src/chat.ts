import { ApiError, isApiError } from './errors.ts'
import type { EventStream } from './event-stream.ts'
import type { JsonSender, RequestOptions, ResumeOptions, Streamer } from './exchange.ts'
import type { BodyOf, ReplyOf, Schemas } from './paths.ts'

type ChatEvent = Schemas['ChatEvent']

/** An answer to a tool call that asks for approval, or for the `content` of a form. */
export type Approval = boolean | { readonly allow: boolean; readonly reason?: string; readonly content?: ChatAnswer['content'] }

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
/** An open question of a turn. `interrupted`: the worker of the turn has exited; the turn continues with the answer. */
export type ChatQuestion = ReplyOf<'get', '/api/v1/workflows/questions'>['chats'][number]
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
  /** Allows or denies a tool call of a stream with `interactive: true`, or answers its form. */
  answer(answer: ChatAnswer, options?: RequestOptions): Promise<void>
  /** The open questions of turns, with the scope `admin` those of all principals. Only the owner can answer (`answerable`). */
  questions(options?: RequestOptions): Promise<readonly ChatQuestion[]>
  /**
   * Answers a question, and streams the events of its turn: all of them, or those after `after`. Also for an `interrupted` question,
   * whose turn has no stream before the answer. Throws INVALID_VALUE (404) if the question is not open any more.
   */
  proceed(question: ChatQuestion, approval: Approval, options?: ChatResumeOptions): ChatStream
}

const TURN = '/api/v1/chat/stream/{turn_id}'
const ANSWER = '/api/v1/chat/answer'
const QUESTIONS = '/api/v1/workflows/questions'
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
    const iterate = () =>
      onAsk
        ? answered(read(), { onAsk, request_id: begin.request_id ?? '' }, answer =>
            chat.answer(answer, { ...options, ...(signal ? { signal } : {}) })
          )
        : read()
    return chatStreamOf(events, () => turn.id, iterate)
  }
  const resumed = ({ id, request_id }: Resumed, options: ChatResumeOptions) => {
    const { onAsk: _, whenLeft: __, ...input } = options
    const begin: Begin['open'] = source => stream('get', TURN, { ...ofTurn(id), ...input }, source)
    return open({ turnId: id, request_id, whenLeft: 'close', open: begin }, options)
  }
  const chat = {
    reply: (body: ChatRequest, options: RequestOptions = {}) => json('post', '/api/v1/chat', { body, ...options }),
    stream(request: ChatStreamRequest, options: ChatStreamOptions = {}) {
      const { onAsk, whenLeft: _, ...input } = options
      const body = onAsk ? { ...request, interactive: true } : request
      const begin: Begin['open'] = source => stream('post', '/api/v1/chat/stream', { body, ...input }, source)
      return open({ turnId: undefined, whenLeft: request.detach === true ? 'close' : 'cancel', open: begin }, options)
    },
    resume: (id: string, options: ChatResumeOptions = {}) => resumed({ id }, options),
    async cancel(turnId: string, options: RequestOptions = {}) {
      await json('post', `${TURN}/cancel`, { ...ofTurn(turnId), ...options }).catch((error: unknown) => {
        throw turnError(turnId, error)
      })
    },
    answer: async (body: ChatAnswer, options: RequestOptions = {}) => void (await json('post', ANSWER, { body, ...options })),
    questions: async (options: RequestOptions = {}) =>
      ((await json('get', QUESTIONS, { query: { limit: 1 }, ...options })) as OpenQuestions).chats,
    proceed({ request_id, call_id, turn_id }: ChatQuestion, approval: Approval, options: ChatResumeOptions = {}) {
      if (turn_id === null) throw notStreamed()
      const { onAsk: _, whenLeft: __, after: ___, ...request } = options
      return answeredFirst(resumed({ id: turn_id, request_id }, options), () =>
        chat.answer({ request_id, call_id, ...answerOf(approval) }, request)
      )
    },
  }
  return chat as ChatClient
}

interface OpenQuestions {
  readonly chats: readonly ChatQuestion[]
}

/** The positions of `events`, with another way to read them. */
const chatStreamOf = (
  events: EventStream<ChatEvent>,
  turnId: () => string | undefined,
  iterate: () => AsyncIterator<ChatEvent>
): ChatStream => ({
  get lastEventId() {
    return events.lastEventId
  },
  get previousEventId() {
    return events.previousEventId
  },
  get turnId() {
    return turnId()
  },
  [Symbol.asyncIterator]: iterate,
})

/** Answers before the first event is read. */
function answeredFirst(events: ChatStream, answer: () => Promise<void>): ChatStream {
  const read = async function* () {
    await answer()
    yield* events
  }
  return chatStreamOf(events, () => events.turnId, read)
}

const answerOf = (approval: Approval) => (typeof approval === 'boolean' ? { allow: approval } : approval)

/** How a stream begins. */
interface Begin {
  readonly turnId: string | undefined
  /** Known before the event `start`, which a resumed stream may leave out. */
  readonly request_id?: string | undefined
  readonly whenLeft: 'cancel' | 'close'
  open(source: Parameters<Streamer>[3]): EventStream<unknown>
}

interface Turn {
  id: string | undefined
}

type Resumed = { readonly id: string; readonly request_id?: string }

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

const notStreamed = () =>
  new ApiError('the question belongs to no stream of a turn', {
    code: 'REQUEST_INVALID',
    hint: 'Answer it with chat.answer, or at its answer_url',
  })

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
  { onAsk, request_id: known }: { readonly onAsk: NonNullable<ChatStreamOptions['onAsk']>; readonly request_id: string },
  answer: (answer: ChatAnswer) => Promise<void>
): AsyncGenerator<ChatEvent, void> {
  let request_id = known
  for await (const event of events) {
    if (event.type === 'start') request_id = event.request_id
    yield event
    if (event.type !== 'ask') continue
    const approval = await onAsk(event)
    await answer({ request_id, call_id: event.call_id, ...answerOf(approval) }).catch((error: unknown) => {
      // the question has timed out meanwhile: tool_result says so
      if (!isApiError(error, 'INVALID_VALUE') || error.status !== 404) throw error
    })
  }
}
