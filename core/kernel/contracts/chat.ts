import { type Bail, defineService, type JsonSchema, type Series, type CallContext, type Waterfall } from '@svc/core'
import type { StoredMessage, TurnStatus } from './conversations.ts'
import type { ModelEvent, ModelFailure, ModelRequest, Usage } from './provider.ts'
import type { Selected } from './selection.ts'
import type { Json } from './store.ts'
import type { Effect, ToolResult } from './tool.ts'

/** What a caller asks of one turn. */
export interface TurnRequest {
  readonly message: string
  readonly conversationId?: string
  readonly provider?: string
  readonly model?: string
  readonly temperature?: number
  readonly maxTokens?: number
  /** Names of tools; absent: the profile's, else all that the mode allows; empty: none. */
  readonly tools?: readonly string[]
  /** Somebody reads along and answers `ask` events by `Chat.answer`; without it a tool call that asks is denied. */
  readonly interactive?: boolean
  /** A profile and a mode for this turn instead of those in force. A profile that is named wins over an override, as one that is switched to does. */
  readonly profile?: string
  readonly mode?: string
  /** Instead of the profile's system prompt; the mode's is added all the same. */
  readonly system?: string
  /** At most so many tool calls, and no more than the mode grants; 0: none. */
  readonly toolBudget?: number
  /**
   * At most so many tokens, input and output of all rounds together, as the provider counts them. A round that could not answer within what is left is not begun:
   * the turn fails with BUDGET_EXHAUSTED.
   */
  readonly tokenBudget?: number
  /**
   * The reply is JSON of this schema: `TurnEnd.data`. A model whose answer does not fit is told why, once; then the turn fails with ANSWER_INVALID. The text of
   * such a turn is told in one piece, once it fits.
   */
  readonly responseSchema?: JsonSchema
  /** Milliseconds it may take, instead of `chat.timeout_ms`. */
  readonly timeoutMs?: number
  /** False: nothing of the turn is kept, and its `conversationId` is empty. Not together with a conversation. */
  readonly keep?: boolean
}

export interface TurnUsage {
  readonly input: number
  readonly output: number
  readonly total: number
}

/** One tool call of a turn, as the reply tells it. */
export interface ToolUse {
  readonly tool: string
  readonly callId: string
  readonly arguments: { readonly [name: string]: Json | undefined }
  readonly success: boolean
  readonly durationMs: number
  readonly error?: string
}

/** An error as it is told: code, message, facts. */
export interface PublicError {
  readonly code: string
  readonly message: string
  readonly details: Readonly<Record<string, unknown>>
}

/** A turn as it happens: `start` first, `end` last; `error` just before an `end` whose status is `failed`. */
export type TurnEvent =
  | {
      readonly type: 'start'
      readonly requestId: string
      readonly timestamp: string
      readonly conversationId: string
      readonly provider: string
      readonly model: string
    }
  | { readonly type: 'token'; readonly content: string; readonly index: number }
  | {
      readonly type: 'tool_call'
      readonly tool: string
      readonly callId: string
      readonly arguments: { readonly [name: string]: Json | undefined }
    }
  | {
      /** Only in an interactive turn: whether this call may run. It waits for `Chat.answer`. */
      readonly type: 'ask'
      readonly tool: string
      readonly callId: string
      readonly arguments: { readonly [name: string]: Json | undefined }
      readonly question: string
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

export interface TurnEnd {
  readonly type: 'end'
  readonly requestId: string
  readonly timestamp: string
  readonly conversationId: string
  readonly status: TurnStatus
  readonly provider: string
  readonly model: string
  readonly usage: TurnUsage
  readonly durationMs: number
  readonly toolsUsed: readonly ToolUse[]
  /** The reply as data, where a `responseSchema` was asked for and the turn has completed. */
  readonly data?: Json
}

/** The reply: the stream, gathered. */
export interface TurnReply extends Omit<TurnEnd, 'type'> {
  readonly response: string
}

/** A turn before anything is decided: taps may change it. */
export interface TurnStart extends TurnRequest {}

/** A provider and one of its models. */
export interface ModelRef {
  readonly provider: string
  readonly model: string
}

/** A model about to be asked: a tap may answer instead, or say who is asked. `selected.provider` and `.model` are those about to be asked. */
export interface ModelCall {
  /** The turn it belongs to: unlike the id of the request, which clients choose, no two turns have the same. */
  readonly turn: string
  readonly selected: Selected
  readonly request: ModelRequest
  /** 1 for the first round of the turn, growing with each round of tools. */
  readonly round: number
  /** 1 for the first try of this model in this round. */
  readonly attempt: number
  /** The models that were given up before in this turn, in order. */
  readonly tried: readonly ModelRef[]
}
/** What a tap of `modelCall` answers: the events themselves, a failure without a call (nobody is asked then), or another model to ask. */
export type ModelAnswer =
  | { readonly events: readonly ModelEvent[] }
  | { readonly failure: ModelFailure; readonly message: string }
  | ModelRef
/** A model call that failed before its first event. */
export interface ModelFailed extends ModelCall {
  readonly failure: ModelFailure
  readonly message: string
}
/** What to do about it: wait and try again, or ask another. */
export type FailureAnswer = { readonly waitMs: number } | (ModelRef & { readonly waitMs?: number })
export interface ModelDone extends ModelCall {
  /** As the provider told it; of a call that ended before that, what was said is counted. The usages of a turn's calls are that of its `TurnEnd`. */
  readonly usage: Usage
  /** What it answered, whole; absent where it failed, and where neither this nor `failure` is there the call was left before its end. */
  readonly events?: readonly ModelEvent[]
  /** A tap of `modelCall` has answered in its stead. */
  readonly answered?: boolean
  readonly durationMs: number
  /** Milliseconds to the first event. */
  readonly firstMs: number
  readonly failure?: ModelFailure
}

/** A tool about to run. */
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
  /** A person is asked, where the turn is interactive; else the call is denied. */
  | { readonly verdict: 'ask'; readonly question: string }
  | { readonly verdict: 'answer'; readonly result: ToolResult }

export interface TurnDone {
  /** As in `ModelCall`. */
  readonly turn: string
  readonly end: TurnEnd
  readonly kept: readonly StoredMessage[]
}

export interface ChatHooks {
  /** Before anything. */
  turn: Waterfall<TurnStart>
  /** Before each call of a model: a ready answer, a refusal, or another model. */
  modelCall: Bail<ModelCall, ModelAnswer>
  modelFailed: Bail<ModelFailed, FailureAnswer>
  modelDone: Series<ModelDone>
  toolCall: Bail<ToolCall, ToolVerdict>
  end: Series<TurnDone>
}

/** What a person says to an `ask` event. */
export interface ToolAnswer {
  readonly requestId: string
  readonly callId: string
  readonly allow: boolean
  /** Told to the model when it is not allowed. */
  readonly reason?: string
}

/**
 * Runs turns. What fails before the `start` event is thrown: CONVERSATION_UNKNOWN, CONVERSATION_BUSY, CONVERSATION_FULL, PROVIDER_NOT_FOUND,
 * MODEL_NOT_FOUND, INVALID_VALUE (`details: {field, …}`), MODEL_FAILED (`details: ModelFailure & {provider}`), BUDGET_EXHAUSTED; what fails later is an `error`
 * event, ANSWER_INVALID (`details: {provider, model, reason}`) among it.
 *
 * Where `use` has an `idempotencyKey`, each tool is called with one of its own, made of it, the tool and the arguments: a turn that is run once more and does the
 * same gives it the same.
 */
export interface Chat {
  stream(turn: TurnRequest, ctx: CallContext): AsyncIterable<TurnEvent>
  /** Throws what failed, before or after `start`. */
  reply(turn: TurnRequest, ctx: CallContext): Promise<TurnReply>
  /** Answers an `ask` event, whichever worker runs the turn; only the principal of the turn may. Throws QUESTION_UNKNOWN. */
  answer(answer: ToolAnswer, ctx: CallContext): Promise<void>
}

export const Chat = defineService<Chat, ChatHooks>('chat', {
  api: 1,
  methods: { stream: 'stream', reply: 'call', answer: 'call' },
  hooks: { turn: 'waterfall', modelCall: 'bail', modelFailed: 'bail', modelDone: 'series', toolCall: 'bail', end: 'series' },
})
