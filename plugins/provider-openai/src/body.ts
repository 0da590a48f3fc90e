import type { ModelMessage, ModelRequest } from '@svc/core/contracts'
import { messagesOf } from './messages.ts'
import type { Preset } from './presets.ts'

/** The body of one call of chat completions, as JSON. */
export function bodyOf(request: ModelRequest, provider: string, preset: Preset): string {
  const { model, temperature, maxTokens, tools = [], toolChoice, responseSchema, gathered } = request
  const body = JSON.stringify({
    model,
    messages: messagesOf(withSchema(request, preset), provider, preset),
    stream: gathered !== true,
    ...(preset.streamOptions && !gathered ? { stream_options: { include_usage: true } } : {}),
    ...(temperature === undefined || preset.noTemperature?.test(model) ? {} : { temperature }),
    ...(maxTokens === undefined ? {} : { [preset.limitField]: maxTokens }),
    ...(tools.length === 0 ? {} : choiceOf(toolChoice, preset)),
    ...(responseSchema === undefined ? {} : { response_format: formatOf(responseSchema, preset) }),
  })
  return tools.length === 0 ? body : `${body.slice(0, -1)},"tools":${toolsText(tools)}}`
}

// The list of a mode is the same for all its turns, and most of what is sent.
const written = new WeakMap<Tools, string>()

function toolsText(tools: Tools): string {
  const text = written.get(tools) ?? JSON.stringify(tools.map(toolOf))
  written.set(tools, text)
  return text
}

type Schema = NonNullable<ModelRequest['responseSchema']>
type Tools = NonNullable<ModelRequest['tools']>

const toolOf = ({ name, description, parameters }: Tools[number]) => ({
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

/** Where the server takes no schema, the model is told it in words. */
function withSchema({ messages, responseSchema }: ModelRequest, preset: Preset): readonly ModelMessage[] {
  if (responseSchema === undefined || preset.schema !== 'prompt') return messages
  const text = `Answer with JSON, and nothing else, of this JSON Schema: ${JSON.stringify(responseSchema)}`
  return [{ role: 'system', parts: [{ type: 'text', text }] }, ...messages]
}
