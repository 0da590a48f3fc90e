// What this plugin knows of the AI SDK's provider interface: as much as the versions 2, 3 and 4 share or differ in, written out, so that nothing of the
// SDK is needed at run time. `test/sdk.test-d.ts` holds it against the SDK's own types.
import type { JsonSchema } from '@svc/core'
import type { Json } from '@svc/core/contracts'

/** The versions of the interface that this plugin speaks. */
export const VERSIONS = ['v4', 'v3', 'v2'] as const
export type Version = (typeof VERSIONS)[number]

/** By provider, its data about a part, passed back unchanged. */
export type Metadata = { readonly [provider: string]: { readonly [key: string]: Json | undefined } }

/** A model, of whichever version. */
export interface LanguageModel {
  readonly specificationVersion: Version
  doStream(options: CallOptions): PromiseLike<Streamed>
  doGenerate?(options: CallOptions): PromiseLike<Generated>
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
}

export interface CallOptions {
  readonly prompt: readonly PromptMessage[]
  readonly maxOutputTokens?: number
  readonly temperature?: number
  readonly tools?: readonly FunctionTool[]
  readonly toolChoice?: ToolChoice
  readonly responseFormat?: { readonly type: 'json'; readonly schema: JsonSchema; readonly name: string }
  readonly providerOptions?: Metadata
  readonly headers: Readonly<Record<string, string>>
  readonly abortSignal: AbortSignal
}
export interface FunctionTool {
  readonly type: 'function'
  readonly name: string
  readonly description: string
  readonly inputSchema: JsonSchema
}
export type ToolChoice = { readonly type: 'auto' | 'none' | 'required' } | { readonly type: 'tool'; readonly toolName: string }

interface WithOptions {
  readonly providerOptions?: Metadata
}
export type PromptText = { readonly type: 'text'; readonly text: string } & WithOptions
/** Base64: bare in 2 and 3, said to be data in 4. */
export type FileData = string | { readonly type: 'data'; readonly data: string }
export type PromptFile = { readonly type: 'file'; readonly mediaType: string; readonly data: FileData } & WithOptions
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
}
export type ToolOutput =
  | { readonly type: 'text' | 'error-text'; readonly value: string }
  | { readonly type: 'content'; readonly value: readonly OutputPart[] }
export type OutputPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'media' | 'image-data'; readonly mediaType: string; readonly data: string }
  | { readonly type: 'file'; readonly mediaType: string; readonly data: FileData }

export type PromptMessage =
  | { readonly role: 'system'; readonly content: string }
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
/** What a model streams, as far as it is heeded; other types (sources, files, raw chunks) are passed over. */
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

/** What a whole answer consists of, as far as it is heeded. */
export type GeneratedPart =
  | ({ readonly type: 'text' | 'reasoning'; readonly text: string } & WithMetadata)
  | Extract<StreamPart, { type: 'tool-call' }>

/** What the model could not do as asked. */
export interface Warning {
  readonly type: string
  readonly feature?: unknown
  readonly setting?: unknown
  readonly details?: unknown
  readonly message?: unknown
}

/** A word in 2, word and the provider's own in 3 and 4. */
export type SdkFinish = string | { readonly unified: string; readonly raw: string | undefined }

type Count = number | undefined
/** Flat in 2, by kind in 3 and 4. */
export type SdkUsage =
  | {
      readonly inputTokens: Count
      readonly outputTokens: Count
      readonly reasoningTokens?: Count
      readonly cachedInputTokens?: Count
    }
  | {
      readonly inputTokens: { readonly total: Count; readonly cacheRead: Count }
      readonly outputTokens: { readonly total: Count; readonly reasoning: Count }
    }

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Whether a value is what the SDK takes as options of a part: an object by provider, then by key. */
export const isMetadata = (value: unknown): value is Metadata => isObject(value) && Object.values(value).every(isObject)

/** Plain data of what a package tells about a part; nothing where it tells nothing. Packages leave `undefined` in it, and could leave anything. */
export function plainMetadata(metadata: Metadata | undefined): Metadata | undefined {
  if (metadata === undefined || Object.values(metadata).every(one => !isObject(one) || Object.keys(one).length === 0))
    return undefined
  const plain: unknown = JSON.parse(JSON.stringify(metadata))
  return isMetadata(plain) ? plain : undefined
}

/** Merges both by key; the later value wins. */
export function mergeMetadata(before: Metadata | undefined, after: Metadata | undefined): Metadata | undefined {
  if (before === undefined || after === undefined) return after ?? before
  const names = Object.keys({ ...before, ...after })
  return Object.fromEntries(names.map(name => [name, { ...before[name], ...after[name] }]))
}

/** Text has no place for opaque data of its own: it goes with the end of the answer, in the order of the texts. */
export const writeTextData = (texts: readonly (Metadata | undefined)[]): Json | undefined =>
  texts.some(one => one !== undefined) ? { texts: texts.map(one => (one ?? null) as Json) } : undefined

/** The data of each of `count` texts; none at all when they are no longer those that were written. */
export function readTextData(data: Json | undefined, count: number): readonly (Json | undefined)[] {
  const texts = isObject(data) ? data.texts : undefined
  return Array.isArray(texts) && texts.length === count ? (texts as Json[]) : []
}
