import { type Bail, type CallContext, defineService, type Series } from '@svc/core'
import type { PublicError } from './chat.ts'
import type { StoredMessage } from './conversations.ts'
import type {
  EmbedReply,
  EmbedRequest,
  FinishReason,
  ModelEvent,
  ModelFailure,
  ModelRequest,
  RequestField,
  Usage,
} from './provider.ts'
import type { Selected, SelectionRequest } from './selection.ts'

/** A provider and one of its models. */
export interface ModelRef {
  readonly provider: string
  readonly model: string
}

/** A request whose model `ModelCallOrder` selects. */
export type OpenRequest = Omit<ModelRequest, 'model'>

/** Limits of one model call. Each has a default in the section `models.calls`. */
export interface ModelCallLimits {
  /** Milliseconds to the first event. */
  readonly firstMs?: number
  /** Milliseconds between two events. */
  readonly betweenMs?: number
  /** Milliseconds of the whole call, with retries and waits. */
  readonly timeoutMs?: number
  /** The rest of `timeoutMs` when the call begins, if earlier work has used a part of it. */
  readonly leftMs?: number
  /** Maximum characters of the answer, with reasoning and tool call arguments. */
  readonly answerLimit?: number
  /** Maximum characters of the arguments of a tool call, as JSON. */
  readonly argumentsLimit?: number
}

/** A call of a model, with retries, fallback models, circuit breaker, cache, prices and time limits. */
export interface ModelCallOrder {
  readonly request: OpenRequest
  /** The model, as `Selection.select` takes it. Default: the current selection. */
  readonly select?: SelectionRequest
  /** A selection that the caller has made with `Selection.select`. Used instead of `select`. */
  readonly selected?: Selected
  /**
   * Fields of the request that are defaults, and not what the user asked for. A model that does not support such a field gets the
   * request without it: a note in place of an image, file or sound, the model's limit in place of `maxTokens`. For other fields
   * the call fails with INVALID_VALUE (`details: {field, reason, …}`).
   */
  readonly defaults?: readonly RequestField[]
  /**
   * Allows the call to shorten the request until it fits into the context window: it cuts tool results and drops the oldest of
   * these past turns, which it puts before the first message of the request that is not a system message.
   */
  readonly history?: readonly (readonly StoredMessage[])[]
  /** The turn of several calls that this call belongs to. Absent: the call is a turn of its own. */
  readonly step?: ModelCallStep
  /** Tokens that the turn has used and may use. Fails with BUDGET_EXHAUSTED if the request does not fit into the rest. */
  readonly budget?: { readonly total: number; readonly spent: number }
  /**
   * What the turn has cost and may cost, by `Prices`. Fails with BUDGET_EXHAUSTED if the request does not fit into the rest, with
   * PRICE_UNKNOWN for a model without a price.
   */
  readonly costBudget?: { readonly total: number; readonly spent: number }
  readonly limits?: ModelCallLimits
}

/** The place of a call in a turn. */
export interface ModelCallStep {
  /** A unique id of the turn. */
  readonly turn: string
  /** Number of the step, from 1. */
  readonly round: number
  /** The model that answered the last step. Absent: the selected model. */
  readonly model?: ModelRef
  /** Models that failed in earlier steps, in order. */
  readonly tried?: readonly ModelRef[]
}

/**
 * Events of a call. `start` names the model that is called, before its events; a retry or a fallback before the first part of an
 * answer begins with a `start` again. `end` is last, also of a call that failed or was aborted: after it, the stream throws.
 */
export type ModelCallEvent = ModelCallBegun | ModelEvent | ModelCallEnd

/** The model that is called, and the fields of `ModelCallOrder.defaults` that it does not support. */
export interface ModelCallBegun extends ModelRef {
  readonly type: 'start'
  readonly dropped?: readonly RequestField[]
}

/** The end of a call. */
export interface ModelCallEnd extends ModelRef {
  readonly type: 'end'
  readonly status: 'completed' | 'failed' | 'cancelled'
  /** The answer as a message of the assistant, incomplete unless the status is `completed`. Absent without an answer. */
  readonly message?: StoredMessage
  readonly finish?: FinishReason
  readonly stopText?: string
  /** The budget that has cut the answer (`finish` is `length`). */
  readonly cutBy?: 'tokens' | 'cost'
  /** The tokens of all attempts together. Of an attempt that ended early, the received text is counted. */
  readonly usage: Usage
  /** The cost of all attempts at models with a price. Absent without one. */
  readonly cost?: number
  /** `ModelCallStep.tried`, with the models that failed in this call. */
  readonly tried: readonly ModelRef[]
  readonly durationMs: number
  /** Why the call failed. */
  readonly error?: PublicError
}

/** Embeddings of a call, and the model that made them. */
export interface EmbedResult extends EmbedReply, ModelRef {
  /** As in `ModelCallEnd`. */
  readonly cost?: number
}

/** What to embed, with which model. */
export interface EmbedOrder {
  readonly request: Omit<EmbedRequest, 'model'>
  readonly select?: SelectionRequest
  readonly selected?: Selected
  readonly limits?: Pick<ModelCallLimits, 'timeoutMs'>
}

/** A call to check before it is made. */
export type CheckOrder = Pick<ModelCallOrder, 'request' | 'select' | 'selected' | 'defaults'>

/** Messages to count, for which model. */
export interface CountOrder {
  readonly request: OpenRequest
  readonly select?: SelectionRequest
  readonly selected?: Selected
}

/**
 * A model call about to start. A tap can answer instead, or choose another model. `selected.provider` and `.model` are those
 * about to be called.
 */
export interface ModelCall {
  /** The id of the turn. It is unique, unlike the request id, which clients choose. */
  readonly turn: string
  /** The call is a turn of its own: no turn of `Chat` ends after it. */
  readonly single?: true
  readonly selected: Selected
  /** For embeddings, the input as messages of the user. */
  readonly request: ModelRequest
  /** `embed`: the call asks for embeddings. A tap cannot answer it with events. */
  readonly kind: 'chat' | 'embed'
  /** The step of the turn, from 1; each round of tools starts a new step. */
  readonly round: number
  /** The attempt at this model in this step, from 1. */
  readonly attempt: number
  /** Models that failed before in this turn, in order. */
  readonly tried: readonly ModelRef[]
}
/** Result of a `modelCall` tap: the events, a failure without a call, or another model to call. */
export type ModelAnswer =
  | { readonly events: readonly ModelEvent[] }
  | { readonly failure: ModelFailure; readonly message: string }
  | ModelRef
/** A model call that failed before its first event. */
export interface ModelFailed extends ModelCall {
  readonly failure: ModelFailure
  readonly message: string
}
/** The reaction to a failure: wait and retry, or call another model. */
export type FailureAnswer = { readonly waitMs: number } | (ModelRef & { readonly waitMs?: number })
export interface ModelDone extends ModelCall {
  /**
   * The usage that the provider reported. For a call that ended early, the received text is counted. The sum over the calls of
   * a turn is the usage of its `TurnEnd`.
   */
  readonly usage: Usage
  /** All events of the answer. Absent when the call failed. Without `failure` as well, the call was abandoned before its end. */
  readonly events?: readonly ModelEvent[]
  /** A tap of `modelCall` answered instead. */
  readonly answered?: boolean
  readonly durationMs: number
  /** Milliseconds to the first event. */
  readonly firstMs: number
  readonly failure?: ModelFailure
}

export interface ModelCallHooks {
  /** Runs before each model call: answers, fails it, or chooses another model. */
  modelCall: Bail<ModelCall, ModelAnswer>
  modelFailed: Bail<ModelFailed, FailureAnswer>
  modelDone: Series<ModelDone>
}

/**
 * Calls models. Errors: PROVIDER_NOT_FOUND, MODEL_NOT_FOUND, INVALID_VALUE (`details: {field, …}`), MODEL_FAILED (`details:
 * ModelFailure & {provider}`), BUDGET_EXHAUSTED.
 */
export interface ModelCalls {
  stream(order: ModelCallOrder, ctx: CallContext): AsyncIterable<ModelCallEvent>
  /** The end of the call. Throws every error. */
  reply(order: ModelCallOrder, ctx: CallContext): Promise<ModelCallEnd>
  /** Throws INVALID_VALUE (`field: model`) for a model without the feature `embeddings`. */
  embed(order: EmbedOrder, ctx: CallContext): Promise<EmbedResult>
  /**
   * The `start` of the call if the selected model answers. Calls no model. Throws INVALID_VALUE for a field that the model does not
   * support, as `stream` does.
   */
  check(order: CheckOrder, ctx: CallContext): Promise<ModelCallBegun>
  /** Number of input tokens of a request, as its provider counts them, or an estimate. */
  countTokens(order: CountOrder, ctx: CallContext): Promise<number>
}

export const ModelCalls = defineService<ModelCalls, ModelCallHooks>('model_calls', {
  api: 1,
  methods: { stream: 'stream', reply: 'call', embed: 'call', check: 'call', countTokens: 'call' },
  hooks: { modelCall: 'bail', modelFailed: 'bail', modelDone: 'series' },
})

/** Prices per million tokens. */
export interface ModelPrice {
  readonly input: number
  readonly output: number
  readonly cachedInput?: number
  readonly cacheWrite?: number
}

/** Prices of models, by the configuration. */
export interface Prices {
  price(model: ModelRef, ctx: CallContext): Promise<ModelPrice | undefined>
  /** The cost of a call in the currency of the prices; `undefined` for a model without a price. */
  cost(model: ModelRef, usage: Usage, ctx: CallContext): Promise<number | undefined>
  currency(ctx: CallContext): Promise<string>
}
export const Prices = defineService<Prices>('prices', { api: 1, methods: { price: 'call', cost: 'call', currency: 'call' } })

/** How a model has answered, in all workers since their start. Times are Unix milliseconds. */
export interface ModelState extends ModelRef {
  /** The least favourable state in any worker: each worker has its own breaker. */
  readonly breaker: 'closed' | 'half_open' | 'open'
  /** Number of running workers in which it is open. */
  readonly openIn: number
  /** When the first of these workers tries it again. */
  readonly retryAt?: number
  readonly calls: number
  readonly failures: number
  /** Milliseconds to the first event of an answer. */
  readonly firstMs?: { readonly last: number; readonly mean: number }
  readonly lastError?: {
    readonly kind: ModelFailure['kind']
    readonly message: string
    readonly upstreamStatus?: number
    readonly at: number
  }
}

/** The health of models that have been called. At most a few hundred: callers can invent names. */
export interface ModelHealth {
  states(ctx: CallContext): Promise<readonly ModelState[]>
}
export const ModelHealth = defineService<ModelHealth>('model_health', { api: 1, methods: { states: 'call' } })
