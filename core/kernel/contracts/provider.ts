import { defineSlot, type JsonSchema, type CallContext } from '@svc/core'
import type { Json } from './store.ts'
import type { ContentPart } from './tool.ts'

/** Features of a provider. */
export interface ProviderFeatures {
  readonly tool_calling: boolean
  readonly streaming: boolean
  readonly vision: boolean
}

/** A model and its token limits. An unknown limit is absent. */
export interface ModelInfo {
  readonly id: string
  readonly context?: number
  readonly output?: number
  /** Features that differ from those of its provider. */
  readonly features?: Partial<ProviderFeatures>
  /** False when the model rejects `temperature`, as many reasoning models do. */
  readonly temperature?: boolean
}
export interface ModelList {
  readonly models: readonly ModelInfo[]
  /** True when other ids than those listed can exist and are accepted. */
  readonly open: boolean
}

/** Text of a message. */
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
 * Reasoning of the model. Return `providerData` unchanged to the same provider. Consecutive pieces form one part, which the
 * piece with `providerData` ends. A piece without text and data is a keep-alive.
 */
export interface ReasoningPart {
  readonly type: 'reasoning'
  readonly text: string
  readonly providerData?: Json
}
/** A tool call of the model. `arguments` is the parsed text. `invalid` is the text when it is not a JSON object. */
export interface ToolCallPart {
  readonly type: 'tool_call'
  readonly id: string
  readonly tool: string
  readonly arguments: { readonly [name: string]: Json | undefined }
  readonly invalid?: string
  readonly providerData?: Json
}
/** The result of a tool call, for the model. */
export interface ToolResultPart {
  readonly type: 'tool_result'
  readonly id: string
  readonly tool: string
  readonly content: readonly ContentPart[]
  readonly isError: boolean
}
export type MessagePart = TextPart | ImagePart | ReasoningPart | ToolCallPart | ToolResultPart

/** One message of a conversation as models see it. Tool results are messages of role `tool`. */
export interface ModelMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool'
  readonly parts: readonly MessagePart[]
  /** Opaque data, stored and returned to the same provider. */
  readonly providerData?: Json
  /** The provider that created an assistant message and can read its `providerData`. */
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
  /** Can be absent in the last step although `messages` contain tool calls. */
  readonly tools?: readonly ToolSpec[]
  /**
   * Names of further tools that the model can call. A tool of `tools` lists them and adds their schemas to the next requests. A provider sends only
   * `tools`.
   */
  readonly indexed?: readonly string[]
  readonly toolChoice?: 'auto' | 'none' | 'required' | { readonly tool: string }
  /** 0 to 1. */
  readonly temperature?: number
  /** Maximum number of output tokens. */
  readonly maxTokens?: number
  /** JSON Schema of the reply. */
  readonly responseSchema?: JsonSchema
  /**
   * Requests with the same key are likely to begin with the same messages: those of one conversation. It can be the id of the conversation, so a
   * provider sends only a hash of it, to a server that finds its cached prompts by a key.
   */
  readonly cacheKey?: string
  /** The text is collected, not streamed: the provider can send it in any number of pieces. */
  readonly gathered?: boolean
}

/** Tokens of one model call; `cached` and `cacheWrite` are parts of `input`, `reasoning` is part of `output`. */
export interface Usage {
  readonly input: number
  readonly output: number
  /** Read from the prompt cache of the provider. */
  readonly cached?: number
  /** Written to the prompt cache, if the provider reports it because it bills them differently. */
  readonly cacheWrite?: number
  readonly reasoning?: number
}

export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter'

/** Events of a model call: parts in order, `usage` at most once, `finish` last and exactly once. */
export type ModelEvent =
  | TextPart
  | ReasoningPart
  | ToolCallPart
  | { readonly type: 'usage'; readonly usage: Usage }
  | { readonly type: 'finish'; readonly reason: FinishReason; readonly providerData?: Json }

/** Why a model call failed: the `details` of a MODEL_FAILED error. `retryable`: the same call can succeed later. */
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
  /** True when only the request is to blame, whatever the kind. The failure then says nothing about the health of the model. */
  readonly requestOnly?: boolean
  /** For context_too_long: allowed and counted tokens. */
  readonly limit?: number
  readonly count?: number
}

/**
 * A source of models. `chat` fails with MODEL_FAILED and `ModelFailure` as details. When `ctx.signal` aborts or the consumer
 * stops, it closes the upstream connection and ends.
 */
export interface Provider {
  readonly features: ProviderFeatures
  models(ctx: CallContext): Promise<ModelList>
  /** Number of input tokens of the request. If the exact number is unknown, an estimate that is not too low. */
  countTokens(request: ModelRequest, ctx: CallContext): Promise<number>
  chat(request: ModelRequest, ctx: CallContext): AsyncIterable<ModelEvent>
  /**
   * Checks whether the provider is reachable, never with a billed call. Throws MODEL_FAILED with the reason, which status
   * reports show. Other errors appear only in the log.
   */
  probe(ctx: CallContext): Promise<void>
}

/** Providers by the name of their configuration entry. */
export const Providers = defineSlot<Provider>('providers', {
  api: 1,
  methods: { models: 'call', countTokens: 'call', chat: 'stream', probe: 'call' },
})
