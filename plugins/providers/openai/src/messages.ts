import { createHash } from 'node:crypto'
import type { ContentPart, MessagePart, ModelMessage, ToolCallPart, ToolResultPart } from '@svc/core/contracts'
import type { Preset } from './presets.ts'

type Wire = Readonly<Record<string, unknown>>
interface Image {
  readonly data: string
  readonly mimeType: string
}

/** Messages as chat completions has them. A message of tools becomes one for each result. */
export function messagesOf(messages: readonly ModelMessage[], provider: string, preset: Preset): Wire[] {
  // A server that wants its reasoning back wants it in each message of the assistant, once there is any.
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

/** Plain text where there is nothing else: not every server takes a list. */
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
  // Servers read the arguments of the history as JSON, and fail where they are none.
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
  const images = preset.toolImages === 'tool' ? content.filter(one => one.type === 'image').map(imageOf) : []
  return {
    role: 'tool',
    tool_call_id: callId(id, preset),
    content: images.length === 0 ? text : [{ type: 'text', text }, ...images],
  }
}

function imagesOf({ tool, content }: ToolResultPart): Wire[] {
  const images = content.filter(one => one.type === 'image').map(imageOf)
  return images.length === 0 ? [] : [{ type: 'text', text: `Images that ${tool} answered:` }, ...images]
}

/** What a tool answered, in words; an image goes its own way. */
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

/** The id of a tool call as the server takes it: its own as it is, another's always turned into the same. */
function callId(id: string, { callIdLength }: Preset): string {
  if (callIdLength === undefined) return id.length <= LONGEST ? id : shortened(id, LONGEST)
  return id.length === callIdLength && /^[A-Za-z0-9]+$/.test(id) ? id : shortened(id, callIdLength)
}

function shortened(id: string, length: number): string {
  const bytes = createHash('sha512').update(id).digest().subarray(0, length)
  return [...bytes].map(byte => LETTERS[byte % LETTERS.length]).join('')
}
