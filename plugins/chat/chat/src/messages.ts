import type { MessagePart, ModelMessage, ProviderFeatures, StoredMessage, TextPart } from '@svc/core/contracts'
import { textOf } from './tool-result.ts'

export const userMessage = (text: string): StoredMessage => ({ role: 'user', parts: [{ type: 'text', text }] })

/** What the model is told before anything: the turn's or the profile's words, then the mode's. */
export function systemMessages(prompt: string | undefined, modePrompt: string | undefined): ModelMessage[] {
  const text = [prompt, modePrompt].filter(Boolean).join('\n\n')
  return text === '' ? [] : [{ role: 'system', parts: [{ type: 'text', text }] }]
}

/** A message as the provider `name` may see it: opaque data goes back only to whom it came from. */
export function forProvider(message: StoredMessage, name: string): ModelMessage {
  if (message.role !== 'assistant') return message
  const { status: _status, ...seen } = message
  if (message.provider === name) return seen
  const { providerData: _data, parts, ...rest } = seen
  const own = parts.filter(part => part.type !== 'reasoning')
  return { ...rest, parts: own.map(part => (part.type === 'tool_call' ? { ...part, providerData: undefined } : part)) }
}

/** A turn of the past without what no model may see: a call that has no result, a result that has no call, a message that says nothing. */
export function paired(turn: readonly StoredMessage[]): readonly StoredMessage[] {
  if (turn.every(message => message.role !== 'tool' && message.parts.length > 0 && !message.parts.some(isCall))) return turn
  const kept = turn.map((message, at) => {
    const answered = idsOf('tool_result', turn[at + 1])
    const called = idsOf('tool_call', turn[at - 1])
    const isWhole = (part: MessagePart) =>
      isCall(part) ? answered.has(part.id) : part.type !== 'tool_result' || called.has(part.id)
    return { ...message, parts: message.parts.filter(isWhole) }
  })
  return kept.filter(message => message.parts.length > 0)
}

const idsOf = (type: 'tool_call' | 'tool_result', message: StoredMessage | undefined) =>
  new Set(message?.parts.flatMap(part => (part.type === type ? [part.id] : [])))

const isCall = (part: MessagePart) => part.type === 'tool_call'

/** Messages as a model takes them that can do so much. */
export function shaped(messages: readonly ModelMessage[], { tool_calling, vision }: ProviderFeatures): readonly ModelMessage[] {
  const seen = vision ? messages : withoutImages(messages)
  return tool_calling ? seen : flattened(seen)
}

/** Whether a message has an image, its own or a tool's. */
export const hasImage = ({ parts }: ModelMessage): boolean =>
  parts.some(part => part.type === 'image' || (part.type === 'tool_result' && part.content.some(isImage)))

const isImage = ({ type }: { readonly type: string }) => type === 'image'

/** Servers refuse what their model cannot see, and would again in every later turn: it is told in words. */
const UNSEEN: TextPart = { type: 'text', text: '[an image was left out: the model cannot see images]' }

function withoutImages(messages: readonly ModelMessage[]): readonly ModelMessage[] {
  if (!messages.some(hasImage)) return messages
  return messages.map(message => (hasImage(message) ? { ...message, parts: message.parts.map(unseen) } : message))
}

function unseen(part: MessagePart): MessagePart {
  if (part.type === 'image') return UNSEEN
  return part.type === 'tool_result' ? { ...part, content: part.content.map(one => (isImage(one) ? UNSEEN : one)) } : part
}

/** The same for a model that knows no tools: calls and results as text. */
function flattened(messages: readonly ModelMessage[]): readonly ModelMessage[] {
  const tells = (message: ModelMessage) => message.role === 'tool' || message.parts.some(isCall)
  if (!messages.some(tells)) return messages
  return messages.map(message =>
    tells(message) ? { ...message, role: speaker(message), parts: message.parts.map(told) } : message
  )
}

const speaker = ({ role }: ModelMessage) => (role === 'tool' ? 'user' : role)

function told(part: MessagePart): MessagePart {
  if (part.type === 'tool_call') return { type: 'text', text: `[${part.tool} ${part.invalid ?? JSON.stringify(part.arguments)}]` }
  if (part.type === 'tool_result') return { type: 'text', text: `[${part.tool} answered]\n${textOf(part.content)}` }
  return part
}
