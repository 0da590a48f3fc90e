import { defineSlot, type JsonSchema, type CallContext } from '@svc/core'
import type { Json } from './store.ts'
import type { ContentPart } from './tool.ts'

/**
 * A field of a request, or a kind of part, that not every model supports:
 * `stop`, `top_p`, `top_k`, `seed`, `n`, `frequency_penalty`, `presence_penalty`, `logit_bias`, `logprobs`, `reasoning_effort`,
 * `parallel_tool_calls`, `strict_tools`, `tool_choice`, `json` (`responseFormat`), `response_schema`, `cache_hints`,
 * `high_temperature` (above 1), `image_urls`, `files`, `audio`, `tool_call_deltas`, and `embeddings` (`Provider.embed`).
 */
export type ModelFeature =
  | 'stop'
  | 'top_p'
  | 'top_k'
  | 'seed'
  | 'n'
  | 'frequency_penalty'
  | 'presence_penalty'
  | 'logit_bias'
  | 'logprobs'
  | 'reasoning_effort'
  | 'parallel_tool_calls'
  | 'strict_tools'
  | 'tool_choice'
  | 'json'
  | 'response_schema'
  | 'cache_hints'
  | 'high_temperature'
  | 'image_urls'
  | 'files'
  | 'audio'
  | 'tool_call_deltas'
  | 'embeddings'

/** Features of a provider. */
export interface ProviderFeatures {
  readonly tool_calling: boolean
  readonly streaming: boolean
  readonly vision: boolean
  /** Further features. Absent: `tool_choice` and `response_schema`, which providers supported before this list existed. */
  readonly supports?: readonly ModelFeature[]
  /**
   * The protocol of its server, under the name that routes for its clients use too: the provider sends `ModelRequest.native` of
   * this protocol.
   */
  readonly protocol?: string
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

/** Asks the provider to cache the prompt up to this part or tool, for so long. */
export interface CacheHint {
  readonly ttl?: '5m' | '1h'
}

/** Text of a message. */
export interface TextPart {
  readonly type: 'text'
  readonly text: string
  /** The model refuses with this text. */
  readonly refusal?: true
  readonly cacheHint?: CacheHint
}
/** An image: base64 data with its media type. */
export interface ImagePart {
  readonly type: 'image'
  readonly data: string
  readonly mimeType: string
  readonly cacheHint?: CacheHint
}
/** An image at an http or https address, which the server of the model reads. svc does not open it. */
export interface ImageUrlPart {
  readonly type: 'image_url'
  readonly url: string
  readonly cacheHint?: CacheHint
}
/** A document, for example a PDF: base64 data with its media type. */
export interface FilePart {
  readonly type: 'file'
  readonly data: string
  readonly mimeType: string
  readonly name?: string
  readonly cacheHint?: CacheHint
}
/** Sound: base64 data with its media type. */
export interface AudioPart {
  readonly type: 'audio'
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
  readonly cacheHint?: CacheHint
}
export type MessagePart =
  | TextPart
  | ImagePart
  | ImageUrlPart
  | FilePart
  | AudioPart
  | ReasoningPart
  | ToolCallPart
  | ToolResultPart

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
  /** The arguments must match the schema exactly. */
  readonly strict?: boolean
  readonly cacheHint?: CacheHint
}

/** How much a model reasons before it answers. Models know some of the words. */
export type ReasoningEffort = 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max'

/**
 * A request as its caller sent it, in a protocol of model servers. A provider whose server speaks the protocol sends this body with
 * its own `model` and `stream`, and these headers, and returns the answer also as `native` events. svc checks neither.
 */
export interface NativeRequest {
  readonly protocol: string
  readonly body: { readonly [name: string]: Json | undefined }
  /** Headers of the protocol, such as `anthropic-beta`. Names are in lower case. Never credentials. */
  readonly headers?: Readonly<Record<string, string>>
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
  /** False: at most one tool call per answer. */
  readonly parallelToolCalls?: boolean
  /** 0 to 2; above 1 only with the feature `high_temperature`. */
  readonly temperature?: number
  /** Above 0, up to 1. */
  readonly topP?: number
  /** An integer above 0. */
  readonly topK?: number
  /** Maximum number of output tokens. */
  readonly maxTokens?: number
  /** Texts before which the answer ends: at most 4. */
  readonly stop?: readonly string[]
  /** The same request with the same seed is likely to get the same answer. */
  readonly seed?: number
  /** Number of answers, 1 to 8. Events of the second and later answers have `choice`. */
  readonly n?: number
  /** -2 to 2. */
  readonly frequencyPenalty?: number
  /** -2 to 2. */
  readonly presencePenalty?: number
  /** Changes of the likelihood of tokens, -100 to 100, by token id. */
  readonly logitBias?: Readonly<Record<string, number>>
  /** Asks for `logprobs` events with so many alternatives for each token, 0 to 20. */
  readonly logprobs?: number
  readonly reasoningEffort?: ReasoningEffort
  /** Maximum number of reasoning tokens. A provider that only has levels uses the nearest. */
  readonly reasoningTokens?: number
  /** `json`: the reply is any JSON object. */
  readonly responseFormat?: 'json'
  /** JSON Schema of the reply. */
  readonly responseSchema?: JsonSchema
  /** Name of the schema, for servers that need one. */
  readonly responseSchemaName?: string
  /** Whether the server must enforce the schema. Default: if the schema allows it. */
  readonly responseSchemaStrict?: boolean
  /** Also send `tool_call_delta` events. */
  readonly toolCallDeltas?: boolean
  /** The original of this request, for a provider whose server speaks its protocol. */
  readonly native?: NativeRequest
  /**
   * Requests with the same key are likely to begin with the same messages: those of one conversation. It can be the id of the conversation, so a
   * provider sends only a hash of it, to a server that finds its cached prompts by a key.
   */
  readonly cacheKey?: string
  /** The text is collected, not streamed: the provider can send it in any number of pieces. */
  readonly gathered?: boolean
}

/** A field of a request, or a kind of content in it, that a model can lack. */
export type RequestField =
  | Exclude<keyof ModelRequest, 'model'>
  | 'strictTools'
  | 'cacheHints'
  | 'images'
  | 'imageUrls'
  | 'files'
  | 'audio'

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

/** A token of the answer with its log probability, and the most likely alternatives. */
export interface TokenLogprob {
  readonly token: string
  readonly logprob: number
  readonly bytes?: readonly number[]
  readonly top?: readonly Omit<TokenLogprob, 'top'>[]
}

/** A source that the model cites. `start` and `end` are positions in the text of the answer. */
export interface Citation {
  readonly url?: string
  readonly title?: string
  readonly quote?: string
  readonly start?: number
  readonly end?: number
}

/** Index of the answer, from 1, for all answers but the first. */
export interface OfChoice {
  readonly choice?: number
}

/**
 * Events of a model call: parts in order, `usage` at most once, `finish` last and exactly once. With `n`, each answer has its own
 * `finish`, that of the first answer last.
 */
export type ModelEvent =
  | (TextPart & OfChoice)
  | (ReasoningPart & OfChoice)
  | (ToolCallPart & OfChoice)
  /** A piece of the arguments of tool call number `index` of the answer, as text. The whole call follows as `tool_call`. */
  | ({
      readonly type: 'tool_call_delta'
      readonly index: number
      readonly id: string
      readonly tool: string
      readonly text: string
    } & OfChoice)
  | ({ readonly type: 'logprobs'; readonly tokens: readonly TokenLogprob[] } & OfChoice)
  | ({ readonly type: 'citation'; readonly citation: Citation } & OfChoice)
  /**
   * An event (or the whole answer, with `gathered`) of the server, for `ModelRequest.native`, before the events made of it. An error is
   * none: it fails the call.
   */
  | { readonly type: 'native'; readonly event?: string; readonly data: Json }
  | { readonly type: 'usage'; readonly usage: Usage }
  | ({
      readonly type: 'finish'
      readonly reason: FinishReason
      /** The text of `stop` at which the answer ended. */
      readonly stopText?: string
      readonly providerData?: Json
    } & OfChoice)

/** Texts, or lists of token ids, to convert to vectors. */
export interface EmbedRequest {
  readonly model: string
  readonly input: readonly (string | readonly number[])[]
  /** Length of the vectors, for models that can shorten them. */
  readonly dimensions?: number
}
export interface EmbedReply {
  /** The vectors in the order of the input. */
  readonly vectors: readonly (readonly number[])[]
  readonly usage: Usage
}

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
  /** For models with the feature `embeddings`. Fails like `chat`. */
  embed?(request: EmbedRequest, ctx: CallContext): Promise<EmbedReply>
  /**
   * Checks whether the provider is reachable, never with a billed call. Throws MODEL_FAILED with the reason, which status
   * reports show. Other errors appear only in the log.
   */
  probe(ctx: CallContext): Promise<void>
}

/** Providers by the name of their configuration entry. */
export const Providers = defineSlot<Provider>('providers', {
  api: 1,
  methods: { models: 'call', countTokens: 'call', chat: 'stream', embed: 'call', probe: 'call' },
})
