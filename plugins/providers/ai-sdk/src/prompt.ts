import type {
  CacheHint,
  ContentPart,
  ImagePart,
  Json,
  MessagePart,
  ModelMessage,
  ReasoningPart,
  TextPart,
  ToolCallPart,
  ToolResultPart,
} from '@svc/core/contracts'
import {
  type FileData,
  isMetadata,
  mergeMetadata,
  type Metadata,
  type OutputPart,
  type PromptFile,
  type SdkMessage,
  type PromptReasoning,
  type PromptText,
  type PromptToolCall,
  type PromptToolResult,
  readTextData,
  type ToolOutput,
  type Version,
} from './sdk.ts'

/** Converts messages to a prompt of the SDK. Messages of other entries than `provider` lose their reasoning and opaque data. */
export function toPrompt(messages: readonly ModelMessage[], version: Version, provider: string): SdkMessage[] {
  return messages
    .flatMap(message => (message.role === 'system' ? systemMessages(message) : MAKERS[message.role](message, version, provider)))
    .filter(message => message.content.length > 0)
}

/** One message, or one for each text that ends at a cache hint, because the message has the hint. */
function systemMessages({ parts }: ModelMessage): SdkMessage[] {
  const groups: TextPart[][] = [[]]
  for (const part of textsOf(parts)) {
    groups.at(-1)!.push(part)
    if (part.cacheHint) groups.push([])
  }
  return groups.map(texts => ({
    role: 'system',
    content: texts.map(part => part.text).join('\n\n'),
    ...optionsOfHint(texts.at(-1)?.cacheHint),
  }))
}

/** A cache hint as Anthropic's package takes it. svc removes hints for models without the feature. */
export const optionsOfHint = (hint: CacheHint | undefined): { providerOptions?: Metadata } =>
  hint === undefined ? {} : { providerOptions: { anthropic: { cacheControl: { type: 'ephemeral', ...hint } } } }

type Maker = (message: ModelMessage, version: Version, provider: string) => SdkMessage

const MAKERS: { readonly [R in Exclude<ModelMessage['role'], 'system'>]: Maker } = {
  user: ({ parts }, version) => ({ role: 'user', content: parts.flatMap(part => userPart(part, version)) }),
  assistant: (message, _version, provider) => ({
    role: 'assistant',
    content: assistantParts(message, message.provider === undefined || message.provider === provider),
  }),
  tool: ({ parts }, version) => ({
    role: 'tool',
    content: parts.filter(part => part.type === 'tool_result').map(part => toResult(part, version)),
  }),
}

const textsOf = (parts: readonly MessagePart[]) => parts.filter(part => part.type === 'text')

function userPart(part: MessagePart, version: Version): (PromptText | PromptFile)[] {
  const hint = 'cacheHint' in part ? optionsOfHint(part.cacheHint) : {}
  if (part.type === 'text') return [{ type: 'text', text: part.text, ...hint }]
  if (part.type === 'image_url') return [{ type: 'file', mediaType: 'image/*', data: toAddress(part.url, version), ...hint }]
  if (part.type === 'file')
    return [{ ...toFile(part, version), ...(part.name === undefined ? {} : { filename: part.name }), ...hint }]
  return part.type === 'image' || part.type === 'audio' ? [{ ...toFile(part, version), ...hint }] : []
}

const toAddress = (url: string, version: Version): FileData =>
  version === 'v4' ? { type: 'url', url: new URL(url) } : new URL(url)

const toFile = ({ data, mimeType }: Pick<ImagePart, 'data' | 'mimeType'>, version: Version): PromptFile => ({
  type: 'file',
  mediaType: mimeType,
  data: toData(data, version),
})

const toData = (data: string, version: Version): FileData => (version === 'v4' ? { type: 'data', data } : data)

const toResult = (part: ToolResultPart, version: Version): PromptToolResult => ({
  type: 'tool-result',
  toolCallId: part.id,
  toolName: part.tool,
  output: toOutput(part, version),
  ...optionsOfHint(part.cacheHint),
})

type AssistantPart = PromptText | PromptReasoning | PromptToolCall

function assistantParts({ parts, providerData }: ModelMessage, isOwn: boolean): AssistantPart[] {
  const made: AssistantPart[] = []
  const data = isOwn ? readTextData(providerData, textsOf(parts).length) : []
  let texts = 0
  for (const part of parts) {
    if (part.type === 'text') made.push(toText(part, data[texts++]))
    else if (part.type === 'tool_call') made.push(toCall(part, isOwn))
    else if (part.type === 'reasoning' && isOwn) addReasoning(part, made)
  }
  return made
}

function toText({ text, cacheHint }: TextPart, data: Json | undefined): PromptText {
  const options = mergeMetadata(isMetadata(data) ? data : undefined, optionsOfHint(cacheHint).providerOptions)
  return { type: 'text', text, ...(options === undefined ? {} : { providerOptions: options }) }
}

/** Joins pieces of reasoning to a block of the SDK. The last piece has the data. */
function addReasoning({ text, providerData }: ReasoningPart, made: AssistantPart[]): void {
  const last = made.at(-1)
  const isOpen = last?.type === 'reasoning' && last.providerOptions === undefined
  if (isOpen) made.pop()
  made.push({ type: 'reasoning', text: isOpen ? last.text + text : text, ...optionsOf(providerData) })
}

function toCall({ id, tool, arguments: args, invalid, providerData }: ToolCallPart, isOwn: boolean): PromptToolCall {
  // Invalid arguments were already reported to the model. The prompt needs only the call.
  const input = invalid === undefined ? args : {}
  return { type: 'tool-call', toolCallId: id, toolName: tool, input, ...(isOwn ? optionsOf(providerData) : {}) }
}

const optionsOf = (data: Json | undefined): { providerOptions?: Metadata } => (isMetadata(data) ? { providerOptions: data } : {})

/** Converts a tool result to the form of the version. Images stay images; audio, links and resources become text. */
function toOutput({ content, isError }: ToolResultPart, version: Version): ToolOutput {
  const hasImage = content.some(part => part.type === 'image')
  if (isError || !hasImage) return { type: isError ? 'error-text' : 'text', value: content.map(wordsOf).join('\n') }
  return { type: 'content', value: content.map(part => toOutputPart(part, version)) }
}

const toOutputPart = (part: ContentPart, version: Version): OutputPart =>
  part.type === 'image' ? IMAGES[version](part.data, part.mimeType) : { type: 'text', text: wordsOf(part) }

const IMAGES: { readonly [V in Version]: (data: string, mediaType: string) => OutputPart } = {
  v4: (data, mediaType) => ({ type: 'file', mediaType, data: { type: 'data', data } }),
  v3: (data, mediaType) => ({ type: 'image-data', mediaType, data }),
  v2: (data, mediaType) => ({ type: 'media', mediaType, data }),
}

function wordsOf(part: ContentPart): string {
  if (part.type === 'text') return part.text
  if (part.type === 'resource_link') return `${part.name}: ${part.uri}`
  if (part.type === 'image' || part.type === 'audio') return `[${part.type}: ${part.mimeType}]`
  // A resource, or a part of an unknown type from another server.
  const { resource } = part as { readonly resource?: { readonly text?: unknown } }
  return typeof resource?.text === 'string' ? resource.text : JSON.stringify(resource ?? part)
}
