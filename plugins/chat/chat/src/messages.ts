import type {
  ContentPart,
  MessagePart,
  ModelMessage,
  ProviderFeatures,
  StoredMessage,
  TextPart,
  ToolResult,
} from '@svc/core/contracts'

export const userMessage = (text: string): StoredMessage => ({ role: 'user', parts: [{ type: 'text', text }] })

/** The system message: the prompt of the turn or profile, then the prompt of the mode. */
export function systemMessages(prompt: string | undefined, modePrompt: string | undefined): ModelMessage[] {
  const text = [prompt, modePrompt].filter(Boolean).join('\n\n')
  return text === '' ? [] : [{ role: 'system', parts: [{ type: 'text', text }] }]
}

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

/** Adapts messages to the features of a model. */
export function shaped(messages: readonly ModelMessage[], { tool_calling, vision }: ProviderFeatures): readonly ModelMessage[] {
  const seen = vision ? messages : withoutImages(messages)
  return tool_calling ? seen : flattened(seen)
}

/** Whether a message contains an image, also in a tool result. */
export const hasImage = ({ parts }: ModelMessage): boolean =>
  parts.some(part => part.type === 'image' || (part.type === 'tool_result' && part.content.some(isImage)))

const isImage = ({ type }: { readonly type: string }) => type === 'image'

/** Replaces an image. A server without vision rejects images, also in every later turn. */
const UNSEEN: TextPart = { type: 'text', text: '[an image was left out: the model cannot see images]' }

function withoutImages(messages: readonly ModelMessage[]): readonly ModelMessage[] {
  if (!messages.some(hasImage)) return messages
  return messages.map(message => (hasImage(message) ? { ...message, parts: message.parts.map(unseen) } : message))
}

function unseen(part: MessagePart): MessagePart {
  if (part.type === 'image') return UNSEEN
  return part.type === 'tool_result' ? { ...part, content: part.content.map(item => (isImage(item) ? UNSEEN : item)) } : part
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
  if (part.type === 'tool_result') return { type: 'text', text: `[${part.tool} answered]\n${textOf(part.content)}` }
  return part
}

/** An error result with a text for the model. */
export const failure = (text: string): ToolResult => ({ content: [{ type: 'text', text }], isError: true })

/** The text parts of a result, joined by line breaks. */
export const textOf = (content: readonly ContentPart[]) =>
  content.flatMap(part => (part.type === 'text' ? [part.text] : [])).join('\n')

/** Maximum parts of a result. */
const PARTS = 1_000
/** Maximum characters of images and sounds in a result. */
const MEDIA = 4_000_000
/** Maximum characters of a media type (RFC 6838: twice 127 and a slash). Some providers put it into the prompt. */
const MEDIA_TYPE = 255

/** Checks the result of a tool, which is untrusted, and cuts it to `limit` characters. Throws TypeError for an invalid result. */
export function boundedResult(answer: unknown, limit: number): ToolResult {
  const { content, structured, isError } = (answer ?? {}) as Partial<ToolResult>
  if (!Array.isArray(content) || !content.slice(0, PARTS).every(isPart))
    throw new TypeError('the tool did not return { content: [{ type: "text", text }] }')
  const kept = cutContent(content as readonly ContentPart[], limit)
  const failed = isError === true ? { isError } : {}
  if (structured === undefined) return { content: kept, ...failed }
  const json = jsonOf(structured, limit)
  if (json === undefined) return { content: [...kept, note(`[data left out: more than ${limit} characters]`)], ...failed }
  return { content: kept.length > 0 ? kept : [{ type: 'text', text: json }], structured, ...failed }
}

function isPart(part: unknown): boolean {
  const { type, text } = (part ?? {}) as { type?: unknown; text?: unknown }
  return typeof type === 'string' && (type !== 'text' || typeof text === 'string')
}

/** Cuts content to `limit` characters of text and `media` characters of media. Adds a note at each cut. */
export function cutContent(content: readonly ContentPart[], limit: number, media: number = MEDIA): readonly ContentPart[] {
  const kept: ContentPart[] = []
  let [textLeft, mediaLeft] = [limit, media]
  for (const [at, part] of content.entries()) {
    if (at === PARTS) return [...kept, note(`[cut: ${content.length - at} parts more]`)]
    if (part.type === 'image' || part.type === 'audio') {
      const length = isWithin(part.mimeType, MEDIA_TYPE) ? jsonOf(part, mediaLeft)?.length : undefined
      kept.push(length === undefined ? leftOut(part) : part)
      mediaLeft -= length ?? 0
    } else {
      const [cut, length] = cutPart(part, textLeft)
      kept.push(cut)
      textLeft -= length
    }
  }
  return kept
}

/**
 * Cuts a part that is not media. Returns the part and the characters that it uses.
 * Some providers send the part as JSON, so its JSON counts. If that is too long, only the text of the part is kept.
 */
function cutPart(part: ContentPart, limit: number): readonly [ContentPart, number] {
  const length = part.type === 'text' ? part.text.length : jsonOf(part, limit)?.length
  if (length !== undefined && length <= limit) return [part, length]
  const text = textOfPart(part)
  if (text === undefined) return [leftOut(part), 0]
  return text.length > limit ? [note(cutText(text, limit)), limit] : [note(text), text.length]
}

function textOfPart(part: ContentPart): string | undefined {
  if (part.type === 'text') return part.text
  const { text } = (part as { resource?: { text?: unknown } }).resource ?? {}
  return typeof text === 'string' ? text : undefined
}

const leftOut = (part: ContentPart) => note(`[${part.type.slice(0, 50)} left out: too large]`)
const note = (text: string): ContentPart => ({ type: 'text', text })

// a slice would keep the whole text in memory
const copied = (text: string) => Buffer.from(text, 'utf16le').toString('utf16le')

function cutText(text: string, limit: number): string {
  const kept = copied(text.slice(0, limit))
  // does not split a surrogate pair
  return `${/[\uD800-\uDBFF]$/.test(kept) ? kept.slice(0, -1) : kept}\n[cut: ${text.length - limit} characters more]`
}

/** A value as JSON; `undefined` for more than `limit` characters. Throws TypeError for a value without JSON form. */
function jsonOf(value: unknown, limit: number): string | undefined {
  if (!isWithin(value, limit)) return undefined
  try {
    const json: string | undefined = JSON.stringify(value)
    if (json === undefined) throw new TypeError('the tool returned data that is not valid JSON')
    return json.length > limit ? undefined : json
  } catch (error) {
    // nested deeper than the stack
    if (error instanceof RangeError) return undefined
    throw error
  }
}

/** Deeper than real data, and safe to walk recursively. */
const DEPTH = 200

/** Whether a value has roughly at most `limit` characters and at most 200 levels. Stops reading at the limit. */
export function isWithin(value: unknown, limit: number): boolean {
  return weightOf(value, limit) <= limit && !isDeeper(value, DEPTH)
}

/** The rough number of characters of a value. Stops counting above `limit`. */
export function weightOf(value: unknown, limit: number): number {
  const open: unknown[] = [value]
  let left = limit
  while (open.length > 0 && left >= 0) left -= weigh(open.pop(), open, left)
  return limit - left
}

const isDeeper = (value: unknown, left: number): boolean =>
  typeof value === 'object' && value !== null && (left === 0 || Object.values(value).some(item => isDeeper(item, left - 1)))

function weigh(value: unknown, open: unknown[], left: number): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 1
  if (ArrayBuffer.isView(value)) return left + 1
  if (Array.isArray(value)) {
    if (value.length > left) return left + 1
    for (const item of value) open.push(item)
    return value.length
  }
  let weight = 0
  for (const [name, item] of Object.entries(value)) {
    weight += name.length + 1
    if (weight > left) return weight
    open.push(item)
  }
  return weight + 1
}
