import type { JsonSchema } from '@svc/core'
import type {
  CacheHint,
  ContentPart,
  FilePart,
  ImagePart,
  Json,
  MessagePart,
  ModelMessage,
  ModelRequest,
  NativeRequest,
  ReasoningPart,
  TextPart,
  ToolResultPart,
  ToolSpec,
} from '@svc/core/contracts'
import { isTree, perTools, textIn, type Tree } from '@svc/provider-http'
import { thinkingOf } from './thinking.ts'
import { type ModelTraits, traitsByName } from './traits.ts'

/** The API requires an output limit. This is the default if neither the request nor the model has one. */
const DEFAULT_OUTPUT = 8192

/** What a body depends on besides the request. */
export interface BodyOptions {
  /** The output limit of the model, if known. */
  readonly output?: number | undefined
  /** Marks the parts of the prompt that repeat, unless the request has hints. */
  readonly caches?: boolean
  readonly traits?: ModelTraits
}

/** The body of `POST /v1/messages`. */
export function bodyOf(request: ModelRequest, { output, caches = false, traits }: BodyOptions = {}): Tree {
  const { model, messages, temperature, maxTokens, gathered } = request
  const hinted = hasHints(request)
  const marks = caches && !hinted
  const max_tokens = maxTokens ?? output ?? DEFAULT_OUTPUT
  const system = systemOf(messages, marks, hinted)
  const { thinking, effort } = thinkingOf(request, traits ?? traitsByName(model), max_tokens)
  return {
    model,
    max_tokens,
    stream: gathered !== true,
    ...(system === undefined ? {} : { system }),
    messages: marks ? withMarks(messagesOf(messages)) : messagesOf(messages),
    ...toolsOf(request, marks),
    // A model that thinks takes no temperature but 1.
    ...(temperature === undefined || thinking?.type === 'enabled' || thinking?.type === 'adaptive' ? {} : { temperature }),
    ...samplingOf(request),
    ...(thinking === undefined ? {} : { thinking }),
    ...outputOf(request, effort),
  }
}

/** The original body of a client, with the model and the kind of answer of this call. */
export const originalBody = ({ model, gathered }: ModelRequest, { body }: NativeRequest): Tree => ({
  ...body,
  model,
  stream: gathered !== true,
})

/** Fields of a message that `count_tokens` does not take. */
const NOT_COUNTED = ['max_tokens', 'stream', 'temperature', 'top_p', 'top_k', 'stop_sequences', 'metadata', 'service_tier']

/** The body of `POST /v1/messages/count_tokens`. */
export const countBody = ({ model }: ModelRequest, { body }: NativeRequest): Tree => ({
  ...Object.fromEntries(Object.entries(body).filter(([name]) => !NOT_COUNTED.includes(name))),
  model,
})

const samplingOf = ({ stop, topP, topK }: ModelRequest): Tree => ({
  ...(stop === undefined || stop.length === 0 ? {} : { stop_sequences: stop }),
  ...(topP === undefined ? {} : { top_p: topP }),
  ...(topK === undefined ? {} : { top_k: topK }),
})

function outputOf({ responseSchema }: ModelRequest, effort: string | undefined): Tree {
  const format = responseSchema === undefined ? {} : { format: { type: 'json_schema', schema: replySchema(responseSchema) } }
  const config = { ...(effort === undefined ? {} : { effort }), ...format }
  return Object.keys(config).length === 0 ? {} : { output_config: config }
}

/** True if the caller decides what is cached. */
const hasHints = ({ messages, tools = [] }: ModelRequest): boolean =>
  tools.some(tool => tool.cacheHint) || messages.some(({ parts }) => parts.some(part => 'cacheHint' in part && part.cacheHint))

/** Ends a part of the prompt that the API caches. It ignores the mark of a part that is too short. */
const marked = <T extends object>(block: T, { ttl }: CacheHint = {}) => ({
  ...block,
  cache_control: { type: 'ephemeral', ...(ttl === undefined ? {} : { ttl }) },
})

/** Marks the last block of a part with a hint. */
function hinted(blocks: Block[], hint: CacheHint | undefined): Block[] {
  const last = blocks.at(-1)
  return hint === undefined || last === undefined ? blocks : [...blocks.slice(0, -1), marked(last, hint)]
}

const UNMARKED = new Set(['thinking', 'redacted_thinking'])

/**
 * Marks the end of a conversation that goes on, and the end of its previous request: the API searches at most 20 blocks before a mark. A single
 * message is not marked, because writing to the cache costs more than the tokens. The API allows four marks; the other two are for tools and system.
 */
function withMarks(messages: Message[]): Message[] {
  if (!messages.some(({ role }) => role === 'assistant')) return messages
  const ends = messages.flatMap(({ role }, at) => (role === 'user' ? [at] : [])).slice(-2)
  for (const at of ends) {
    const { content } = messages[at]!
    const last = content.at(-1)
    if (last && !UNMARKED.has(last.type)) content[content.length - 1] = marked(last)
  }
  return messages
}

function toolsOf({ tools = [], toolChoice = 'auto', parallelToolCalls, messages }: ModelRequest, caches: boolean): Tree {
  // The API requires the tools of earlier calls, even if the request offers none.
  if (tools.length === 0) {
    const called = calledTools(messages)
    return called.length === 0 ? {} : { tools: called.map(wireTool), tool_choice: { type: 'none' } }
  }
  return { tools: caches ? markedTools(tools) : wireTools(tools), tool_choice: choiceOf(toolChoice, parallelToolCalls === false) }
}

const wireTools = perTools(tools => tools.map(wireTool))
const markedTools = perTools(tools => wireTools(tools).map((tool, at) => (at === tools.length - 1 ? marked(tool) : tool)))

const CHOICES = { auto: { type: 'auto' }, none: { type: 'none' }, required: { type: 'any' } } as const

function choiceOf(choice: NonNullable<ModelRequest['toolChoice']>, single: boolean): Tree {
  const made = typeof choice === 'string' ? CHOICES[choice] : { type: 'tool', name: choice.tool }
  return single && choice !== 'none' ? { ...made, disable_parallel_tool_use: true } : made
}

function calledTools(messages: readonly ModelMessage[]): ToolSpec[] {
  const calls = messages.flatMap(message => message.parts.filter(part => part.type === 'tool_call'))
  const names = new Set(calls.map(call => call.tool))
  return [...names].map(name => ({ name, description: 'No longer available.', parameters: { type: 'object' } }))
}

/** A content block of the API. */
interface Block {
  readonly type: string
  readonly [key: string]: Json | undefined
}
interface Message {
  readonly role: 'user' | 'assistant'
  readonly content: Block[]
}

/** The text of all system messages; `undefined` if they are empty. With hints or a mark, it is a list of blocks. */
function systemOf(messages: readonly ModelMessage[], marks: boolean, hasOwn: boolean): string | Block[] | undefined {
  const parts = messages.filter(message => message.role === 'system').flatMap(message => message.parts.filter(isText))
  if (parts.length === 0) return undefined
  if (hasOwn) return parts.flatMap(part => hinted([{ type: 'text', text: part.text }], part.cacheHint))
  const text = parts.map(part => part.text).join('\n\n')
  return marks ? [marked({ type: 'text', text })] : text
}

/**
 * Converts messages to the API. It has only two roles. Adjacent messages of a role become one. Tool results belong to the user message after
 * the calls, and each call has a result.
 */
function messagesOf(messages: readonly ModelMessage[]): Message[] {
  const merged: Message[] = []
  for (const message of messages) {
    if (message.role === 'system') continue
    const role = message.role === 'assistant' ? 'assistant' : 'user'
    const content = role === 'assistant' ? assistantBlocks(message.parts) : userBlocks(message.parts)
    const last = merged.at(-1)
    if (content.length === 0) continue
    if (last?.role === role) last.content.push(...content)
    else merged.push({ role, content })
  }
  return withResults(merged)
}

const isText = (part: MessagePart): part is TextPart => part.type === 'text' && part.text !== ''

const userBlocks = (parts: readonly MessagePart[]): Block[] =>
  parts.flatMap(part => hinted(userBlock(part), 'cacheHint' in part ? part.cacheHint : undefined))

function userBlock(part: MessagePart): Block[] {
  if (part.type === 'text') return textBlocks(part.text)
  if (part.type === 'image') return imageBlocks(part)
  if (part.type === 'image_url') return [{ type: 'image', source: { type: 'url', url: part.url } }]
  if (part.type === 'file') return [documentBlock(part)]
  if (part.type === 'audio') return textBlocks(`[audio, ${part.mimeType}: it cannot be heard]`)
  return part.type === 'tool_result' ? [resultBlock(part)] : []
}

/** A document: texts as text, anything else as base64. The API refuses other types than PDF. */
function documentBlock({ data, mimeType, name }: FilePart): Block {
  const source = /^text\//i.test(mimeType)
    ? { type: 'text', media_type: 'text/plain', data: Buffer.from(data, 'base64').toString('utf8') }
    : { type: 'base64', media_type: mimeType, data }
  return { type: 'document', source, ...(name === undefined ? {} : { title: name }) }
}

function assistantBlocks(parts: readonly MessagePart[]): Block[] {
  const blocks: Block[] = []
  let thought = ''
  for (const part of parts) {
    if (part.type === 'reasoning') {
      thought += part.text
      const block = thoughtBlock(part, thought)
      if (block) blocks.push(block)
      if (block) thought = ''
      continue
    }
    thought = ''
    if (part.type === 'text') blocks.push(...hinted(textBlocks(part.text), part.cacheHint))
    else if (part.type === 'tool_call')
      blocks.push({
        type: 'tool_use',
        id: wireId(part.id),
        name: part.tool,
        input: part.invalid === undefined ? part.arguments : { invalid_json: part.invalid },
      })
  }
  return blocks
}

/** The last piece of a block of reasoning has the signature. A block without a signature cannot be returned. */
function thoughtBlock({ providerData }: ReasoningPart, thinking: string): Block | undefined {
  const signature = textIn(providerData, 'signature')
  if (signature !== undefined) return { type: 'thinking', thinking, signature }
  const data = textIn(providerData, 'redacted')
  return data === undefined ? undefined : { type: 'redacted_thinking', data }
}

// The API refuses texts that contain only whitespace.
const textBlocks = (text: string): Block[] => (text.trim() === '' ? [] : [{ type: 'text', text }])

const IMAGES = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp'])

function imageBlocks({ data, mimeType }: Pick<ImagePart, 'data' | 'mimeType'>): Block[] {
  if (!IMAGES.has(mimeType)) return textBlocks(`[image, ${mimeType}: it cannot be shown]`)
  return [{ type: 'image', source: { type: 'base64', media_type: mimeType, data } }]
}

function resultBlock({ id, content, isError }: ToolResultPart): Block {
  const blocks = content.flatMap(contentBlocks)
  // The API requires content for a failed result.
  const filled = blocks.length === 0 && isError ? textBlocks('The tool failed.') : blocks
  return { type: 'tool_result', tool_use_id: wireId(id), content: filled, is_error: isError }
}

function contentBlocks(part: ContentPart): Block[] {
  if (part.type === 'text') return textBlocks(part.text)
  if (part.type === 'image') return imageBlocks(part)
  if (part.type === 'audio') return textBlocks(`[audio, ${part.mimeType}]`)
  return textBlocks(part.type === 'resource_link' ? `[${part.name}: ${part.uri}]` : jsonOf(part))
}

/** A resource, or a part of an unknown type from another server, as JSON. */
const jsonOf = (part: { readonly resource?: unknown }) => JSON.stringify(part.resource ?? part)

/** An id that the API accepts. Ids of other providers can have other characters; different ids stay different. */
const wireId = (id: string): string => (/^[\w-]+$/.test(id) ? id : `id_${Buffer.from(id).toString('base64url')}`)

/** Adds a result to each call of a cancelled turn, because the API refuses calls without results. */
function withResults(messages: Message[]): Message[] {
  for (let at = messages.length - 1; at >= 0; at--) {
    const calls = messages[at]!.role === 'assistant' ? messages[at]!.content.filter(block => block.type === 'tool_use') : []
    const next = messages[at + 1]
    const has = new Set(next?.content.map(block => block.tool_use_id))
    const missing = calls.filter(call => !has.has(call.id)).map(({ id }) => noResult(id))
    if (missing.length === 0) continue
    if (next) next.content.unshift(...missing)
    else messages.push({ role: 'user', content: missing })
  }
  return messages
}

const noResult = (id: Json | undefined): Block => ({
  type: 'tool_result',
  tool_use_id: id,
  content: 'The call was cancelled and has no result.',
  is_error: true,
})

const ROOT_UNIONS = ['anyOf', 'oneOf', 'allOf', 'not', 'if', 'then', 'else', 'enum', 'const']

/** A tool of the API. */
function wireTool({ name, description, parameters, strict, cacheHint }: ToolSpec): Tree {
  const tool = { ...described(description, isTree(parameters) ? parameters : {}), name }
  // A strict schema has the limits of a reply schema.
  const made = strict === true ? { ...tool, input_schema: narrow(tool.input_schema), strict } : tool
  return cacheHint === undefined ? made : marked(made, cacheHint)
}

/** The schema must be an object without unions at the top level; the description contains them instead. */
function described(description: string, schema: Tree): { readonly description: string; readonly input_schema: Tree } {
  const unions = ROOT_UNIONS.filter(word => Object.hasOwn(schema, word))
  if (unions.length === 0) return { description, input_schema: { ...schema, type: 'object' } }
  const kept = Object.fromEntries(Object.entries(schema).filter(([word]) => !unions.includes(word)))
  const notes = JSON.stringify(Object.fromEntries(unions.map(word => [word, schema[word]])))
  return {
    description: `${description}\n\nThe arguments must also fit this schema: ${notes}`.trim(),
    input_schema: { ...kept, type: 'object' },
  }
}

const LISTS = ['anyOf', 'oneOf', 'allOf']
const MAPS = ['properties', '$defs', 'definitions']
const KEPT = new Set(['$ref', 'type', 'title', 'description', 'const', 'enum', 'required', 'default'])
const FORMATS = new Set('date-time time date duration email hostname uri ipv4 ipv6 uuid'.split(' '))

/**
 * Converts a reply schema to the subset of JSON Schema that the API accepts: objects are closed, and unions are `anyOf`. Other constraints
 * become part of the description.
 */
function replySchema(schema: JsonSchema): Tree {
  return isTree(schema) ? narrow(schema) : {}
}

function narrow(schema: Tree): Tree {
  if (typeof schema.$ref === 'string') return { $ref: schema.$ref }
  const kept: Record<string, unknown> = {}
  const notes: string[] = []
  for (const [word, value] of Object.entries(schema)) {
    const inner = narrowedBelow(word, value)
    if (inner !== undefined) kept[word === 'oneOf' ? 'anyOf' : word] = inner
    else if (isKept(word, value)) kept[word] = value
    else if (word !== 'additionalProperties' && word !== '$schema') notes.push(`${word}: ${JSON.stringify(value)}`)
  }
  if (kept.type === 'object' || kept.properties) kept.additionalProperties = false
  if (notes.length > 0) kept.description = [kept.description, notes.join(', ')].filter(Boolean).join('\n\n')
  return kept
}

/** Narrows the schemas inside the value of a keyword. */
function narrowedBelow(word: string, value: unknown): unknown {
  if (MAPS.includes(word) && isTree(value)) return mapped(value)
  if (LISTS.includes(word) && Array.isArray(value)) return value.map(below)
  return word === 'items' && isTree(value) ? narrow(value) : undefined
}

const below = (value: unknown): unknown => (isTree(value) ? narrow(value) : value)
const mapped = (value: Tree): Tree => Object.fromEntries(Object.entries(value).map(([key, schema]) => [key, below(schema)]))

function isKept(word: string, value: unknown): boolean {
  if (word === 'format') return FORMATS.has(String(value))
  if (word === 'minItems') return value === 0 || value === 1
  return KEPT.has(word)
}
