import type { MessagePart, ModelRequest, ToolSpec } from '@svc/core/contracts'
import type { Tokens } from './tokens.ts'
import { wordsOf } from './turn.ts'

/** What a message costs besides its text: role and borders. */
const A_MESSAGE = 4
const AN_IMAGE = 85

/** Counts the tokens of a request as input: its messages, the tools it offers, the schema it asks for. */
export async function countInput(tokens: Tokens, request: ModelRequest, signal: AbortSignal): Promise<number> {
  const texts: string[] = []
  let fixed = 0
  for (const message of request.messages) {
    fixed += A_MESSAGE
    for (const part of message.parts) {
      if (part.type === 'text') texts.push(part.text)
      else if (part.type === 'image') fixed += AN_IMAGE
      else texts.push(...textsOf(part))
    }
  }
  for (const tool of request.tools ?? []) texts.push(tool.name, tool.description, parametersOf(tool))
  if (request.responseSchema !== undefined) texts.push(JSON.stringify(request.responseSchema))
  return fixed + (await tokens.count(texts, signal))
}

function textsOf(part: Exclude<MessagePart, { type: 'image' }>): string[] {
  if (part.type === 'tool_call') return [part.tool, part.invalid ?? JSON.stringify(part.arguments)]
  if (part.type === 'tool_result') return [part.tool, wordsOf(part.content)]
  return [part.text]
}

// Tools come with every request; their schemas are the same objects as long as nothing is cloned on the way.
const written = new WeakMap<object, string>()

function parametersOf({ parameters }: ToolSpec): string {
  if (typeof parameters !== 'object') return String(parameters)
  const text = written.get(parameters) ?? JSON.stringify(parameters)
  written.set(parameters, text)
  return text
}
