import type { JsonSchema } from '@svc/core'
import type { Json, OpenRequest, ReasoningEffort, RequestField } from '@svc/core/contracts'
import { type FieldNames, invalidParam } from '../errors.ts'
import {
  addName,
  booleanIn,
  createLeftovers,
  integerIn,
  isSet,
  type Leftovers,
  listIn,
  numberIn,
  objectIn,
  textIn,
  type Wire,
  wordIn,
} from '../fields.ts'
import { type ClientTools, readToolChoice, readTools } from './tools.ts'

/** A response as its client asks for it. */
export interface AskedResponse {
  /** The name as the client wrote it. */
  readonly model: string
  readonly request: Omit<OpenRequest, 'messages'>
  readonly instructions: string | undefined
  /** The items of the input, in the form in which they are stored, without ids. */
  readonly input: readonly Json[]
  readonly previous: string | undefined
  /** Absent: the client leaves it open. */
  readonly store: boolean | undefined
  readonly stream: boolean
  readonly background: boolean
  readonly shows: Shown
  readonly tools: ClientTools
  /** The fields of the request that the response repeats. */
  readonly echo: Wire
  readonly leftovers: Leftovers
}

/** What the items of a response show. */
export interface Shown {
  /** The data of the provider, encoded. */
  readonly encrypted: boolean
  readonly logprobs: boolean
}

/** Fields that a model can lack without a change of meaning. An answer that ends at the model's own limit says so. */
export const DEFAULTS: readonly RequestField[] = ['maxTokens', 'strictTools']

/** Names in this API that differ from those of svc. */
export const NAMES: FieldNames = {
  maxTokens: 'max_output_tokens',
  strictTools: 'tools.strict',
  images: 'input.content.input_image',
  imageUrls: 'input.content.input_image',
  files: 'input.content.input_file',
  logprobs: 'top_logprobs',
  reasoningEffort: 'reasoning.effort',
  responseFormat: 'text.format',
  responseSchema: 'text.format',
  responseSchemaName: 'text.format.name',
  responseSchemaStrict: 'text.format.strict',
}

type Request = { -readonly [K in keyof AskedResponse['request']]: OpenRequest[K] }
interface Reading {
  readonly body: Wire
  readonly request: Request
  readonly leftovers: Leftovers
  readonly echo: Record<string, Json | undefined>
  readonly include: Set<string>
}
type FieldReader = (value: Json, reading: Reading) => void

/** Reads the body of a request. Fields that are null, or have the value that changes nothing, are as if absent. Throws INVALID_VALUE. */
export function readResponse(body: Wire): AskedResponse {
  const leftovers = createLeftovers()
  const model = textIn(body.model, 'model')
  const reading: Reading = { body, request: {}, leftovers, echo: { ...ECHO, model }, include: new Set() }
  for (const name in body) {
    const value = body[name]
    if (!isSet(value)) continue
    if (Object.hasOwn(FIELDS, name)) FIELDS[name]!(value, reading)
    else addName(leftovers.foreign, name)
  }
  const { request, echo, include } = reading
  const tools = addTools(reading, model)
  if (include.has(LOGPROBS)) request.logprobs ??= 0
  const { stream = false, background = false, store } = flagsIn(body)
  if (background && store === false) throw invalidParam('background', 'needs store: true')
  const textOrAbsent = (name: string) => (isSet(body[name]) ? textIn(body[name], name) : undefined)
  const previous = textOrAbsent('previous_response_id')
  return {
    model,
    request: { ...request, ...(stream || background ? { toolCallDeltas: true } : { gathered: true }) },
    instructions: textOrAbsent('instructions'),
    input: inputOf(body.input, previous !== undefined),
    previous,
    store: background ? true : store,
    stream,
    background,
    shows: { encrypted: include.has(ENCRYPTED), logprobs: request.logprobs !== undefined },
    tools,
    echo,
    leftovers,
  }
}

/** Reads the tools, and which of them the model can or must call. */
function addTools({ body, request, echo, leftovers }: Reading, model: string): ClientTools {
  const tools = readTools(body.tools, leftovers)
  const { choice, specs, wire } = readToolChoice(body.tool_choice, tools, model)
  if (specs.length > 0) request.tools = specs
  if (choice !== undefined) request.toolChoice = choice
  if (body.parallel_tool_calls === false && specs.length > 0) request.parallelToolCalls = false
  Object.assign(echo, { tools: tools.wire, tool_choice: wire })
  return tools
}

function flagsIn(body: Wire): { readonly stream?: boolean; readonly background?: boolean; readonly store?: boolean } {
  const names = ['stream', 'background', 'store'].filter(name => isSet(body[name]))
  return Object.fromEntries(names.map(name => [name, booleanIn(body[name], name)]))
}

/** The values of fields that the request does not have. */
const ECHO: Wire = {
  background: false,
  frequency_penalty: 0,
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  metadata: {},
  parallel_tool_calls: true,
  presence_penalty: 0,
  previous_response_id: null,
  prompt_cache_key: null,
  reasoning: { effort: null, summary: null },
  safety_identifier: null,
  service_tier: 'default',
  store: false,
  temperature: 1,
  text: { format: { type: 'text' } },
  top_logprobs: 0,
  top_p: 1,
  truncation: 'disabled',
  user: null,
}

const ENCRYPTED = 'reasoning.encrypted_content'
const LOGPROBS = 'message.output_text.logprobs'
/** What is always there. */
const SHOWN = 'message.input_image.image_url'
/** Results of tools that only other servers run. */
const HOSTED = [
  'code_interpreter_call.outputs',
  'computer_call_output.output.image_url',
  'file_search_call.results',
  'web_search_call.action.sources',
  'web_search_call.results',
]

const seen: FieldReader = () => {}

/** A field that the response repeats and that changes nothing else. */
const repeated =
  (name: string, longest: number): FieldReader =>
  (value, { echo, leftovers }) => {
    const text = textIn(value, name)
    if (text.length > longest) throw invalidParam(name, `must have at most ${longest} characters`)
    echo[name] = text
    addName(leftovers.dropped, name)
  }

/** A field that changes nothing in the answer. `neutral`: values that ask for nothing. */
const droppable =
  (name: string, ...neutral: readonly Json[]): FieldReader =>
  (value, { leftovers }) => {
    if (!neutral.includes(value)) addName(leftovers.dropped, name)
  }

const penalty =
  (name: 'frequency_penalty' | 'presence_penalty', field: 'frequencyPenalty' | 'presencePenalty'): FieldReader =>
  (value, { request, echo }) => {
    const by = numberIn(value, name, -2, 2)
    echo[name] = by
    if (by !== 0) request[field] = by
  }

const FIELDS: Readonly<Record<string, FieldReader>> = {
  model: seen,
  input: seen,
  stream: seen,
  tools: seen,
  tool_choice: seen,
  store: seen,
  background(value, { echo }) {
    echo.background = value
  },
  instructions(value, { echo }) {
    echo.instructions = value
  },
  previous_response_id(value, { echo }) {
    echo.previous_response_id = value
  },
  parallel_tool_calls(value, { echo }) {
    echo.parallel_tool_calls = booleanIn(value, 'parallel_tool_calls')
  },
  stream_options(value, { leftovers }) {
    const { include_obfuscation, ...rest } = objectIn(value, 'stream_options')
    if (isSet(include_obfuscation) && booleanIn(include_obfuscation, 'stream_options.include_obfuscation'))
      addName(leftovers.dropped, 'stream_options.include_obfuscation')
    for (const name in rest) if (isSet(rest[name])) addName(leftovers.foreign, `stream_options.${name}`)
  },
  temperature(value, { request, echo }) {
    request.temperature = numberIn(value, 'temperature', 0, 2)
    echo.temperature = value
  },
  top_p(value, { request, echo }) {
    const topP = numberIn(value, 'top_p', 0, 1)
    echo.top_p = topP
    // svc takes numbers above 0, and 0 means only the most likely token
    if (topP < 1) request.topP = Math.max(topP, 1e-6)
  },
  top_logprobs(value, { request, echo }) {
    const top = integerIn(value, 'top_logprobs', 0, 20)
    echo.top_logprobs = top
    if (top > 0) request.logprobs = top
  },
  frequency_penalty: penalty('frequency_penalty', 'frequencyPenalty'),
  presence_penalty: penalty('presence_penalty', 'presencePenalty'),
  max_output_tokens(value, { request, echo }) {
    request.maxTokens = integerIn(value, 'max_output_tokens', 1)
    echo.max_output_tokens = value
  },
  reasoning: readReasoningField,
  text: readText,
  include(value, { include, leftovers }) {
    for (const [at, name] of listIn(value, 'include').entries()) {
      const word = wordIn(name, `include[${at}]`, [ENCRYPTED, LOGPROBS, SHOWN, ...HOSTED])
      if (HOSTED.includes(word)) addName(leftovers.dropped, `include.${word}`)
      else include.add(word)
    }
  },
  metadata: readMetadata,
  truncation(value, { leftovers }) {
    // a request that is too long fails, as with disabled
    if (wordIn(value, 'truncation', ['auto', 'disabled']) === 'auto') addName(leftovers.dropped, 'truncation')
  },
  prompt_cache_key(value, { request, echo }) {
    request.cacheKey = textIn(value, 'prompt_cache_key').slice(0, 1_000)
    echo.prompt_cache_key = request.cacheKey
  },
  prompt_cache_retention: droppable('prompt_cache_retention'),
  prompt_cache_options: droppable('prompt_cache_options'),
  client_metadata: droppable('client_metadata'),
  user: repeated('user', 1_000),
  safety_identifier: repeated('safety_identifier', 1_000),
  service_tier: droppable('service_tier', 'auto', 'default'),
}

const EFFORTS: readonly ReasoningEffort[] = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']
const SUMMARIES = ['auto', 'concise', 'detailed'] as const

function readReasoningField(value: Json, { request, echo, leftovers }: Reading): void {
  const { effort, summary, generate_summary, ...rest } = objectIn(value, 'reasoning')
  if (isSet(effort)) request.reasoningEffort = wordIn(effort, 'reasoning.effort', EFFORTS)
  if (isSet(summary)) wordIn(summary, 'reasoning.summary', SUMMARIES)
  if (isSet(generate_summary)) wordIn(generate_summary, 'reasoning.generate_summary', SUMMARIES)
  for (const name in rest) if (isSet(rest[name])) addName(leftovers.foreign, `reasoning.${name}`)
  echo.reasoning = { effort: effort ?? null, summary: summary ?? generate_summary ?? null }
}

function readText(value: Json, { request, echo, leftovers }: Reading): void {
  const { format, verbosity, ...rest } = objectIn(value, 'text')
  for (const name in rest) if (isSet(rest[name])) addName(leftovers.foreign, `text.${name}`)
  // models that know no verbosity answer all the same
  if (isSet(verbosity) && wordIn(verbosity, 'text.verbosity', ['low', 'medium', 'high']) !== 'medium')
    addName(leftovers.dropped, 'text.verbosity')
  const { type, name, schema, strict, ...others } = isSet(format) ? objectIn(format, 'text.format') : { type: 'text' }
  const known = wordIn(type, 'text.format.type', ['text', 'json_object', 'json_schema'])
  if (known === 'json_object') request.responseFormat = 'json'
  if (known !== 'json_schema') {
    echo.text = { format: { type: known } }
    return
  }
  for (const other in others) if (isSet(others[other])) addName(leftovers.dropped, `text.format.${other}`)
  request.responseSchema = objectIn(schema, 'text.format.schema') as JsonSchema
  if (isSet(name)) request.responseSchemaName = textIn(name, 'text.format.name')
  if (isSet(strict)) request.responseSchemaStrict = booleanIn(strict, 'text.format.strict')
  echo.text = { format: { description: null, strict: false, ...(format as object), type: known } }
}

const [MOST_PAIRS, LONGEST_KEY, LONGEST_VALUE] = [16, 64, 512]

function readMetadata(value: Json, { echo }: Reading): void {
  const pairs = Object.entries(objectIn(value, 'metadata'))
  if (pairs.length > MOST_PAIRS) throw invalidParam('metadata', `must have at most ${MOST_PAIRS} entries`)
  for (const [key, text] of pairs) {
    if (key.length > LONGEST_KEY) throw invalidParam('metadata', `must have keys of at most ${LONGEST_KEY} characters`)
    const param = `metadata.${key}`
    if (textIn(text, param).length > LONGEST_VALUE) throw invalidParam(param, `must have at most ${LONGEST_VALUE} characters`)
  }
  echo.metadata = value
}

/** The items of the input. Those of messages have a list of parts as content. */
function inputOf(value: Json | undefined, canBeEmpty: boolean): Json[] {
  if (!isSet(value) && canBeEmpty) return []
  if (typeof value === 'string') return [messageItem('user', value)]
  const items = listIn(value, 'input')
  if (items.length === 0 && !canBeEmpty) throw invalidParam('input', 'must not be empty')
  return items.map((item, at) => {
    const wire = objectIn(item, `input[${at}]`)
    if (isSet(wire.type) && wire.type !== 'message') return wire as Json
    // a reference can lack its type
    if (!isSet(wire.type) && wire.role === undefined && isSet(wire.id)) return { ...wire, type: 'item_reference' }
    return typeof wire.content === 'string' ? { ...wire, ...messageItem(wire.role, wire.content) } : { ...wire, type: 'message' }
  })
}

const messageItem = (role: Json | undefined, text: string) => ({
  type: 'message',
  role,
  content: [
    { type: role === 'assistant' ? 'output_text' : 'input_text', text, ...(role === 'assistant' ? { annotations: [] } : {}) },
  ],
})
