import type { FilePart, MessagePart, ModelRequest } from '@svc/core/contracts'
import { perTools } from './json.ts'

const NONE: NonNullable<ModelRequest['tools']> = []
const A_REQUEST = 8
const A_MESSAGE = 6
const A_PART = 8
const AN_IMAGE = 1600
/** Servers bill a page of a document as text and as an image. Base64 of a page has at least about so many characters. */
const A_PAGE = 3000
const CHARACTERS_OF_A_PAGE = 20_000
/** 16 kB of base64 are a second of uncompressed sound at a low rate, or several of compressed sound. */
const A_SECOND = 32
const CHARACTERS_OF_A_SECOND = 2_000

/** Estimates the input tokens of a request without a tokenizer. The estimate is high on purpose: for prose, about 1.5 times the real count. */
export function estimateTokens({ messages, tools = NONE, responseSchema }: ModelRequest): number {
  let tokens = A_REQUEST
  for (const { parts } of messages) {
    tokens += A_MESSAGE
    for (const part of parts) tokens += part.type === 'text' ? tokensOf(part.text) : partTokens(part)
  }
  tokens += toolTokens(tools)
  return Math.ceil(responseSchema === undefined ? tokens : tokens + schemaTokens(responseSchema))
}

function partTokens(part: Exclude<MessagePart, { type: 'text' }>): number {
  if (part.type === 'image' || part.type === 'image_url') return AN_IMAGE
  if (part.type === 'file') return fileTokens(part)
  if (part.type === 'audio') return A_PART + Math.ceil(part.data.length / CHARACTERS_OF_A_SECOND) * A_SECOND
  if (part.type === 'reasoning') return A_PART + tokensOf(part.text)
  if (part.type === 'tool_call') return A_PART + tokensOf(part.tool) + tokensOf(part.invalid ?? JSON.stringify(part.arguments))
  const content = part.content.map(item =>
    item.type === 'text' ? tokensOf(item.text) : item.type === 'image' ? AN_IMAGE : A_PART + tokensOf(JSON.stringify(item))
  )
  return A_PART + tokensOf(part.tool) + content.reduce((sum, tokens) => sum + tokens, 0)
}

/** A text file counts as its text, any other file by its size. */
function fileTokens({ data, mimeType }: FilePart): number {
  if (/^text\//i.test(mimeType)) return A_PART + data.length / 3
  return A_PART + Math.ceil(data.length / CHARACTERS_OF_A_PAGE) * A_PAGE
}

const toolTokens = perTools(tools =>
  tools.reduce((sum, tool) => sum + A_PART + tokensOf(tool.name) + tokensOf(tool.description) + schemaTokens(tool.parameters), 0)
)

// Every request carries the tools. Their schemas are the same objects, unless a caller clones them.
const schemaCounts = new WeakMap<object, number>()

function schemaTokens(schema: ModelRequest['responseSchema']): number {
  if (typeof schema !== 'object') return 1
  const tokens = schemaCounts.get(schema) ?? tokensOf(JSON.stringify(schema))
  schemaCounts.set(schema, tokens)
  return tokens
}

/** Counts thirds of a token: a letter or space 1, other ASCII and up to U+07FF 2, any other UTF-16 unit 5 (an emoji has two). */
function tokensOf(text: string): number {
  let thirds = 2
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code < 128) thirds += code === 32 || ((code | 32) - 97) >>> 0 < 26 ? 1 : 2
    else thirds += code < 0x800 ? 2 : 5
  }
  return thirds / 3
}
