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

/** The system messages: the turn's or the profile's words, then the mode's. */
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

/** Servers reject images that their model cannot see, in every later turn too: a text replaces them. */
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

/** A result that says what went wrong, for the model to read. */
export const failure = (text: string): ToolResult => ({ content: [{ type: 'text', text }], isError: true })

/** The texts of a result, a line each; what else is in it is left out. */
export const textOf = (content: readonly ContentPart[]) =>
  content.flatMap(part => (part.type === 'text' ? [part.text] : [])).join('\n')

/** Parts of a result, and characters of images and sounds in it. */
const PARTS = 1_000
const MEDIA = 4_000_000
/** Characters of a media type (RFC 6838: twice 127, and a slash): some providers tell it in words. */
const MEDIA_TYPE = 255

/**
 * A tool is somebody's code: what it answers is looked at before anybody relies on it, and no more of it than `limit` characters. Throws TypeError for what is
 * no result.
 */
export function boundedResult(answer: unknown, limit: number): ToolResult {
  const { content, structured, isError } = (answer ?? {}) as Partial<ToolResult>
  if (!Array.isArray(content) || !content.slice(0, PARTS).every(isPart))
    throw new TypeError('the tool did not answer { content: [{ type: "text", text }] }')
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

/** The content with at most so many characters of what providers tell in words, and of media, with notes where something was cut. */
export function cutContent(content: readonly ContentPart[], limit: number, media: number = MEDIA): readonly ContentPart[] {
  const kept: ContentPart[] = []
  let [words, other] = [limit, media]
  for (const [at, part] of content.entries()) {
    if (at === PARTS) return [...kept, note(`[cut: ${content.length - at} parts more]`)]
    if (part.type === 'image' || part.type === 'audio') {
      const length = isWithin(part.mimeType, MEDIA_TYPE) ? jsonOf(part, other)?.length : undefined
      kept.push(length === undefined ? leftOut(part) : part)
      other -= length ?? 0
    } else {
      const [cut, length] = cutPart(part, words)
      kept.push(cut)
      words -= length
    }
  }
  return kept
}

/**
 * A part that providers tell in words, and how many characters of the limit it takes. Some tell it as JSON, which is longer than what is in it: where that is
 * too long, the text of a resource is what is kept, and of a link or data nothing.
 */
function cutPart(part: ContentPart, limit: number): readonly [ContentPart, number] {
  const length = part.type === 'text' ? part.text.length : jsonOf(part, limit)?.length
  if (length !== undefined && length <= limit) return [part, length]
  const text = wordsOf(part)
  if (text === undefined) return [leftOut(part), 0]
  return text.length > limit ? [note(cutText(text, limit)), limit] : [note(text), text.length]
}

function wordsOf(part: ContentPart): string | undefined {
  if (part.type === 'text') return part.text
  const { text } = (part as { resource?: { text?: unknown } }).resource ?? {}
  return typeof text === 'string' ? text : undefined
}

const leftOut = (part: ContentPart) => note(`[${part.type.slice(0, 50)} left out: too large]`)
const note = (text: string): ContentPart => ({ type: 'text', text })

// a slice would keep the whole text in memory as long as it lives
const copied = (text: string) => Buffer.from(text, 'utf16le').toString('utf16le')

function cutText(text: string, limit: number): string {
  const kept = copied(text.slice(0, limit))
  // never half of a character of two
  return `${/[\uD800-\uDBFF]$/.test(kept) ? kept.slice(0, -1) : kept}\n[cut: ${text.length - limit} characters more]`
}

/** A value as JSON; `undefined` where that has more than `limit` characters. Throws TypeError for what is none. */
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

/** Whether a value has at most so many characters, roughly, and is not nested without end; looks at no more of it than that. */
export function isWithin(value: unknown, limit: number): boolean {
  return weightOf(value, limit) <= limit && !isDeeper(value, DEPTH)
}

/** The characters of a value, roughly; more than `limit` where it has more, without a look at the rest. */
export function weightOf(value: unknown, limit: number): number {
  const open: unknown[] = [value]
  let left = limit
  while (open.length > 0 && left >= 0) left -= weigh(open.pop(), open, left)
  return limit - left
}

const isDeeper = (value: unknown, left: number): boolean =>
  typeof value === 'object' && value !== null && (left === 0 || Object.values(value).some(one => isDeeper(one, left - 1)))

function weigh(value: unknown, open: unknown[], left: number): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 1
  if (ArrayBuffer.isView(value)) return left + 1
  if (Array.isArray(value)) {
    if (value.length > left) return left + 1
    for (const one of value) open.push(one)
    return value.length
  }
  let weight = 0
  for (const [name, one] of Object.entries(value)) {
    weight += name.length + 1
    if (weight > left) return weight
    open.push(one)
  }
  return weight + 1
}
