import type {
  ContentPart,
  ImagePart,
  Json,
  MessagePart,
  ModelMessage,
  ReasoningPart,
  TextPart,
  ToolResultPart,
} from '@svc/core/contracts'
import { textIn } from '@svc/provider-http'

/** A block of a message as the wire has it. */
interface Block {
  readonly type: string
  readonly [key: string]: Json | undefined
}
interface Message {
  readonly role: 'user' | 'assistant'
  readonly content: Block[]
}

/** What the system messages say, as one text; absent where they say nothing. */
export function systemOf(messages: readonly ModelMessage[]): string | undefined {
  const texts = messages.filter(one => one.role === 'system').flatMap(one => one.parts.filter(isText).map(part => part.text))
  return texts.join('\n\n') || undefined
}

/**
 * Messages as the wire wants them: only two roles, what follows in the same role is one message, results of tools stand in the message of the user that
 * follows the calls, and no call is without a result.
 */
export function messagesOf(messages: readonly ModelMessage[]): Message[] {
  const merged: Message[] = []
  for (const message of messages) {
    if (message.role === 'system') continue
    const role = message.role === 'assistant' ? 'assistant' : 'user'
    const content = role === 'assistant' ? assistantBlocks(message.parts) : userBlocks(message.parts)
    const last = merged.at(-1)
    if (content.length === 0) continue
    if (last?.role === role) last.content.push(...content)
    else merged.push({ role, content })
  }
  return withResults(merged)
}

const isText = (part: MessagePart): part is TextPart => part.type === 'text' && part.text !== ''

function userBlocks(parts: readonly MessagePart[]): Block[] {
  return parts.flatMap((part): Block[] => {
    if (part.type === 'text') return textBlocks(part.text)
    if (part.type === 'image') return imageBlocks(part)
    return part.type === 'tool_result' ? [resultBlock(part)] : []
  })
}

function assistantBlocks(parts: readonly MessagePart[]): Block[] {
  const blocks: Block[] = []
  let thought = ''
  for (const part of parts) {
    if (part.type === 'reasoning') {
      thought += part.text
      const block = thoughtBlock(part, thought)
      if (block) blocks.push(block)
      if (block) thought = ''
      continue
    }
    thought = ''
    if (part.type === 'text') blocks.push(...textBlocks(part.text))
    else if (part.type === 'tool_call')
      blocks.push({
        type: 'tool_use',
        id: wireId(part.id),
        name: part.tool,
        input: part.invalid === undefined ? part.arguments : { invalid_json: part.invalid },
      })
  }
  return blocks
}

/** Thoughts come in pieces, the last of which is signed; what is not signed cannot be given back. */
function thoughtBlock({ providerData }: ReasoningPart, thinking: string): Block | undefined {
  const signature = textIn(providerData, 'signature')
  if (signature !== undefined) return { type: 'thinking', thinking, signature }
  const data = textIn(providerData, 'redacted')
  return data === undefined ? undefined : { type: 'redacted_thinking', data }
}

// The wire refuses texts of nothing but blanks.
const textBlocks = (text: string): Block[] => (text.trim() === '' ? [] : [{ type: 'text', text }])

const IMAGES = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp'])

function imageBlocks({ data, mimeType }: Pick<ImagePart, 'data' | 'mimeType'>): Block[] {
  if (!IMAGES.has(mimeType)) return textBlocks(`[image, ${mimeType}: it cannot be shown]`)
  return [{ type: 'image', source: { type: 'base64', media_type: mimeType, data } }]
}

function resultBlock({ id, content, isError }: ToolResultPart): Block {
  const blocks = content.flatMap(contentBlocks)
  // A failure must say something.
  const said = blocks.length === 0 && isError ? textBlocks('The tool failed.') : blocks
  return { type: 'tool_result', tool_use_id: wireId(id), content: said, is_error: isError }
}

function contentBlocks(part: ContentPart): Block[] {
  if (part.type === 'text') return textBlocks(part.text)
  if (part.type === 'image') return imageBlocks(part)
  if (part.type === 'audio') return textBlocks(`[audio, ${part.mimeType}]`)
  return textBlocks(part.type === 'resource_link' ? `[${part.name}: ${part.uri}]` : jsonOf(part))
}

/** A resource; or a part of an unknown form of another server, which passes through. */
const jsonOf = (part: { readonly resource?: unknown }) => JSON.stringify(part.resource ?? part)

/** An id that the wire takes: one that another provider made may have other letters. Two ids stay two. */
const wireId = (id: string): string => (/^[\w-]+$/.test(id) ? id : `id_${Buffer.from(id).toString('base64url')}`)

/** A turn that was cancelled may have left calls without results, which the wire refuses. */
function withResults(messages: Message[]): Message[] {
  for (let at = messages.length - 1; at >= 0; at--) {
    const calls = messages[at]!.role === 'assistant' ? messages[at]!.content.filter(block => block.type === 'tool_use') : []
    const next = messages[at + 1]
    const has = new Set(next?.content.map(block => block.tool_use_id))
    const missing = calls.filter(call => !has.has(call.id)).map(({ id }) => noResult(id))
    if (missing.length === 0) continue
    if (next) next.content.unshift(...missing)
    else messages.push({ role: 'user', content: missing })
  }
  return messages
}

const noResult = (id: Json | undefined): Block => ({
  type: 'tool_result',
  tool_use_id: id,
  content: 'The call was given up: there is no result.',
  is_error: true,
})
