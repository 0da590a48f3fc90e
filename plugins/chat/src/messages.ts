import type { MessagePart, ModelMessage, StoredMessage } from '@svc/core/contracts'
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

/** The same for a model that knows no tools: calls and results as text. */
export function flattened(messages: readonly ModelMessage[]): readonly ModelMessage[] {
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
