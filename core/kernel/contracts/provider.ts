import { defineSlot, type JsonSchema, type CallContext } from '@svc/core'
import type { Json } from './store.ts'
import type { ContentPart } from './tool.ts'

/** What a provider can do at all. */
export interface ProviderFeatures {
  readonly tool_calling: boolean
  readonly streaming: boolean
  readonly vision: boolean
}

/** A model and its limits, in tokens; a limit that is unknown is absent. */
export interface ModelInfo {
  readonly id: string
  readonly context?: number
  readonly output?: number
  /** What it can do, where that is other than what its provider says. */
  readonly features?: Partial<ProviderFeatures>
  /** False when it takes no `temperature`: many models that reason do not. */
  readonly temperature?: boolean
}
export interface ModelList {
  readonly models: readonly ModelInfo[]
  /** True when other ids than those listed may exist: any is accepted then. */
  readonly open: boolean
}

/** Text a model is given or gives. */
export interface TextPart {
  readonly type: 'text'
  readonly text: string
}
/** An image: base64 data with its media type. */
export interface ImagePart {
  readonly type: 'image'
  readonly data: string
  readonly mimeType: string
}
/**
 * Reasoning of the model. `providerData` must be given back to the same provider untouched. Pieces that follow each other are one, which the piece with
 * `providerData` ends; one without either is a sign of life.
 */
export interface ReasoningPart {
  readonly type: 'reasoning'
  readonly text: string
  readonly providerData?: Json
}
/** The model wants a tool. `arguments` is what it wrote, parsed; `invalid` the text where that was no JSON object. */
export interface ToolCallPart {
  readonly type: 'tool_call'
  readonly id: string
  readonly tool: string
  readonly arguments: { readonly [name: string]: Json | undefined }
  readonly invalid?: string
  readonly providerData?: Json
}
/** What the tool answered, for the model. */
export interface ToolResultPart {
  readonly type: 'tool_result'
  readonly id: string
  readonly tool: string
  readonly content: readonly ContentPart[]
  readonly isError: boolean
}
export type MessagePart = TextPart | ImagePart | ReasoningPart | ToolCallPart | ToolResultPart

/** One message of a conversation as models see it. Tool results come as a message of role `tool`. */
export interface ModelMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool'
  readonly parts: readonly MessagePart[]
  /** Opaque, stored, and returned to the same provider. */
  readonly providerData?: Json
  /** The provider that made an assistant message, and so may read its `providerData`. */
  readonly provider?: string
}

/** A tool as a model sees it. */
export interface ToolSpec {
  readonly name: string
  readonly description: string
  readonly parameters: JsonSchema
}

export interface ModelRequest {
  readonly model: string
  readonly messages: readonly ModelMessage[]
  /** Absent in a last answer too, although `messages` hold calls of before. */
  readonly tools?: readonly ToolSpec[]
  readonly toolChoice?: 'auto' | 'none' | 'required' | { readonly tool: string }
  /** 0 to 1. */
  readonly temperature?: number
  /** At most so many tokens of output. */
  readonly maxTokens?: number
  /** The reply is to be JSON of this schema. */
  readonly responseSchema?: JsonSchema
  /** Nobody reads along: the text may come in as few pieces as the provider likes. */
  readonly gathered?: boolean
}

/** Tokens of one model call; `cached` is part of `input`, `reasoning` part of `output`. */
export interface Usage {
  readonly input: number
  readonly output: number
  readonly cached?: number
  readonly reasoning?: number
}

export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter'

/** What a model call yields: pieces in order, `usage` at most once before the end, `finish` last and exactly once. */
export type ModelEvent =
  | TextPart
  | ReasoningPart
  | ToolCallPart
  | { readonly type: 'usage'; readonly usage: Usage }
  | { readonly type: 'finish'; readonly reason: FinishReason; readonly providerData?: Json }

/**
 * Why a model call failed: an error with code MODEL_FAILED and these `details`. `retryable` says that the same call may succeed later.
 */
export type ModelFailureKind =
  | 'rate_limited'
  | 'overloaded'
  | 'bad_request'
  | 'authentication'
  | 'context_too_long'
  | 'content_refused'
  | 'network'
  | 'timeout'
export interface ModelFailure {
  readonly kind: ModelFailureKind
  readonly retryable: boolean
  /** Milliseconds after which a retry makes sense. */
  readonly retryAfterMs?: number
  /** HTTP status of the upstream. */
  readonly upstreamStatus?: number
  /** True when the request alone is to blame, whatever the kind says: it tells nothing of how the model is. */
  readonly requestOnly?: boolean
  /** For context_too_long: tokens allowed and counted. */
  readonly limit?: number
  readonly count?: number
}

/**
 * A source of models. `chat` fails with MODEL_FAILED and `ModelFailure` as details. When `ctx.signal` aborts, or the consumer stops, it closes the
 * upstream connection and ends.
 */
export interface Provider {
  readonly features: ProviderFeatures
  models(ctx: CallContext): Promise<ModelList>
  /** Tokens the request would cost as input; where the exact count is unknown, an estimate that is not too low. */
  countTokens(request: ModelRequest, ctx: CallContext): Promise<number>
  chat(request: ModelRequest, ctx: CallContext): AsyncIterable<ModelEvent>
  /** Whether it can be reached; never a billed call. Throws MODEL_FAILED with the reason, which readers of the status are told; what else it throws only the log is. */
  probe(ctx: CallContext): Promise<void>
}

/** Providers by the name of their entry in the configuration. */
export const Providers = defineSlot<Provider>('providers', {
  api: 1,
  methods: { models: 'call', countTokens: 'call', chat: 'stream', probe: 'call' },
})
