import type { MessagePart, ModelMessage, ProviderFeatures, StoredMessage, TextPart } from '@svc/core/contracts'
import { contentText } from '@svc/plugin-kit'

/** A message for the provider `name`. Opaque data goes back only to the provider that sent it. */
export function forProvider(message: StoredMessage, name: string): ModelMessage {
  if (message.role !== 'assistant') return message
  const { status: _status, ...seen } = message
  if (message.provider === name) return seen
  const { providerData: _data, parts, ...rest } = seen
  const own = parts.filter(part => part.type !== 'reasoning')
  return { ...rest, parts: own.map(part => (part.type === 'tool_call' ? { ...part, providerData: undefined } : part)) }
}

/** Removes calls without a result, results without a call, and empty messages from a past turn. Models reject those. */
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

/** Adapts messages to the features of a model: `without` names the kinds of content that it does not take. */
export function shaped(
  messages: readonly ModelMessage[],
  { tool_calling, vision }: ProviderFeatures,
  without: ReadonlySet<string> = NONE
): readonly ModelMessage[] {
  const seen = withoutParts(messages, part => noteFor(part, vision, without))
  return tool_calling ? seen : flattened(seen)
}

const NONE: ReadonlySet<string> = new Set()

/** Whether a message contains an image, also in a tool result. */
export const hasImage = ({ parts }: ModelMessage): boolean =>
  parts.some(part => part.type === 'image' || (part.type === 'tool_result' && part.content.some(isImage)))

const isImage = ({ type }: { readonly type: string }) => type === 'image'

/** Replaces an image. A server without vision rejects images, also in every later turn. */
const UNSEEN: TextPart = { type: 'text', text: '[an image was left out: the model cannot see images]' }

/** The part as the model takes it: a note in place of what it cannot take, or the part without its hint. */
function noteFor(part: MessagePart, vision: boolean, without: ReadonlySet<string>): MessagePart {
  if (part.type === 'image' && !vision) return UNSEEN
  if (part.type === 'image_url' && without.has('imageUrls')) return UNSEEN
  if (part.type === 'file' && without.has('files')) return note('a file was left out: the model cannot read files')
  if (part.type === 'audio' && without.has('audio')) return note('a recording was left out: the model cannot hear')
  if (part.type === 'tool_result' && !vision && part.content.some(isImage))
    return { ...part, content: part.content.map(item => (isImage(item) ? UNSEEN : item)) }
  if (!('cacheHint' in part) || !without.has('cacheHints')) return part
  const { cacheHint: _hint, ...rest } = part
  return rest
}

const note = (text: string): TextPart => ({ type: 'text', text: `[${text}]` })

/** Replaces parts. Messages without replaced parts stay the same objects. */
function withoutParts(messages: readonly ModelMessage[], replace: (part: MessagePart) => MessagePart): readonly ModelMessage[] {
  const changed = messages.map(message => {
    const parts = message.parts.map(replace)
    return parts.every((part, at) => part === message.parts[at]) ? message : { ...message, parts }
  })
  return changed.every((message, at) => message === messages[at]) ? messages : changed
}

/** Writes tool calls and results as text, for a model without tools. */
function flattened(messages: readonly ModelMessage[]): readonly ModelMessage[] {
  const hasToolPart = (message: ModelMessage) => message.role === 'tool' || message.parts.some(isCall)
  if (!messages.some(hasToolPart)) return messages
  return messages.map(message =>
    hasToolPart(message) ? { ...message, role: speaker(message), parts: message.parts.map(asText) } : message
  )
}

const speaker = ({ role }: ModelMessage) => (role === 'tool' ? 'user' : role)

function asText(part: MessagePart): MessagePart {
  if (part.type === 'tool_call') return { type: 'text', text: `[${part.tool} ${part.invalid ?? JSON.stringify(part.arguments)}]` }
  if (part.type === 'tool_result') return { type: 'text', text: `[${part.tool} answered]\n${contentText(part.content)}` }
  return part
}
