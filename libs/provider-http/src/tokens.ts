import type { MessagePart, ModelRequest } from '@svc/core/contracts'
import { perTools } from './json.ts'

const NONE: NonNullable<ModelRequest['tools']> = []
const A_REQUEST = 8
const A_MESSAGE = 6
const A_PART = 8
const AN_IMAGE = 1600

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
  if (part.type === 'image') return AN_IMAGE
  if (part.type === 'reasoning') return A_PART + tokensOf(part.text)
  if (part.type === 'tool_call') return A_PART + tokensOf(part.tool) + tokensOf(part.invalid ?? JSON.stringify(part.arguments))
  const content = part.content.map(item =>
    item.type === 'text' ? tokensOf(item.text) : item.type === 'image' ? AN_IMAGE : A_PART + tokensOf(JSON.stringify(item))
  )
  return A_PART + tokensOf(part.tool) + content.reduce((sum, tokens) => sum + tokens, 0)
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
