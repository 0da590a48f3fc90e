import type { JsonSchema } from '@svc/core'
import type {
  ContentPart,
  ImagePart,
  Json,
  MessagePart,
  ModelMessage,
  ModelRequest,
  ReasoningPart,
  TextPart,
  ToolResultPart,
  ToolSpec,
} from '@svc/core/contracts'
import { isTree, perTools, textIn, type Tree } from '@svc/provider-http'

/** The API requires an output limit. This is the default if neither the request nor the model has one. */
const DEFAULT_OUTPUT = 8192

/** The body of `POST /v1/messages`. `output`: the output limit of the model, if known. `caches`: marks the parts of the prompt that repeat. */
export function bodyOf(request: ModelRequest, output?: number, caches = false): Tree {
  const { model, messages, temperature, maxTokens, responseSchema, gathered } = request
  const system = systemOf(messages)
  return {
    model,
    max_tokens: maxTokens ?? output ?? DEFAULT_OUTPUT,
    stream: gathered !== true,
    ...(system === undefined ? {} : { system: caches ? [marked({ type: 'text', text: system })] : system }),
    messages: caches ? withMarks(messagesOf(messages)) : messagesOf(messages),
    ...toolsOf(request, caches),
    ...(temperature === undefined ? {} : { temperature }),
    ...(responseSchema === undefined
      ? {}
      : { output_config: { format: { type: 'json_schema', schema: replySchema(responseSchema) } } }),
  }
}

/** Ends a part of the prompt that the API caches. It ignores the mark of a part that is too short. */
const marked = <T extends object>(block: T) => ({ ...block, cache_control: { type: 'ephemeral' } })

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

function toolsOf({ tools = [], toolChoice = 'auto', messages }: ModelRequest, caches: boolean): Tree {
  // The API requires the tools of earlier calls, even if the request offers none.
  if (tools.length === 0) {
    const called = calledTools(messages)
    return called.length === 0 ? {} : { tools: called.map(wireTool), tool_choice: { type: 'none' } }
  }
  return { tools: caches ? markedTools(tools) : wireTools(tools), tool_choice: choiceOf(toolChoice) }
}

const wireTools = perTools(tools => tools.map(wireTool))
const markedTools = perTools(tools => wireTools(tools).map((tool, at) => (at === tools.length - 1 ? marked(tool) : tool)))

const CHOICES = { auto: { type: 'auto' }, none: { type: 'none' }, required: { type: 'any' } } as const

const choiceOf = (choice: NonNullable<ModelRequest['toolChoice']>) =>
  typeof choice === 'string' ? CHOICES[choice] : { type: 'tool', name: choice.tool }

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

/** The text of all system messages; `undefined` if they are empty. */
function systemOf(messages: readonly ModelMessage[]): string | undefined {
  const texts = messages
    .filter(message => message.role === 'system')
    .flatMap(message => message.parts.filter(isText).map(part => part.text))
  return texts.join('\n\n') || undefined
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

function userBlocks(parts: readonly MessagePart[]): Block[] {
  return parts.flatMap((part): Block[] => {
    if (part.type === 'text') return textBlocks(part.text)
    if (part.type === 'image') return imageBlocks(part)
    return part.type === 'tool_result' ? [resultBlock(part)] : []
  })
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
    if (part.type === 'text') blocks.push(...textBlocks(part.text))
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

/** A tool of the API. Its schema must be an object without unions at the top level; the description contains them instead. */
function wireTool({ name, description, parameters }: ToolSpec): Tree {
  const schema: Tree = isTree(parameters) ? parameters : {}
  const unions = ROOT_UNIONS.filter(word => Object.hasOwn(schema, word))
  if (unions.length === 0) return { name, description, input_schema: { ...schema, type: 'object' } }
  const kept = Object.fromEntries(Object.entries(schema).filter(([word]) => !unions.includes(word)))
  const notes = JSON.stringify(Object.fromEntries(unions.map(word => [word, schema[word]])))
  return {
    name,
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
