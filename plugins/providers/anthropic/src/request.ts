import type { ModelMessage, ModelRequest, ToolSpec } from '@svc/core/contracts'
import { perTools, type Tree } from '@svc/provider-http'
import { messagesOf, systemOf } from './messages.ts'
import { replySchema, wireTool } from './schemas.ts'

/** The wire wants a limit of output; this is it where neither the request nor the model has one. */
const DEFAULT_OUTPUT = 8192

/** The request as `POST /v1/messages` takes it; `output`: what the model can say at most, where that is known. */
export function bodyOf(request: ModelRequest, output?: number): Tree {
  const { model, messages, temperature, maxTokens, responseSchema, gathered } = request
  const system = systemOf(messages)
  return {
    model,
    max_tokens: maxTokens ?? output ?? DEFAULT_OUTPUT,
    stream: gathered !== true,
    ...(system === undefined ? {} : { system }),
    messages: messagesOf(messages),
    ...toolsOf(request),
    ...(temperature === undefined ? {} : { temperature }),
    ...(responseSchema === undefined
      ? {}
      : { output_config: { format: { type: 'json_schema', schema: replySchema(responseSchema) } } }),
  }
}

function toolsOf({ tools = [], toolChoice = 'auto', messages }: ModelRequest): Tree {
  // Calls of the past need their tools to be there, though no more calls are wanted.
  if (tools.length === 0) {
    const called = calledTools(messages)
    return called.length === 0 ? {} : { tools: called.map(wireTool), tool_choice: { type: 'none' } }
  }
  return { tools: wireTools(tools), tool_choice: choiceOf(toolChoice) }
}

const wireTools = perTools(tools => tools.map(wireTool))

const CHOICES = { auto: { type: 'auto' }, none: { type: 'none' }, required: { type: 'any' } } as const

const choiceOf = (choice: NonNullable<ModelRequest['toolChoice']>) =>
  typeof choice === 'string' ? CHOICES[choice] : { type: 'tool', name: choice.tool }

function calledTools(messages: readonly ModelMessage[]): ToolSpec[] {
  const calls = messages.flatMap(message => message.parts.filter(part => part.type === 'tool_call'))
  const names = new Set(calls.map(call => call.tool))
  return [...names].map(name => ({ name, description: 'No longer on offer.', parameters: { type: 'object' } }))
}
