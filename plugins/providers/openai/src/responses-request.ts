import type { ContentPart, MessagePart, ModelMessage, ModelRequest, ToolResultPart, ToolSpec } from '@svc/core/contracts'
import { isTree, perTools, type Tree } from '@svc/provider-http'
import { isReasoningModel, refusesTemperature } from './features.ts'
import type { Preset } from './presets.ts'
import { callId, dataUrl, effortOf, fileName, hashOf, isStrict, NAME, wordsOf } from './request.ts'

/** Settings of an entry for this API. */
export interface ResponsesSettings {
  /** How the server summarizes its reasoning. */
  readonly summary: 'auto' | 'concise' | 'detailed' | undefined
}

/** The body of `POST /responses`. The server stores nothing: it gets all messages, and its own reasoning encrypted. */
export function responsesBody(request: ModelRequest, provider: string, preset: Preset, settings: ResponsesSettings): Tree {
  const { model, messages, temperature, topP, maxTokens, cacheKey, gathered, logprobs } = request
  const reasoning = reasoningOf(request, settings)
  const include = [
    ...(isReasoningModel(model) || reasoning.reasoning !== undefined ? ['reasoning.encrypted_content'] : []),
    ...(logprobs === undefined ? [] : ['message.output_text.logprobs']),
  ]
  return {
    model,
    input: messages.flatMap(message => itemsOf(message, provider, preset)),
    stream: gathered !== true,
    store: false,
    ...(include.length === 0 ? {} : { include }),
    ...(temperature === undefined || refusesTemperature(model, preset) ? {} : { temperature }),
    ...(topP === undefined ? {} : { top_p: topP }),
    ...(maxTokens === undefined ? {} : { max_output_tokens: maxTokens }),
    ...(logprobs === undefined || logprobs === 0 ? {} : { top_logprobs: logprobs }),
    ...(cacheKey === undefined || !preset.cacheKey ? {} : { prompt_cache_key: hashOf(cacheKey) }),
    ...reasoning,
    ...toolsOf(request),
    ...formatOf(request),
  }
}

function reasoningOf(request: ModelRequest, { summary }: ResponsesSettings): Tree {
  const effort = effortOf(request)
  const summarized = summary !== undefined && (effort === undefined ? isReasoningModel(request.model) : effort !== 'none')
  if (effort === undefined && !summarized) return {}
  return { reasoning: { ...(effort === undefined ? {} : { effort }), ...(summarized ? { summary } : {}) } }
}

function toolsOf({ tools = [], toolChoice, parallelToolCalls }: ModelRequest): Tree {
  if (tools.length === 0) return {}
  return {
    tools: wireTools(tools),
    ...(toolChoice === undefined
      ? {}
      : { tool_choice: typeof toolChoice === 'object' ? { type: 'function', name: toolChoice.tool } : toolChoice }),
    ...(parallelToolCalls === undefined ? {} : { parallel_tool_calls: parallelToolCalls }),
  }
}

const wireTools = perTools(tools => tools.map(toolOf))

/** Unlike chat completions, this API enforces the schema of a function by default. */
const toolOf = ({ name, description, parameters, strict = false }: ToolSpec) => ({
  type: 'function',
  name,
  description,
  parameters: typeof parameters === 'object' ? parameters : { type: 'object' },
  strict,
})

function formatOf({ responseFormat, responseSchema: schema, responseSchemaName: name = '', responseSchemaStrict }: ModelRequest) {
  if (schema === undefined) return responseFormat === 'json' ? { text: { format: { type: 'json_object' } } } : {}
  const format = {
    type: 'json_schema',
    name: NAME.test(name) ? name : 'reply',
    schema: typeof schema === 'object' ? schema : {},
    strict: responseSchemaStrict ?? isStrict(schema),
  }
  return { text: { format } }
}

type Item = Tree

/** The items of a message: each part of the assistant, and each result of a tool, is one of its own. */
function itemsOf({ role, parts, provider }: ModelMessage, self: string, preset: Preset): Item[] {
  if (role === 'tool') return parts.flatMap(part => (part.type === 'tool_result' ? [resultItem(part, preset)] : []))
  if (role === 'assistant') return parts.flatMap(part => assistantItem(part, provider === self, preset))
  return [{ type: 'message', role, content: contentOf(parts) }]
}

/** Only reasoning that this server has encrypted goes back, as it came: without it, the server reasons anew. */
function assistantItem(part: MessagePart, isOwn: boolean, preset: Preset): Item[] {
  if (part.type === 'reasoning') return isOwn && isReasoningItem(part.providerData) ? [part.providerData] : []
  if (part.type === 'tool_call') {
    const { id, tool, arguments: args, invalid } = part
    const written = JSON.stringify(invalid === undefined ? args : { invalid_json: invalid })
    return [{ type: 'function_call', call_id: callId(id, preset), name: tool, arguments: written }]
  }
  if (part.type !== 'text' || part.text === '') return []
  return [{ type: 'message', role: 'assistant', content: part.refusal ? [{ type: 'refusal', refusal: part.text }] : part.text }]
}

const isReasoningItem = (data: unknown): data is Item => isTree(data) && data.type === 'reasoning'

/** A string if the parts are only text. */
function contentOf(parts: readonly MessagePart[]): string | Item[] {
  if (parts.every(part => part.type === 'text')) return parts.map(({ text }) => text).join('\n')
  return parts.flatMap(partOf)
}

function partOf(part: MessagePart | ContentPart): Item[] {
  if (part.type === 'text') return [{ type: 'input_text', text: part.text }]
  if (part.type === 'image') return [{ type: 'input_image', image_url: dataUrl(part), detail: 'auto' }]
  if (part.type === 'image_url') return [{ type: 'input_image', image_url: part.url, detail: 'auto' }]
  if (part.type !== 'file') return []
  return [{ type: 'input_file', filename: part.name ?? fileName(part.mimeType), file_data: dataUrl(part) }]
}

function resultItem({ id, content, isError }: ToolResultPart, preset: Preset): Item {
  const words = content.flatMap(wordsOf).join('\n')
  const text = isError ? `Error: ${words}` : words
  const images = content.flatMap(part => (part.type === 'image' ? partOf(part) : []))
  const output = images.length === 0 ? text : [{ type: 'input_text', text }, ...images]
  return { type: 'function_call_output', call_id: callId(id, preset), output }
}
