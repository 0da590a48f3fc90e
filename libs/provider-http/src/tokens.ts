import type { MessagePart, ModelRequest } from '@svc/core/contracts'
import { perTools } from './json.ts'

const NONE: NonNullable<ModelRequest['tools']> = []
const A_REQUEST = 8
const A_MESSAGE = 6
const A_PART = 8
const AN_IMAGE = 1600

/** Tokens that a request costs as input, estimated without a tokenizer and not too low: of prose about half as much again as it really is. */
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
  const content = part.content.map(one =>
    one.type === 'text' ? tokensOf(one.text) : one.type === 'image' ? AN_IMAGE : A_PART + tokensOf(JSON.stringify(one))
  )
  return A_PART + tokensOf(part.tool) + content.reduce((sum, one) => sum + one, 0)
}

const toolTokens = perTools(tools =>
  tools.reduce((sum, tool) => sum + A_PART + tokensOf(tool.name) + tokensOf(tool.description) + schemaTokens(tool.parameters), 0)
)

// Tools come with every request; their schemas are the same objects as long as nothing is cloned on the way.
const known = new WeakMap<object, number>()

function schemaTokens(schema: ModelRequest['responseSchema']): number {
  if (typeof schema !== 'object') return 1
  const tokens = known.get(schema) ?? tokensOf(JSON.stringify(schema))
  known.set(schema, tokens)
  return tokens
}

/** Thirds of a token that a character costs: a letter or blank 1, other ASCII 2, up to U+07FF 2, beyond 5 (an emoji is two such). */
function tokensOf(text: string): number {
  let thirds = 2
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code < 128) thirds += code === 32 || ((code | 32) - 97) >>> 0 < 26 ? 1 : 2
    else thirds += code < 0x800 ? 2 : 5
  }
  return thirds / 3
}
