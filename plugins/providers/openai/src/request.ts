import { hash } from 'node:crypto'
import type {
  ContentPart,
  MessagePart,
  ModelMessage,
  ModelRequest,
  NativeRequest,
  ToolCallPart,
  ToolResultPart,
  ToolSpec,
} from '@svc/core/contracts'
import { isTree, nativeOf, perTools, type Tree } from '@svc/provider-http'
import { isReasoningModel, refusesTemperature } from './features.ts'
import type { Preset } from './presets.ts'

/** The body of a chat completions call. */
export function bodyOf(request: ModelRequest, provider: string, preset: Preset): Tree {
  const native = nativeOf(request, preset.protocol)
  if (native) return originalBody(request, native)
  const { model, temperature, maxTokens, tools = [], cacheKey, gathered } = request
  return {
    model,
    messages: messagesOf(withSchema(request, preset), provider, preset),
    stream: gathered !== true,
    ...(preset.streamOptions && !gathered ? { stream_options: { include_usage: true } } : {}),
    ...(cacheKey === undefined || !preset.cacheKey ? {} : { prompt_cache_key: hashOf(cacheKey) }),
    ...(temperature === undefined || refusesTemperature(model, preset) ? {} : { temperature }),
    ...(maxTokens === undefined ? {} : { [limitField(model, preset)]: maxTokens }),
    ...samplingOf(request, preset),
    ...(tools.length === 0 ? {} : { ...choiceOf(request, preset), tools: wireTools(tools) }),
    ...formatOf(request, preset),
  }
}

/** The original request of a client, with the model and the kind of answer of this call. */
function originalBody({ model, gathered }: ModelRequest, { body }: NativeRequest): Tree {
  const { stream_options: options, ...rest } = body
  const stream_options = { ...(isTree(options) ? options : {}), include_usage: true }
  return { ...rest, model, stream: gathered !== true, ...(gathered ? {} : { stream_options }) }
}

/** Proxies of OpenAI, which have no preset, need the newer name for its reasoning models. */
const limitField = (model: string, { limitField: field }: Preset): Preset['limitField'] =>
  isReasoningModel(model) ? 'max_completion_tokens' : field

/** Fields that select tokens. They are absent from most requests. */
function samplingOf(request: ModelRequest, preset: Preset): Tree {
  const { stop, topP, topK, seed, n, frequencyPenalty, presencePenalty, logitBias, logprobs } = request
  return {
    ...(stop === undefined || stop.length === 0 ? {} : { stop }),
    ...(topP === undefined ? {} : { top_p: topP }),
    ...(topK === undefined ? {} : { top_k: topK }),
    ...(seed === undefined ? {} : { [preset.seedField ?? 'seed']: seed }),
    ...(n === undefined || n === 1 ? {} : { n }),
    ...(frequencyPenalty === undefined ? {} : { frequency_penalty: frequencyPenalty }),
    ...(presencePenalty === undefined ? {} : { presence_penalty: presencePenalty }),
    ...(logitBias === undefined ? {} : { logit_bias: logitBias }),
    ...(logprobs === undefined ? {} : { logprobs: true, ...(logprobs > 0 ? { top_logprobs: logprobs } : {}) }),
    ...reasoningOf(request, preset),
  }
}

function reasoningOf(request: ModelRequest, preset: Preset): Tree {
  const { reasoningTokens: tokens } = request
  if (tokens !== undefined && preset.reasoningTokens) return { reasoning: { max_tokens: tokens } }
  const effort = effortOf(request)
  return effort === undefined ? {} : { reasoning_effort: effort }
}

/** The effort in the words of OpenAI, whose highest level is `xhigh`. */
export function effortOf({ reasoningEffort: effort, reasoningTokens: tokens }: ModelRequest): string | undefined {
  if (effort !== undefined) return effort === 'max' ? 'xhigh' : effort
  return tokens === undefined ? undefined : levelOf(tokens)
}

/** The level nearest to a number of tokens. */
const levelOf = (tokens: number) => (tokens < 1024 ? 'minimal' : tokens <= 4096 ? 'low' : tokens <= 16_384 ? 'medium' : 'high')

/** The API accepts at most 64 characters. The key can be the id of a conversation, which no server needs to know. */
export const hashOf = (key: string) => hash('sha256', key, 'base64url')

const wireTools = perTools(tools => tools.map(toolOf))

const toolOf = ({ name, description, parameters, strict }: ToolSpec) => ({
  type: 'function',
  function: {
    name,
    description,
    parameters: typeof parameters === 'object' ? parameters : { type: 'object' },
    ...(strict === undefined ? {} : { strict }),
  },
})

function choiceOf({ toolChoice: choice, parallelToolCalls: parallel }: ModelRequest, preset: Preset): Tree {
  const parallels = parallel === undefined ? {} : { parallel_tool_calls: parallel }
  if (choice === undefined) return parallels
  if (typeof choice === 'object') return { ...parallels, tool_choice: { type: 'function', function: { name: choice.tool } } }
  return { ...parallels, tool_choice: choice === 'required' ? preset.mustCall : choice }
}

export const NAME = /^[\w-]{1,64}$/

function formatOf(request: ModelRequest, preset: Preset): Tree {
  const { responseFormat, responseSchema: schema, responseSchemaName: name = '', responseSchemaStrict } = request
  if (schema === undefined) return responseFormat === 'json' ? { response_format: { type: 'json_object' } } : {}
  if (preset.schema === 'prompt') return { response_format: { type: 'json_object' } }
  const json_schema = {
    name: NAME.test(name) ? name : 'reply',
    schema: typeof schema === 'object' ? schema : {},
    strict: responseSchemaStrict ?? isStrict(schema),
  }
  return { response_format: { type: 'json_schema', json_schema } }
}

/** True if a schema is valid in strict mode: each object is closed and requires all its properties. */
export function isStrict(schema: unknown): boolean {
  if (Array.isArray(schema)) return schema.every(isStrict)
  if (typeof schema !== 'object' || schema === null) return true
  const { properties, required, additionalProperties } = schema as {
    properties?: unknown
    required?: unknown
    additionalProperties?: unknown
  }
  if (typeof properties === 'object' && properties !== null) {
    if (additionalProperties !== false || !Array.isArray(required)) return false
    if (Object.keys(properties).some(key => !required.includes(key))) return false
  }
  return Object.values(schema).every(isStrict)
}

/** Describes the schema in a system message if the server does not accept schemas. */
function withSchema({ messages, responseSchema }: ModelRequest, preset: Preset): readonly ModelMessage[] {
  if (responseSchema === undefined || preset.schema !== 'prompt') return messages
  const text = `Answer with JSON, and nothing else, of this JSON Schema: ${JSON.stringify(responseSchema)}`
  return [{ role: 'system', parts: [{ type: 'text', text }] }, ...messages]
}

type Wire = Readonly<Record<string, unknown>>
interface Media {
  readonly data: string
  readonly mimeType: string
}

/** Converts messages to chat completions. A tool message becomes one message for each result. */
function messagesOf(messages: readonly ModelMessage[], provider: string, preset: Preset): Wire[] {
  // If any message has reasoning, such a server requires the field in each assistant message.
  const reasons =
    preset.reasoningField !== undefined && messages.some(message => message.parts.some(part => part.type === 'reasoning'))
  return messages.flatMap((message): readonly Wire[] => {
    if (message.role === 'assistant') return [assistantOf(message, provider, preset, reasons)]
    if (message.role === 'tool') return resultsOf(message.parts, preset)
    return [{ role: message.role, content: contentOf(message.parts, preset) }]
  })
}

const textsOf = (parts: readonly MessagePart[]) => parts.flatMap(part => (part.type === 'text' ? part.text : [])).join('\n')

export const dataUrl = ({ data, mimeType }: Media) => `data:${mimeType};base64,${data}`
const imageOf = (image: Media): Wire => ({ type: 'image_url', image_url: { url: dataUrl(image) } })

/** A string if the parts are only text, because some servers do not accept a list. */
function contentOf(parts: readonly MessagePart[], preset: Preset): string | Wire[] {
  const isText = (part: MessagePart) => part.type === 'text' && !(preset.cacheControl && part.cacheHint)
  return parts.every(isText) ? textsOf(parts) : parts.flatMap(part => partOf(part, preset))
}

function partOf(part: MessagePart, preset: Preset): Wire[] {
  const made = wirePart(part)
  const hint = 'cacheHint' in part ? part.cacheHint : undefined
  return hint && preset.cacheControl ? made.map(one => ({ ...one, cache_control: { type: 'ephemeral', ...hint } })) : made
}

function wirePart(part: MessagePart): Wire[] {
  switch (part.type) {
    case 'text':
      return [{ type: 'text', text: part.text }]
    case 'image':
      return [imageOf(part)]
    case 'image_url':
      return [{ type: 'image_url', image_url: { url: part.url } }]
    case 'file':
      return [{ type: 'file', file: { filename: part.name ?? fileName(part.mimeType), file_data: dataUrl(part) } }]
    case 'audio':
      return [{ type: 'input_audio', input_audio: { data: part.data, format: soundFormat(part.mimeType) } }]
    case 'reasoning':
    case 'tool_call':
    case 'tool_result':
      return []
  }
}

/** The API requires a name with the extension of the type. */
export const fileName = (mimeType: string) => `file.${/^[\w-]+\/([\w-]+)$/.exec(mimeType)?.[1] ?? 'bin'}`

const SOUNDS: Readonly<Record<string, string>> = { mpeg: 'mp3', wave: 'wav', 'x-wav': 'wav', 'vnd.wave': 'wav', mp4: 'm4a' }

function soundFormat(mimeType: string): string {
  const type = mimeType
    .toLowerCase()
    .replace(/^audio\//, '')
    .replace(/;.*/s, '')
  return Object.hasOwn(SOUNDS, type) ? SOUNDS[type]! : type
}

function assistantOf({ parts, providerData, provider }: ModelMessage, self: string, preset: Preset, reasons: boolean): Wire {
  const refusal = preset.refusals ? parts.filter(part => part.type === 'text' && part.refusal) : []
  const text = textsOf(refusal.length === 0 ? parts : parts.filter(part => !refusal.includes(part)))
  const calls = parts.filter(part => part.type === 'tool_call')
  const details = provider === self && preset.reasoningDetails ? detailsOf(providerData) : undefined
  return {
    role: 'assistant',
    content: text === '' && calls.length + refusal.length > 0 ? null : text,
    ...(refusal.length === 0 ? {} : { refusal: textsOf(refusal) }),
    ...(reasons && preset.reasoningField ? { [preset.reasoningField]: thoughtsOf(parts) } : {}),
    ...(details === undefined ? {} : { reasoning_details: details }),
    ...(calls.length === 0 ? {} : { tool_calls: calls.map(call => callOf(call, preset)) }),
  }
}

const thoughtsOf = (parts: readonly MessagePart[]) => parts.flatMap(part => (part.type === 'reasoning' ? part.text : [])).join('')
const detailsOf = (data: ModelMessage['providerData']): unknown =>
  (data as { reasoning_details?: unknown } | null | undefined)?.reasoning_details

const callOf = ({ id, tool, arguments: args, invalid }: ToolCallPart, preset: Preset): Wire => ({
  id: callId(id, preset),
  type: 'function',
  // Servers parse the arguments of earlier calls and fail if they are not valid JSON.
  function: { name: tool, arguments: JSON.stringify(invalid === undefined ? args : { invalid_json: invalid }) },
})

function resultsOf(parts: readonly MessagePart[], preset: Preset): Wire[] {
  const results = parts.filter(part => part.type === 'tool_result')
  const messages = results.map(result => resultOf(result, preset))
  const images = preset.toolImages === 'user' ? results.flatMap(imagesOf) : []
  return images.length === 0 ? messages : [...messages, { role: 'user', content: images }]
}

function resultOf(result: ToolResultPart, preset: Preset): Wire {
  const { id, isError, content } = result
  const words = content.flatMap(wordsOf).join('\n')
  const text = isError ? `Error: ${words}` : words
  const images = preset.toolImages === 'tool' ? content.filter(item => item.type === 'image').map(imageOf) : []
  return {
    role: 'tool',
    tool_call_id: callId(id, preset),
    content: images.length === 0 ? text : [{ type: 'text', text }, ...images],
  }
}

function imagesOf({ tool, content }: ToolResultPart): Wire[] {
  const images = content.filter(item => item.type === 'image').map(imageOf)
  return images.length === 0 ? [] : [{ type: 'text', text: `Images that ${tool} answered:` }, ...images]
}

/** A part of a tool result as text. `imagesOf` and `resultOf` send the images. */
export function wordsOf(part: ContentPart): string | readonly [] {
  if (part.type === 'text') return part.text
  if (part.type === 'image') return []
  if (part.type === 'audio') return `(audio, ${part.mimeType})`
  if (part.type === 'resource_link') return `${part.name}: ${part.uri}`
  const { text } = (part as { resource?: { text?: unknown } }).resource ?? {}
  return typeof text === 'string' ? text : JSON.stringify(part)
}

const LONGEST = 40
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

/** A tool call id that the server accepts. A valid id stays unchanged; any other id always gives the same short id. */
export function callId(id: string, { callIdLength }: Preset): string {
  if (callIdLength === undefined) return id.length <= LONGEST ? id : shortened(id, LONGEST)
  return id.length === callIdLength && /^[A-Za-z0-9]+$/.test(id) ? id : shortened(id, callIdLength)
}

function shortened(id: string, length: number): string {
  const bytes = hash('sha512', id, 'buffer').subarray(0, length)
  return [...bytes].map(byte => LETTERS[byte % LETTERS.length]).join('')
}
