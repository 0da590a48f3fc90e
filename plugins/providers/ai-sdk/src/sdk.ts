// The part of the AI SDK's provider interface that this plugin uses, in the versions 2, 3 and 4. The types are repeated here, so that the SDK is not
// needed at run time. `test/sdk.test-d.ts` compares them with the SDK's own types.
import type { JsonSchema } from '@svc/core'
import type { Json, ReasoningEffort } from '@svc/core/contracts'

/** The supported versions of the interface. */
export const VERSIONS = ['v4', 'v3', 'v2'] as const
export type Version = (typeof VERSIONS)[number]

/** Data about a part, by provider. Requests return it unchanged. */
export type Metadata = { readonly [provider: string]: { readonly [key: string]: Json | undefined } }

/** A model of any supported version. */
export interface LanguageModel {
  readonly specificationVersion: Version
  /** Name of its provider in the SDK, with the kind of its API: `openai.chat`. */
  readonly provider?: string
  /** Addresses that the package passes on, by media type. It fails for others. */
  readonly supportedUrls?: PromiseLike<SupportedUrls> | SupportedUrls
  doStream(options: CallOptions): PromiseLike<Streamed>
  doGenerate?(options: CallOptions): PromiseLike<Generated>
}

type SupportedUrls = { readonly [mediaType: string]: readonly RegExp[] }

/** A model for embeddings of any supported version. */
export interface EmbeddingModel {
  readonly specificationVersion: Version
  readonly provider?: string
  readonly maxEmbeddingsPerCall?: PromiseLike<number | undefined> | number | undefined
  doEmbed(options: EmbedOptions): PromiseLike<Embedded>
}
interface EmbedOptions {
  readonly values: string[]
  /** Version 4. Older packages have options of their own. */
  readonly dimensions?: number
  readonly providerOptions?: Metadata
  readonly headers: Readonly<Record<string, string>>
  readonly abortSignal: AbortSignal
}
interface Embedded {
  readonly embeddings: readonly (readonly number[])[]
  readonly usage?: { readonly tokens: number } | undefined
}

export interface Streamed {
  readonly stream: ReadableStream<StreamPart>
}
/** A whole answer. */
export interface Generated {
  readonly content: readonly GeneratedPart[]
  readonly finishReason: SdkFinish
  readonly usage: SdkUsage
  readonly warnings: readonly Warning[]
  readonly providerMetadata?: Metadata | undefined
}

export interface CallOptions {
  readonly prompt: readonly SdkMessage[]
  readonly maxOutputTokens?: number
  readonly temperature?: number
  readonly tools?: readonly FunctionTool[]
  readonly toolChoice?: ToolChoice
  readonly stopSequences?: string[]
  readonly topP?: number
  readonly topK?: number
  readonly seed?: number
  readonly frequencyPenalty?: number
  readonly presencePenalty?: number
  /** Version 4. Older packages have options of their own. */
  readonly reasoning?: ReasoningEffort
  readonly responseFormat?: { readonly type: 'json'; readonly schema?: JsonSchema; readonly name?: string }
  readonly providerOptions?: Metadata
  readonly headers: Readonly<Record<string, string>>
  readonly abortSignal: AbortSignal
}
export interface FunctionTool {
  readonly type: 'function'
  readonly name: string
  readonly description: string
  readonly inputSchema: JsonSchema
  /** From version 3 on. */
  readonly strict?: boolean
  readonly providerOptions?: Metadata
}
export type ToolChoice = { readonly type: 'auto' | 'none' | 'required' } | { readonly type: 'tool'; readonly toolName: string }

interface WithOptions {
  readonly providerOptions?: Metadata
}
export type PromptText = { readonly type: 'text'; readonly text: string } & WithOptions
/** Base64 or an address: untagged in versions 2 and 3, a tagged object in version 4. */
export type FileData =
  | string
  | URL
  | { readonly type: 'data'; readonly data: string }
  | { readonly type: 'url'; readonly url: URL }
export type PromptFile = {
  readonly type: 'file'
  readonly mediaType: string
  readonly data: FileData
  readonly filename?: string
} & WithOptions
export type PromptReasoning = { readonly type: 'reasoning'; readonly text: string } & WithOptions
export type PromptToolCall = {
  readonly type: 'tool-call'
  readonly toolCallId: string
  readonly toolName: string
  readonly input: unknown
} & WithOptions
export type PromptToolResult = {
  readonly type: 'tool-result'
  readonly toolCallId: string
  readonly toolName: string
  readonly output: ToolOutput
} & WithOptions
export type ToolOutput =
  | { readonly type: 'text' | 'error-text'; readonly value: string }
  | { readonly type: 'content'; readonly value: readonly OutputPart[] }
export type OutputPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'media' | 'image-data'; readonly mediaType: string; readonly data: string }
  | { readonly type: 'file'; readonly mediaType: string; readonly data: FileData }

export type SdkMessage =
  | ({ readonly role: 'system'; readonly content: string } & WithOptions)
  | { readonly role: 'user'; readonly content: readonly (PromptText | PromptFile)[] }
  | { readonly role: 'assistant'; readonly content: readonly (PromptText | PromptReasoning | PromptToolCall)[] }
  | { readonly role: 'tool'; readonly content: readonly PromptToolResult[] }

interface WithMetadata {
  readonly providerMetadata?: Metadata | undefined
}
type Border<T extends string> = { readonly type: T; readonly id: string } & WithMetadata
type Delta<T extends string> = Border<T> & { readonly delta: string }
interface Foreign {
  /** The provider runs this tool itself. */
  readonly providerExecuted?: boolean | undefined
}
/** The stream parts that this plugin reads. It ignores other types (files, raw chunks). */
export type StreamPart =
  | { readonly type: 'stream-start'; readonly warnings: readonly Warning[] }
  | Border<'text-start'>
  | Delta<'text-delta'>
  | Border<'text-end'>
  | Border<'reasoning-start'>
  | Delta<'reasoning-delta'>
  | Border<'reasoning-end'>
  | (Border<'tool-input-start'> & Foreign & { readonly toolName: string })
  | Delta<'tool-input-delta'>
  | Border<'tool-input-end'>
  | ({ readonly type: 'tool-call'; readonly toolCallId: string; readonly toolName: string; readonly input: string } & Foreign &
      WithMetadata)
  | ({ readonly type: 'finish'; readonly usage: SdkUsage; readonly finishReason: SdkFinish } & WithMetadata)
  | { readonly type: 'error'; readonly error: unknown }
  | Source

/** A source of the answer: a web page or a document. */
export type Source = { readonly type: 'source' } & (
  | { readonly sourceType: 'url'; readonly url: string; readonly title?: string | undefined }
  | { readonly sourceType: 'document'; readonly title: string }
)

/** The parts of a whole answer that this plugin reads. */
export type GeneratedPart =
  | ({ readonly type: 'text' | 'reasoning'; readonly text: string } & WithMetadata)
  | Extract<StreamPart, { type: 'tool-call' }>
  | Source

/** An option that the model could not apply. */
export interface Warning {
  readonly type: string
  readonly feature?: unknown
  readonly setting?: unknown
  readonly details?: unknown
  readonly message?: unknown
}

/** A word in version 2; the word and the provider's own word in versions 3 and 4. */
export type SdkFinish = string | { readonly unified: string; readonly raw: string | undefined }

type Count = number | undefined
/** Flat in version 2, by kind in versions 3 and 4. */
export type SdkUsage =
  | {
      readonly inputTokens: Count
      readonly outputTokens: Count
      readonly reasoningTokens?: Count
      readonly cachedInputTokens?: Count
    }
  | {
      readonly inputTokens: { readonly total: Count; readonly cacheRead: Count; readonly cacheWrite?: Count }
      readonly outputTokens: { readonly total: Count; readonly reasoning: Count }
    }

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** True if a value has the form of part options in the SDK: an object by provider, then by key. */
export const isMetadata = (value: unknown): value is Metadata => isObject(value) && Object.values(value).every(isObject)

/** The metadata of a part as plain JSON; `undefined` if it is empty. Packages can leave values in it that are not JSON. */
export function plainMetadata(metadata: Metadata | undefined): Metadata | undefined {
  if (metadata === undefined || Object.values(metadata).every(data => !isObject(data) || Object.keys(data).length === 0))
    return undefined
  const plain: unknown = JSON.parse(JSON.stringify(metadata))
  return isMetadata(plain) ? plain : undefined
}

/** Merges metadata by key. The later value wins. */
export function mergeMetadata(before: Metadata | undefined, after: Metadata | undefined): Metadata | undefined {
  if (before === undefined || after === undefined) return after ?? before
  const names = Object.keys({ ...before, ...after })
  return Object.fromEntries(names.map(name => [name, { ...before[name], ...after[name] }]))
}

/** Packs the data of all texts for the `finish` event, in order, because a text event has no field for data. */
export const writeTextData = (texts: readonly (Metadata | undefined)[]): Json | undefined =>
  texts.some(data => data !== undefined) ? { texts: texts.map(data => (data ?? null) as Json) } : undefined

/** The data of each of `count` texts; empty if the number of texts has changed. */
export function readTextData(data: Json | undefined, count: number): readonly (Json | undefined)[] {
  const texts = isObject(data) ? data.texts : undefined
  return Array.isArray(texts) && texts.length === count ? (texts as Json[]) : []
}
