import type { ModelMessage, ModelRequest, ToolSpec } from '@svc/core/contracts'
import { perTools, type Tree } from '@svc/provider-http'
import { messagesOf } from './messages.ts'
import type { Preset } from './presets.ts'

/** The body of one call of chat completions. */
export function bodyOf(request: ModelRequest, provider: string, preset: Preset): Tree {
  const { model, temperature, maxTokens, tools = [], toolChoice, responseSchema, gathered } = request
  return {
    model,
    messages: messagesOf(withSchema(request, preset), provider, preset),
    stream: gathered !== true,
    ...(preset.streamOptions && !gathered ? { stream_options: { include_usage: true } } : {}),
    ...(temperature === undefined || preset.noTemperature?.test(model) ? {} : { temperature }),
    ...(maxTokens === undefined ? {} : { [preset.limitField]: maxTokens }),
    ...(tools.length === 0 ? {} : { ...choiceOf(toolChoice, preset), tools: wireTools(tools) }),
    ...(responseSchema === undefined ? {} : { response_format: formatOf(responseSchema, preset) }),
  }
}

const wireTools = perTools(tools => tools.map(toolOf))

type Schema = NonNullable<ModelRequest['responseSchema']>

const toolOf = ({ name, description, parameters }: ToolSpec) => ({
  type: 'function',
  function: { name, description, parameters: typeof parameters === 'object' ? parameters : { type: 'object' } },
})

function choiceOf(choice: ModelRequest['toolChoice'], preset: Preset): object {
  if (choice === undefined) return {}
  if (typeof choice === 'object') return { tool_choice: { type: 'function', function: { name: choice.tool } } }
  return { tool_choice: choice === 'required' ? preset.mustCall : choice }
}

const formatOf = (schema: Schema, preset: Preset): object =>
  preset.schema === 'prompt'
    ? { type: 'json_object' }
    : {
        type: 'json_schema',
        json_schema: { name: 'reply', schema: typeof schema === 'object' ? schema : {}, strict: isStrict(schema) },
      }

/** Whether a server that holds a schema strictly takes it: each object closed, each of its properties required. */
function isStrict(schema: unknown): boolean {
  if (Array.isArray(schema)) return schema.every(isStrict)
  if (typeof schema !== 'object' || schema === null) return true
  const { properties, required, additionalProperties } = schema as {
    properties?: unknown
    required?: unknown
    additionalProperties?: unknown
  }
  if (typeof properties === 'object' && properties !== null) {
    if (additionalProperties !== false || !Array.isArray(required)) return false
    if (Object.keys(properties).some(key => !required.includes(key))) return false
  }
  return Object.values(schema).every(isStrict)
}

/** Where the server takes no schema, a system message describes it. */
function withSchema({ messages, responseSchema }: ModelRequest, preset: Preset): readonly ModelMessage[] {
  if (responseSchema === undefined || preset.schema !== 'prompt') return messages
  const text = `Answer with JSON, and nothing else, of this JSON Schema: ${JSON.stringify(responseSchema)}`
  return [{ role: 'system', parts: [{ type: 'text', text }] }, ...messages]
}
