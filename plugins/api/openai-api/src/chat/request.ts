import type { JsonSchema } from '@svc/core'
import type { Json, OpenRequest, ReasoningEffort, RequestField, ToolSpec } from '@svc/core/contracts'
import { type FieldNames, invalidParam } from '../errors.ts'
import {
  addName,
  booleanIn,
  createLeftovers,
  integerIn,
  isObject,
  isSet,
  type Leftovers,
  listIn,
  numberIn,
  objectIn,
  textIn,
  type Wire,
  wordIn,
} from '../fields.ts'
import { hintOf, noteRest, readMessages } from './messages.ts'

/** The name of the protocol among providers. */
export const PROTOCOL = 'openai-chat'

/** A chat completion as its client asks for it. */
export interface AskedChat {
  /** The name as the client wrote it. */
  readonly model: string
  readonly request: OpenRequest
  readonly stream: boolean
  /** The stream has a chunk with the usage. */
  readonly includeUsage: boolean
  readonly leftovers: Leftovers
  readonly names: FieldNames
}

/** Fields that a model can lack without a change of meaning. An answer that ends at the model's own limit says so. */
export const DEFAULTS: readonly RequestField[] = ['maxTokens', 'strictTools', 'cacheHints']

/** Names in this API that differ from those of svc. */
const NAMES: FieldNames = {
  maxTokens: 'max_tokens',
  strictTools: 'tools.function.strict',
  cacheHints: 'cache_control',
  images: 'messages.content.image_url',
  imageUrls: 'messages.content.image_url',
  files: 'messages.content.file',
  audio: 'messages.content.input_audio',
  logprobs: 'logprobs',
  responseFormat: 'response_format',
  responseSchema: 'response_format',
  responseSchemaName: 'response_format.json_schema.name',
  responseSchemaStrict: 'response_format.json_schema.strict',
}

type Request = { -readonly [K in keyof OpenRequest]: OpenRequest[K] }
interface Reading {
  readonly body: Wire
  readonly request: Request
  readonly leftovers: Leftovers
  /** The tools that the model can call, if these are not all. */
  allowed?: readonly string[]
}
type FieldReader = (value: Json, reading: Reading) => void

/** Reads the body of a chat completion. Fields that are null, or have the value that changes nothing, are as if absent. Throws INVALID_VALUE. */
export function readChat(body: Wire): AskedChat {
  const leftovers = createLeftovers()
  const request: Request = { messages: readMessages(body.messages, leftovers) }
  const reading: Reading = { body, request, leftovers }
  for (const name in body) {
    const value = body[name]
    if (!isSet(value)) continue
    if (Object.hasOwn(FIELDS, name)) FIELDS[name]!(value, reading)
    else addName(leftovers.foreign, name)
  }
  checkTools(reading)
  const stream = isSet(body.stream) && booleanIn(body.stream, 'stream')
  if (stream) request.toolCallDeltas = true
  else request.gathered = true
  const limit = isSet(body.max_completion_tokens) ? 'max_completion_tokens' : 'max_tokens'
  return {
    model: textIn(body.model, 'model'),
    request,
    stream,
    includeUsage: isObject(body.stream_options) && body.stream_options.include_usage === true,
    leftovers,
    names: { ...NAMES, maxTokens: limit },
  }
}

const seen: FieldReader = () => {}

/** A field that changes nothing in the answer. `neutral`: values that ask for nothing. */
const droppable =
  (name: string, ...neutral: readonly Json[]): FieldReader =>
  (value, { leftovers }) => {
    if (!neutral.includes(value)) addName(leftovers.dropped, name)
  }

/** A field that only servers of the protocol understand, unless it has one of these values. */
const foreign =
  (name: string, isNeutral: (value: Json) => boolean = () => false): FieldReader =>
  (value, { leftovers }) => {
    if (!isNeutral(value)) addName(leftovers.foreign, name)
  }

const FIELDS: Readonly<Record<string, FieldReader>> = {
  model: seen,
  messages: seen,
  stream: seen,
  stream_options(value, { leftovers }) {
    const { include_usage, include_obfuscation, ...rest } = objectIn(value, 'stream_options')
    if (isSet(include_usage)) booleanIn(include_usage, 'stream_options.include_usage')
    if (include_obfuscation === true) addName(leftovers.dropped, 'stream_options.include_obfuscation')
    for (const name in rest) if (isSet(rest[name])) addName(leftovers.foreign, `stream_options.${name}`)
  },
  temperature(value, { request }) {
    request.temperature = numberIn(value, 'temperature', 0, 2)
  },
  top_p(value, { request }) {
    const topP = numberIn(value, 'top_p', 0, 1)
    // svc takes numbers above 0, and 0 means only the most likely token
    if (topP < 1) request.topP = Math.max(topP, 1e-6)
  },
  top_k(value, { request }) {
    request.topK = integerIn(value, 'top_k', 1)
  },
  max_tokens(value, { request, body }) {
    const maxTokens = integerIn(value, 'max_tokens', 1)
    if (!isSet(body.max_completion_tokens)) request.maxTokens = maxTokens
  },
  max_completion_tokens(value, { request }) {
    request.maxTokens = integerIn(value, 'max_completion_tokens', 1)
  },
  n(value, { request }) {
    const n = integerIn(value, 'n', 1, 8)
    if (n > 1) request.n = n
  },
  stop(value, { request }) {
    const stops = typeof value === 'string' ? [value] : listIn(value, 'stop')
    if (stops.length > 4) throw invalidParam('stop', 'must have at most 4 texts')
    const texts = stops.map((stop, at) => textIn(stop, `stop[${at}]`))
    if (texts.includes('')) throw invalidParam('stop', 'must not have an empty text')
    if (texts.some(text => text.length > LONGEST_STOP))
      throw invalidParam('stop', `must have texts of at most ${LONGEST_STOP} characters`)
    if (texts.length > 0) request.stop = texts
  },
  seed(value, { request }) {
    request.seed = integerIn(value, 'seed', Number.MIN_SAFE_INTEGER)
  },
  frequency_penalty(value, { request }) {
    const penalty = numberIn(value, 'frequency_penalty', -2, 2)
    if (penalty !== 0) request.frequencyPenalty = penalty
  },
  presence_penalty(value, { request }) {
    const penalty = numberIn(value, 'presence_penalty', -2, 2)
    if (penalty !== 0) request.presencePenalty = penalty
  },
  logit_bias(value, { request }) {
    const bias = Object.entries(objectIn(value, 'logit_bias')).map(
      ([token, by]) => [token, numberIn(by, `logit_bias.${token.slice(0, 50)}`, -100, 100)] as const
    )
    if (bias.length > 0) request.logitBias = Object.fromEntries(bias)
  },
  logprobs(value, { request, body }) {
    if (!booleanIn(value, 'logprobs')) return
    request.logprobs = isSet(body.top_logprobs) ? integerIn(body.top_logprobs, 'top_logprobs', 0, 20) : 0
  },
  top_logprobs(value, { body }) {
    if (integerIn(value, 'top_logprobs', 0, 20) > 0 && body.logprobs !== true)
      throw invalidParam('top_logprobs', 'needs logprobs: true')
  },
  reasoning_effort(value, { request, leftovers }) {
    const effort = EFFORTS.find(word => word === textIn(value, 'reasoning_effort'))
    if (effort) request.reasoningEffort = effort
    else addName(leftovers.foreign, 'reasoning_effort')
  },
  tools: readTools,
  tool_choice: readToolChoice,
  parallel_tool_calls(value, { request, body }) {
    const isParallel = booleanIn(value, 'parallel_tool_calls')
    if (!isParallel && hasTools(body)) request.parallelToolCalls = false
  },
  response_format: readResponseFormat,
  prompt_cache_key(value, { request }) {
    request.cacheKey = textIn(value, 'prompt_cache_key').slice(0, 1_000)
  },
  prompt_cache_retention: droppable('prompt_cache_retention'),
  metadata: droppable('metadata'),
  store: droppable('store', false),
  user: droppable('user'),
  safety_identifier: droppable('safety_identifier'),
  service_tier: droppable('service_tier', 'auto', 'default'),
  prediction: droppable('prediction'),
  verbosity: foreign('verbosity', value => value === 'medium'),
  modalities: foreign('modalities', value => Array.isArray(value) && value.every(one => one === 'text')),
  functions: foreign('functions', isEmptyList),
  function_call: foreign('function_call', value => value === 'none' || value === 'auto'),
}

function isEmptyList(value: Json): boolean {
  return Array.isArray(value) && value.length === 0
}

const EFFORTS: readonly ReasoningEffort[] = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']
const MOST_TOOLS = 1_024
const LONGEST_NAME = 128
const LONGEST_STOP = 10_000

const hasTools = ({ tools }: Wire) => Array.isArray(tools) && tools.length > 0

function readTools(value: Json, { request, leftovers }: Reading): void {
  const items = listIn(value, 'tools')
  if (items.length > MOST_TOOLS) throw invalidParam('tools', `must have at most ${MOST_TOOLS} tools`, { limit: MOST_TOOLS })
  const tools = items.flatMap((item, at) => toolOf(item, `tools[${at}]`, leftovers))
  const names = new Set(tools.map(({ name }) => name))
  if (names.size < tools.length) throw invalidParam('tools', 'must not have two tools of the same name')
  if (tools.length > 0) request.tools = tools
}

function toolOf(item: Json, param: string, leftovers: Leftovers): ToolSpec[] {
  const { type, function: described, cache_control, ...rest } = objectIn(item, param)
  if (type !== 'function') {
    addName(leftovers.foreign, `${param}.type`)
    return []
  }
  for (const name in rest) if (isSet(rest[name])) addName(leftovers.dropped, `tools.${name}`)
  const { name, description, parameters, strict, ...others } = objectIn(described, `${param}.function`)
  for (const other in others) if (isSet(others[other])) addName(leftovers.dropped, `tools.function.${other}`)
  const tool = textIn(name, `${param}.function.name`)
  if (tool === '' || tool.length > LONGEST_NAME)
    throw invalidParam(`${param}.function.name`, `must have 1 to ${LONGEST_NAME} characters`)
  return [
    {
      name: tool,
      description: isSet(description) ? textIn(description, `${param}.function.description`) : '',
      parameters: isSet(parameters) ? (objectIn(parameters, `${param}.function.parameters`) as JsonSchema) : NO_PARAMETERS,
      ...(isSet(strict) && booleanIn(strict, `${param}.function.strict`) ? { strict: true } : {}),
      ...hintOf(cache_control, param),
    },
  ]
}

const NO_PARAMETERS: JsonSchema = { type: 'object', properties: {} }

function readToolChoice(value: Json, reading: Reading): void {
  const { request, leftovers } = reading
  if (typeof value === 'string') {
    const choice = wordIn(value, 'tool_choice', ['auto', 'none', 'required'])
    if (choice !== 'auto') request.toolChoice = choice
    return
  }
  const { type, function: named, allowed_tools, ...rest } = objectIn(value, 'tool_choice')
  noteRest(rest, leftovers, 'tool_choice')
  if (type === 'function')
    request.toolChoice = { tool: textIn(objectIn(named, 'tool_choice.function').name, 'tool_choice.function.name') }
  else if (type === 'allowed_tools') allowTools(objectIn(allowed_tools, 'tool_choice.allowed_tools'), reading)
  else addName(leftovers.foreign, 'tool_choice.type')
}

/** The model can call only some of the tools. */
function allowTools({ mode, tools }: Wire, reading: Reading): void {
  const param = 'tool_choice.allowed_tools'
  reading.allowed = listIn(tools, `${param}.tools`).map((tool, at) => {
    const place = `${param}.tools[${at}]`
    return textIn(objectIn(objectIn(tool, place).function, `${place}.function`).name, `${place}.function.name`)
  })
  if (wordIn(mode, `${param}.mode`, ['auto', 'required']) === 'required') reading.request.toolChoice = 'required'
}

/** Checks what depends on the tools. */
function checkTools({ request, body, allowed }: Reading): void {
  if (allowed) {
    const unknown = allowed.find(name => !request.tools?.some(tool => tool.name === name))
    if (unknown !== undefined)
      throw invalidParam('tool_choice', `allows "${unknown.slice(0, 100)}", which is not one of the tools`)
    request.tools = (request.tools ?? []).filter(({ name }) => allowed.includes(name))
  }
  const { toolChoice, tools = [] } = request
  if (toolChoice === undefined) return
  if (tools.length === 0) {
    if (toolChoice !== 'none' && !hasTools(body)) throw invalidParam('tool_choice', 'needs tools')
    delete request.toolChoice
  } else if (typeof toolChoice === 'object' && !tools.some(({ name }) => name === toolChoice.tool))
    throw invalidParam('tool_choice', `names "${toolChoice.tool.slice(0, 100)}", which is not one of the tools`)
}

function readResponseFormat(value: Json, { request, leftovers }: Reading): void {
  const { type, json_schema, ...rest } = objectIn(value, 'response_format')
  noteRest(rest, leftovers, 'response_format')
  if (type === 'text') return
  if (type === 'json_object') request.responseFormat = 'json'
  else if (type === 'json_schema') {
    const param = 'response_format.json_schema'
    const { name, schema, strict, ...others } = objectIn(json_schema, param)
    noteRest(others, leftovers, param)
    request.responseSchema = isSet(schema) ? (objectIn(schema, `${param}.schema`) as JsonSchema) : { type: 'object' }
    if (isSet(name)) request.responseSchemaName = textIn(name, `${param}.name`)
    if (isSet(strict)) request.responseSchemaStrict = booleanIn(strict, `${param}.strict`)
  } else addName(leftovers.foreign, 'response_format.type')
}
