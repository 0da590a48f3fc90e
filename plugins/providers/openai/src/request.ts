import { createHash } from 'node:crypto'
import type {
  ContentPart,
  MessagePart,
  ModelMessage,
  ModelRequest,
  ToolCallPart,
  ToolResultPart,
  ToolSpec,
} from '@svc/core/contracts'
import { perTools, type Tree } from '@svc/provider-http'
import type { Preset } from './presets.ts'

/** The body of a chat completions call. */
export function bodyOf(request: ModelRequest, provider: string, preset: Preset): Tree {
  const { model, temperature, maxTokens, tools = [], toolChoice, responseSchema, cacheKey, gathered } = request
  return {
    model,
    messages: messagesOf(withSchema(request, preset), provider, preset),
    stream: gathered !== true,
    ...(preset.streamOptions && !gathered ? { stream_options: { include_usage: true } } : {}),
    ...(cacheKey === undefined || !preset.cacheKey ? {} : { prompt_cache_key: hashOf(cacheKey) }),
    ...(temperature === undefined || preset.noTemperature?.test(model) ? {} : { temperature }),
    ...(maxTokens === undefined ? {} : { [preset.limitField]: maxTokens }),
    ...(tools.length === 0 ? {} : { ...choiceOf(toolChoice, preset), tools: wireTools(tools) }),
    ...(responseSchema === undefined ? {} : { response_format: formatOf(responseSchema, preset) }),
  }
}

/** The API accepts at most 64 characters. The key can be the id of a conversation, which no server needs to know. */
const hashOf = (key: string) => createHash('sha256').update(key).digest('base64url')

const wireTools = perTools(tools => tools.map(toolOf))

type Schema = NonNullable<ModelRequest['responseSchema']>

const toolOf = ({ name, description, parameters }: ToolSpec) => ({
  type: 'function',
  function: { name, description, parameters: typeof parameters === 'object' ? parameters : { type: 'object' } },
})

function choiceOf(choice: ModelRequest['toolChoice'], preset: Preset): object {
  if (choice === undefined) return {}
  if (typeof choice === 'object') return { tool_choice: { type: 'function', function: { name: choice.tool } } }
  return { tool_choice: choice === 'required' ? preset.mustCall : choice }
}

const formatOf = (schema: Schema, preset: Preset): object =>
  preset.schema === 'prompt'
    ? { type: 'json_object' }
    : {
        type: 'json_schema',
        json_schema: { name: 'reply', schema: typeof schema === 'object' ? schema : {}, strict: isStrict(schema) },
      }

/** True if a schema is valid in strict mode: each object is closed and requires all its properties. */
function isStrict(schema: unknown): boolean {
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
interface Image {
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
    return [{ role: message.role, content: contentOf(message.parts) }]
  })
}

const textsOf = (parts: readonly MessagePart[]) => parts.flatMap(part => (part.type === 'text' ? part.text : [])).join('\n')
const imageOf = ({ data, mimeType }: Image): Wire => ({
  type: 'image_url',
  image_url: { url: `data:${mimeType};base64,${data}` },
})

/** A string if the parts are only text, because some servers do not accept a list. */
function contentOf(parts: readonly MessagePart[]): string | Wire[] {
  if (!parts.some(part => part.type === 'image')) return textsOf(parts)
  return parts.flatMap((part): readonly Wire[] => {
    if (part.type === 'image') return [imageOf(part)]
    return part.type === 'text' ? [{ type: 'text', text: part.text }] : []
  })
}

function assistantOf({ parts, providerData, provider }: ModelMessage, self: string, preset: Preset, reasons: boolean): Wire {
  const text = textsOf(parts)
  const calls = parts.filter(part => part.type === 'tool_call')
  const details = provider === self && preset.reasoningDetails ? detailsOf(providerData) : undefined
  return {
    role: 'assistant',
    content: text === '' && calls.length > 0 ? null : text,
    ...(reasons && preset.reasoningField ? { [preset.reasoningField]: reasoningOf(parts) } : {}),
    ...(details === undefined ? {} : { reasoning_details: details }),
    ...(calls.length === 0 ? {} : { tool_calls: calls.map(call => callOf(call, preset)) }),
  }
}

const reasoningOf = (parts: readonly MessagePart[]) =>
  parts.flatMap(part => (part.type === 'reasoning' ? part.text : [])).join('')
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
function wordsOf(part: ContentPart): string | readonly [] {
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
function callId(id: string, { callIdLength }: Preset): string {
  if (callIdLength === undefined) return id.length <= LONGEST ? id : shortened(id, LONGEST)
  return id.length === callIdLength && /^[A-Za-z0-9]+$/.test(id) ? id : shortened(id, callIdLength)
}

function shortened(id: string, length: number): string {
  const bytes = createHash('sha512').update(id).digest().subarray(0, length)
  return [...bytes].map(byte => LETTERS[byte % LETTERS.length]).join('')
}
