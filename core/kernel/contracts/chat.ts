import { type Bail, defineService, type JsonSchema, type Series, type CallContext, type Waterfall } from '@svc/core'
import type { NewConversation, StoredMessage, TurnStatus } from './conversations.ts'
import type {
  FilePart,
  FinishReason,
  ImagePart,
  ModelMessage,
  ModelRequest,
  RequestField,
  ToolCallPart,
  ToolSpec,
} from './provider.ts'
import type { Json } from './store.ts'
import type { ContentPart, Effect, InputRequest, ToolResult } from './tool.ts'

/** Parameters of the model, which a turn passes on. */
export type ModelParameters = Pick<
  ModelRequest,
  | 'temperature'
  | 'topP'
  | 'topK'
  | 'stop'
  | 'seed'
  | 'frequencyPenalty'
  | 'presencePenalty'
  | 'logitBias'
  | 'reasoningEffort'
  | 'reasoningTokens'
  | 'parallelToolCalls'
  | 'responseFormat'
>

/** Parameters of one turn. */
export interface TurnRequest {
  readonly message: string
  /** Images and files beside the message. A model that does not take them fails with INVALID_VALUE. */
  readonly parts?: readonly (ImagePart | FilePart)[]
  /**
   * The conversation so far, in place of `message`, which is then empty. The last message is one of the user, or has results of
   * tools. System messages are added to the prompt. Only with `keep: false`.
   */
  readonly messages?: readonly ModelMessage[]
  /**
   * Tools that the caller runs. Their names take precedence over those of svc. A step that calls one ends the turn, after the
   * other calls of the step have run.
   */
  readonly clientTools?: readonly ToolSpec[]
  /** Parameters of the model. The caller asks for them: a model that does not support one fails with INVALID_VALUE. */
  readonly parameters?: ModelParameters
  /** Fields that the caller can do without, as in `ModelCallOrder`. */
  readonly defaults?: readonly RequestField[]
  /** Also send `reasoning` events. */
  readonly reasoning?: boolean
  readonly conversationId?: string
  /** Title and labels of the conversation that this turn creates. */
  readonly newConversation?: NewConversation
  readonly provider?: string
  readonly model?: string
  readonly temperature?: number
  readonly maxTokens?: number
  /** Tool names. Absent: those of the profile, else all that the mode allows. Empty: none. */
  readonly tools?: readonly string[]
  /** A reader answers `ask` events with `Chat.answer`. Otherwise tool calls that need approval are denied. */
  readonly interactive?: boolean
  /** With `interactive`: the reader also answers `ask` events with a `form`. Otherwise tools get no answer of a user. */
  readonly forms?: boolean
  /** Profile and mode for this turn. A profile that is named here takes precedence over an override. */
  readonly profile?: string
  readonly mode?: string
  /** Replaces the system prompt of the profile. The prompt of the mode is still added. */
  readonly system?: string
  /** Maximum number of tool calls, within the limit of the mode. 0: none. */
  readonly toolBudget?: number
  /**
   * Maximum number of input and output tokens of all steps together, as the provider counts them. A step that does not fit into
   * the rest is not started: the turn fails with BUDGET_EXHAUSTED, see `partial`.
   */
  readonly tokenBudget?: number
  /**
   * Maximum cost of all steps together, by `Prices`. A step that could cost more than the rest is not started: the turn fails with
   * BUDGET_EXHAUSTED; with PRICE_UNKNOWN for a model without a price.
   */
  readonly costBudget?: number
  /**
   * A turn that `tokenBudget` or `costBudget` stops after its first answer completes with what it has, and `TurnEnd.partial`. Tool
   * calls of an answer that used up the budget do not run.
   */
  readonly partial?: boolean
  /**
   * JSON Schema of the reply, which `TurnEnd.data` then contains. The model gets one chance to correct an answer that does not
   * match; then the turn fails with ANSWER_INVALID. The text of such a turn is sent in one piece.
   */
  readonly responseSchema?: JsonSchema
  /** Time limit in milliseconds, instead of `chat.timeout_ms`. */
  readonly timeoutMs?: number
  /** False: nothing of the turn is stored and its `conversationId` is empty. Cannot be combined with a conversation. */
  readonly keep?: boolean
}

export interface TurnUsage {
  readonly input: number
  /** Input tokens that the provider had cached, a part of `input`. Absent if there are none. */
  readonly cached?: number
  /** Input tokens that the provider has written to its cache, a part of `input`. Absent if there are none. */
  readonly cacheWrite?: number
  readonly output: number
  /** Output tokens of reasoning, a part of `output`. Absent if there are none. */
  readonly reasoning?: number
  readonly total: number
}

/** One tool call of a turn, as shown in the reply. */
export interface ToolUse {
  readonly tool: string
  readonly callId: string
  readonly arguments: { readonly [name: string]: Json | undefined }
  readonly success: boolean
  readonly durationMs: number
  readonly error?: string
}

/** An error as callers see it: code, message and details. */
export interface PublicError {
  readonly code: string
  readonly message: string
  readonly details: Readonly<Record<string, unknown>>
}

/** Events of a turn: `start` first, `end` last, and `error` just before an `end` with status `failed`. */
export type TurnEvent =
  | {
      readonly type: 'start'
      /** Names the turn to `TurnStreams`; only in its streams. */
      readonly turnId?: string
      readonly requestId: string
      readonly timestamp: string
      readonly conversationId: string
      readonly provider: string
      readonly model: string
      /** Fields that the model does not support and the request can do without, as far as they are known when the turn starts. */
      readonly dropped?: readonly RequestField[]
    }
  | { readonly type: 'token'; readonly content: string; readonly index: number }
  /** A piece of the reasoning of the model, for a turn with `reasoning`. */
  | { readonly type: 'reasoning'; readonly content: string }
  | {
      readonly type: 'tool_call'
      readonly tool: string
      readonly callId: string
      readonly arguments: { readonly [name: string]: Json | undefined }
    }
  | {
      /**
       * Asks whether a tool call is allowed, or for what a running tool wants to know; in interactive turns only. The call waits for
       * `Chat.answer`.
       */
      readonly type: 'ask'
      readonly tool: string
      readonly callId: string
      readonly arguments: { readonly [name: string]: Json | undefined }
      readonly question: string
      /** What the tool wants to know: a form by its JSON Schema (an object of plain values), or a page to open. */
      readonly form?: { readonly schema: JsonSchema } | { readonly url: string }
      /** When the call stops waiting, in Unix milliseconds: after `chat.ask_timeout_ms`, or with the turn. */
      readonly until?: number
    }
  | {
      readonly type: 'tool_result'
      readonly tool: string
      readonly callId: string
      readonly success: boolean
      readonly result: Json
      readonly error: string | null
      readonly durationMs: number
    }
  | { readonly type: 'error'; readonly error: PublicError }
  | TurnEnd

/** Which budget stopped a turn, and why. */
export interface TurnStop {
  readonly budget: 'tokens' | 'cost'
  readonly reason: string
}

export interface TurnEnd {
  readonly type: 'end'
  readonly requestId: string
  readonly timestamp: string
  readonly conversationId: string
  readonly status: TurnStatus
  readonly provider: string
  readonly model: string
  readonly usage: TurnUsage
  /** The cost of the steps by models with a price. Absent without one. */
  readonly cost?: number
  readonly durationMs: number
  readonly toolsUsed: readonly ToolUse[]
  /** A budget stopped the turn: the reply is not whole. */
  readonly partial?: TurnStop
  /** The reply as data, when `responseSchema` was set and the turn has completed. */
  readonly data?: Json
  /** Why the model ended its last answer. `tool_calls` without `calls`: the turn had no step left to run them. */
  readonly finish?: FinishReason
  /** Calls of `clientTools`, which the caller runs. */
  readonly calls?: readonly ToolCallPart[]
  /** All messages of the turn in order, for a turn with `messages`. */
  readonly made?: readonly StoredMessage[]
}

/** The reply: the events of the stream, collected. */
export interface TurnReply extends Omit<TurnEnd, 'type'> {
  readonly response: string
}

/** A turn before any decision. Taps can change it. */
export interface TurnStart extends TurnRequest {}

/** A tool call about to start. */
export interface ToolCall {
  readonly conversationId: string
  readonly tool: string
  readonly callId: string
  readonly arguments: { readonly [name: string]: Json | undefined }
  readonly category: string
  readonly effects: readonly Effect[]
  readonly mode: string
}
export type ToolVerdict =
  | { readonly verdict: 'allow' }
  | { readonly verdict: 'change'; readonly arguments: { readonly [name: string]: Json | undefined } }
  | { readonly verdict: 'deny'; readonly reason: string }
  /** Asks a person in an interactive turn; otherwise the call is denied. */
  | { readonly verdict: 'ask'; readonly question: string }
  | { readonly verdict: 'answer'; readonly result: ToolResult }

export interface TurnDone {
  /** The id of the turn, as in `ModelCall`. */
  readonly turn: string
  readonly end: TurnEnd
  readonly kept: readonly StoredMessage[]
}

export interface ChatHooks {
  /** Runs before a turn starts. */
  turn: Waterfall<TurnStart>
  toolCall: Bail<ToolCall, ToolVerdict>
  end: Series<TurnDone>
}

/** The answer of a person to an `ask` event. */
export interface ToolAnswer {
  readonly requestId: string
  readonly callId: string
  /** For a form: whether the user has filled it in. */
  readonly allow: boolean
  /** Passed to the model when the call is denied. */
  readonly reason?: string
  /** The content of a form. */
  readonly content?: { readonly [field: string]: Json | undefined }
  /** The answers to input requests of a tool, by their keys: results of the protocol's methods. Only for `Chat.callTool`. */
  readonly answers?: { readonly [key: string]: Json | undefined }
}

/** An open question to the reader of a stream. Times are Unix milliseconds. */
export interface ChatQuestion {
  readonly requestId: string
  /** The id for `Chat.answer`. */
  readonly callId: string
  readonly conversationId: string
  /** The id of the principal that can answer. */
  readonly owner: string
  readonly tool: string
  readonly arguments: { readonly [name: string]: Json | undefined }
  readonly question: string
  /** What a tool of a turn wants to know, as in its `ask` event. */
  readonly form?: Extract<TurnEvent, { type: 'ask' }>['form']
  /** Set for a call of `Chat.callTool` whose tool requests input. */
  readonly requests?: { readonly [key: string]: InputRequest }
  /** The turn that asks, for `TurnStreams`. Absent for a turn without such a stream, and for `Chat.callTool`. */
  readonly turnId?: string
  /** The worker of the turn has exited. The answer continues the turn at the worker that gets it. */
  readonly interrupted?: boolean
  readonly since: number
  readonly until: number
}

/** One call of a tool outside of a turn. */
export interface ToolCallRequest {
  readonly tool: string
  readonly arguments: { readonly [name: string]: Json | undefined }
  /** Time limit in milliseconds, without waits for answers. Default: that of the tool, then `chat.tool_timeout_ms`. */
  readonly timeoutMs?: number
  /** A reader answers `ask` events with `Chat.answer`. Otherwise a call that needs approval is denied. */
  readonly interactive?: boolean
}

/** Events of a tool call: `start` first, `end` last, with a `result` or an `error` just before an end. */
export type ToolCallEvent =
  | {
      readonly type: 'start'
      readonly requestId: string
      readonly callId: string
      readonly tool: string
      readonly timestamp: string
    }
  | { readonly type: 'progress'; readonly progress: number; readonly total?: number; readonly message?: string }
  | {
      /** The call waits for `Chat.answer` with this question id as its `callId`. */
      readonly type: 'ask'
      readonly callId: string
      readonly questionId: string
      readonly tool: string
      readonly arguments: { readonly [name: string]: Json | undefined }
      readonly question: string
      /** The input that the tool requests. Absent: the question is whether it may run. */
      readonly requests?: { readonly [key: string]: InputRequest }
      /** When the call stops waiting, in Unix milliseconds. */
      readonly until?: number
    }
  | {
      readonly type: 'result'
      readonly callId: string
      /** False when the tool reports a failure. */
      readonly success: boolean
      readonly content: readonly ContentPart[]
      readonly structured?: Json
    }
  | { readonly type: 'error'; readonly error: PublicError }
  | {
      readonly type: 'end'
      readonly callId: string
      readonly tool: string
      readonly status: TurnStatus
      readonly durationMs: number
      readonly timestamp: string
    }

/**
 * Runs turns. Errors before the `start` event are thrown: CONVERSATION_UNKNOWN, CONVERSATION_BUSY, CONVERSATION_FULL,
 * PROVIDER_NOT_FOUND, MODEL_NOT_FOUND, INVALID_VALUE (`details: {field, …}`), MODEL_FAILED (`details: ModelFailure &
 * {provider}`), BUDGET_EXHAUSTED. Later errors are `error` events, including ANSWER_INVALID (`details: {provider, model,
 * reason}`).
 *
 * With an `idempotencyKey` in the context, each tool call gets its own key, derived from that key, the tool and the arguments.
 * A repeated turn with the same calls passes the same keys.
 */
export interface Chat {
  stream(turn: TurnRequest, ctx: CallContext): AsyncIterable<TurnEvent>
  /** Throws every error, before or after `start`. */
  reply(turn: TurnRequest, ctx: CallContext): Promise<TurnReply>
  /**
   * Answers an `ask` event, whichever worker runs the turn. Only the principal of the turn can, and only the first answer counts. If
   * the worker has exited, the answer continues the turn here. Throws QUESTION_UNKNOWN, and INVALID_VALUE for content that does not
   * match the form; the question stays open then. An interrupted question also stays open after the errors of a turn that cannot
   * begin, such as PROVIDER_NOT_FOUND.
   */
  answer(answer: ToolAnswer, ctx: CallContext): Promise<void>
  /** Open questions of all workers, the oldest first: the caller's own, with the scope `admin` all. */
  questions(ctx: CallContext): Promise<readonly ChatQuestion[]>
  /**
   * Calls a tool as a turn does: with the mode of the server, the taps of `toolCall` and the limits of chat. Throws before
   * `start`: TOOL_NOT_FOUND, INVALID_VALUE (`details: {field, reason}`: the arguments do not match, the mode does not allow the
   * tool), FORBIDDEN (a tap or a missing reader denies the call). Errors of the tool are `error` events.
   */
  callTool(request: ToolCallRequest, ctx: CallContext): AsyncIterable<ToolCallEvent>
}

export const Chat = defineService<Chat, ChatHooks>('chat', {
  api: 1,
  methods: { stream: 'stream', reply: 'call', answer: 'call', questions: 'call', callTool: 'stream' },
  hooks: { turn: 'waterfall', toolCall: 'bail', end: 'series' },
})

/**
 * Streams of turns that survive their connection. A turn whose reader disconnects continues for `chat.resume_s`, so that the
 * reader, or another one of the same principal, can continue at any worker; then it is cancelled. Its events stay for
 * `chat.resume_s` after its end. They are in the memory of the worker of the turn: with that worker they are lost. A turn that
 * waits for the permission of a person is stored: after its worker has exited, the answer continues it under the same id, with the
 * events that it had.
 *
 * The n-th event of a turn has the number n. Errors: TURN_UNKNOWN (also for turns of others), TURN_EVENTS_LOST
 * (`details: {first}`: the number of the first event that is still there), and those of `Chat`.
 */
export interface TurnStreams {
  /**
   * Starts a turn. An abort of `ctx.signal` means that the reader has left, unless its reason has the code UNAVAILABLE, which
   * cancels the turn. With `detach` the turn continues without a reader until it ends.
   */
  begin(turn: TurnRequest, options: { readonly detach?: boolean }, ctx: CallContext): AsyncIterable<TurnEvent>
  /** The events after the number `after` (0: all), and those that follow, up to `end`. */
  resume(turnId: string, after: number, ctx: CallContext): AsyncIterable<TurnEvent>
  /** Cancels a turn at once. Without effect on a turn that has ended. */
  cancel(turnId: string, ctx: CallContext): Promise<void>
}

export const TurnStreams = defineService<TurnStreams>('turn_streams', {
  api: 1,
  methods: { begin: 'stream', resume: 'stream', cancel: 'call' },
})
