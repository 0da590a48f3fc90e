import type { MessagePart, ModelRequest, ToolSpec } from '@svc/core/contracts'
import type { Tokens } from './tokens.ts'
import { wordsOf } from './directives.ts'

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
  if (request.tools && request.tools.length > 0) fixed += await countTools(tokens, request.tools, signal)
  if (request.responseSchema !== undefined) texts.push(JSON.stringify(request.responseSchema))
  return fixed + (await tokens.count(texts, signal))
}

function textsOf(part: Exclude<MessagePart, { type: 'image' }>): string[] {
  if (part.type === 'tool_call') return [part.tool, part.invalid ?? JSON.stringify(part.arguments)]
  if (part.type === 'tool_result') return [part.tool, wordsOf(part.content)]
  return [part.text]
}

// Tools come with every request, and the list of a mode is the same for all its turns as long as nothing is cloned on the way.
const counted = new WeakMap<readonly ToolSpec[], number>()

async function countTools(tokens: Tokens, tools: readonly ToolSpec[], signal: AbortSignal): Promise<number> {
  const known = counted.get(tools)
  if (known !== undefined) return known
  const texts = tools.flatMap(tool => [tool.name, tool.description, JSON.stringify(tool.parameters)])
  const count = await tokens.count(texts, signal)
  counted.set(tools, count)
  return count
}
