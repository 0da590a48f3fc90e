import {
  BASE64,
  IMAGE_TYPES,
  isImageData,
  type Fields,
  type Losses,
  isFields,
  fieldInvalid,
  objectAt,
  listAt,
  textAt,
  nameAt,
  flagAt,
} from '@svc/api-types'
import type {
  CacheHint,
  ContentPart,
  ImagePart,
  Json,
  MessagePart,
  ModelMessage,
  ReasoningPart,
  TextPart,
  ToolResultPart,
} from '@svc/core/contracts'
import { cacheHintOf, given, kindAt } from './fields.ts'
import { type Opaque, opaqueOf, readOpaque } from './opaque.ts'

/** The messages of a request, and the system prompt before them. Throws INVALID_VALUE. */
export function messagesOf(body: Fields, losses: Losses): ModelMessage[] {
  const list = listAt(body.messages, 'messages')
  if (list.length === 0) throw fieldInvalid('messages', 'must have at least one message')
  const reader = new MessagesReader(losses)
  const system = systemOf(body.system, losses)
  const messages = list.flatMap((item, at) => reader.read(item, `messages.${at}`))
  return [...(system ? [system] : []), ...withUserLast(messages)]
}

/**
 * Puts a system message that follows one of the user before it: agents, and many model servers, take no system message at the end.
 * After results of tools, it becomes a message of the user. All messages are treated alike, not only the last, so that the next
 * request begins with the same messages.
 */
function withUserLast(messages: readonly ModelMessage[]): ModelMessage[] {
  const ordered: ModelMessage[] = []
  for (const message of messages) {
    const before = ordered.at(-1)?.role
    if (message.role !== 'system' || (before !== 'user' && before !== 'tool')) ordered.push(message)
    else if (before === 'user') ordered.splice(-1, 0, message)
    else ordered.push({ ...message, role: 'user' })
  }
  return ordered
}

/**
 * The start of a block in which some clients name themselves to their provider. It changes with each request, so it would defeat the
 * prompt caches of other models.
 */
const ATTRIBUTION = /^x-[a-z]+-billing-header:/

function systemOf(value: Json | undefined, losses: Losses): ModelMessage | undefined {
  if (value === undefined || value === null || value === '') return undefined
  if (typeof value === 'string') return { role: 'system', parts: [{ type: 'text', text: value }] }
  const parts = listAt(value, 'system').flatMap((item, at) => {
    const found = textBlock(objectAt(item, `system.${at}`), `system.${at}`, losses)
    if (at > 0 || !ATTRIBUTION.test(found[0]?.text ?? '')) return found
    losses.drop('system.0')
    return []
  })
  return parts.length === 0 ? undefined : { role: 'system', parts }
}

const TEXT = new Set(['type', 'text', 'cache_control', 'citations'])

/** A text block; nothing if it is empty. */
function textBlock(block: Fields, path: string, losses: Losses): readonly TextPart[] {
  if (block.type !== 'text') {
    losses.refuse(`${path}.type`, 'must be "text"')
    return []
  }
  const text = textAt(block.text, `${path}.text`)
  losses.dropUnknown(block, TEXT, 'text')
  if (given(block, 'citations') !== undefined) losses.drop('text.citations')
  return text === '' ? [] : [{ type: 'text', text, ...cacheHintOf(block, path, losses) }]
}

type Parts = readonly MessagePart[]

/** The kinds of blocks that a server runs for its model. Other models never see them. */
const OF_SERVER_TOOLS = /^(?:server_tool_use|mcp_tool_use|mcp_tool_result|container_upload|compaction|[a-z_]+_tool_result)$/

/** Reads messages in order, and knows the tool calls so far. */
class MessagesReader {
  readonly #losses: Losses
  /** Names of tools by the ids of their calls. */
  readonly #called = new Map<string, string>()
  /** Calls with a result. */
  readonly #answered = new Set<string>()

  constructor(losses: Losses) {
    this.#losses = losses
  }

  read(value: Json, path: string): ModelMessage[] {
    const message = objectAt(value, path)
    this.#losses.dropUnknown(message, MESSAGE, 'messages')
    const { role, content } = message
    const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : listAt(content, `${path}.content`)
    const place = `${path}.content`
    if (role === 'assistant') return filled(this.#assistant(blocks, place))
    if (role === 'user') return this.#user(blocks, place)
    if (role === 'system') return filled({ role, parts: this.#parts(blocks, place) })
    this.#losses.refuse(`${path}.role`, 'must be "user", "assistant" or "system"')
    return []
  }

  /** Results of tools, then the other parts: a model sees the results next to the calls. */
  #user(blocks: readonly Json[], place: string): ModelMessage[] {
    const parts = this.#parts(blocks, place)
    const results = parts.filter(part => part.type === 'tool_result')
    if (results.length === 0) return filled({ role: 'user', parts })
    return [
      { role: 'tool', parts: results },
      ...filled({ role: 'user', parts: parts.filter(part => part.type !== 'tool_result') }),
    ]
  }

  #parts(blocks: readonly Json[], place: string): Parts {
    return blocks.flatMap((item, at): Parts => {
      const path = `${place}.${at}`
      const block = objectAt(item, path)
      if (block.type === 'tool_result') return [this.#result(block, path)]
      return userParts(block, path, this.#losses)
    })
  }

  #result(block: Fields, path: string): ToolResultPart {
    const id = nameAt(block.tool_use_id, `${path}.tool_use_id`, LONGEST_ID)
    const tool = this.#called.get(id)
    if (tool === undefined) throw fieldInvalid(`${path}.tool_use_id`, `must be the id of an earlier tool_use, was "${shown(id)}"`)
    if (this.#answered.has(id)) throw fieldInvalid(`${path}.tool_use_id`, `has a result already: "${shown(id)}"`)
    this.#answered.add(id)
    this.#losses.dropUnknown(block, RESULT, 'tool_result')
    const failed = given(block, 'is_error')
    const isError = failed !== undefined && flagAt(failed, `${path}.is_error`)
    const content = resultContent(block.content, `${path}.content`, this.#losses)
    return { type: 'tool_result', id, tool, content, isError, ...cacheHintOf(block, path, this.#losses) }
  }

  #assistant(blocks: readonly Json[], place: string): ModelMessage {
    const own = ownDataOf(blocks)
    const parts = blocks.flatMap((item, at): Parts => {
      const path = `${place}.${at}`
      const block = objectAt(item, path)
      const kind = kindAt(block, path)
      switch (kind) {
        case 'text':
          return textBlock(block, path, this.#losses)
        case 'thinking':
        case 'redacted_thinking':
          return thought(block, path, own.blocks.get(item), this.#losses)
        case 'tool_use':
          return [this.#call(block, path, own)]
        default:
          this.#dropBlock(kind, path)
          return []
      }
    })
    const { provider, message } = own
    return {
      role: 'assistant',
      parts,
      ...(message === undefined ? {} : { providerData: message }),
      ...(provider === undefined ? {} : { provider }),
    }
  }

  #call(block: Fields, path: string, own: OwnData): MessagePart {
    const id = nameAt(block.id, `${path}.id`, LONGEST_ID)
    const tool = nameAt(block.name, `${path}.name`)
    // some models begin their ids anew with each answer
    const isOpen = this.#called.has(id) && !this.#answered.delete(id)
    if (isOpen) throw fieldInvalid(`${path}.id`, `must be unique, but "${shown(id)}" is the id of another tool_use`)
    this.#called.set(id, tool)
    this.#losses.dropUnknown(block, CALL, 'tool_use')
    const providerData = own.calls.get(id)
    const args = objectAt(block.input ?? {}, `${path}.input`)
    return { type: 'tool_call', id, tool, arguments: args, ...(providerData === undefined ? {} : { providerData }) }
  }

  #dropBlock(kind: string, path: string): void {
    if (OF_SERVER_TOOLS.test(kind)) this.#losses.drop(kind)
    else this.#losses.refuse(`${path}.type`, `"${shown(kind)}" is not supported in a message of the assistant`)
  }
}

/** The opaque data in one message. All of it is of the provider that wrote the message. */
interface OwnData {
  readonly provider: string | undefined
  readonly message: Json | undefined
  /** Data of tool calls by their ids. */
  readonly calls: ReadonlyMap<string, Json>
  /** The data of each block of reasoning that has some. */
  readonly blocks: ReadonlyMap<Json, Opaque>
}

/** Reads the opaque data of a message. Data of another provider than that of the first block is left out. */
function ownDataOf(blocks: readonly Json[]): OwnData {
  let provider: string | undefined
  let message: Json | undefined
  const calls = new Map<string, Json>()
  const read = new Map<Json, Opaque>()
  for (const block of blocks) {
    const opaque = isFields(block) ? readOpaque(opaqueOf(block)) : undefined
    if (!opaque || (provider ??= opaque.provider) !== opaque.provider) continue
    read.set(block, opaque)
    message ??= opaque.message
    for (const [id, data] of Object.entries(opaque.calls ?? {})) if (data !== undefined) calls.set(id, data)
  }
  return { provider, message, calls, blocks: read }
}

const MESSAGE = new Set(['role', 'content'])
const RESULT = new Set(['type', 'tool_use_id', 'content', 'is_error', 'cache_control'])
const CALL = new Set(['type', 'id', 'name', 'input', 'caller'])
const LONGEST_ID = 4096

const shown = (text: string) => (text.length > 100 ? `${text.slice(0, 100)}…` : text)

const filled = (message: ModelMessage): ModelMessage[] => (message.parts.length === 0 ? [] : [message])

/** A block of reasoning. One that svc has not written is of another server, and cannot be read by this model. */
function thought(block: Fields, path: string, opaque: Opaque | undefined, losses: Losses): readonly ReasoningPart[] {
  const written = block.type === 'redacted_thinking' ? '' : textAt(block.thinking, `${path}.thinking`)
  if (!opaque) {
    losses.drop(block.type === 'thinking' ? 'thinking' : 'redacted_thinking')
    return []
  }
  const { data, text = written } = opaque
  if (text === '' && data === undefined) return []
  return [{ type: 'reasoning', text, ...(data === undefined ? {} : { providerData: data }) }]
}

/** The parts of a block in a message of the user. */
function userParts(block: Fields, path: string, losses: Losses): Parts {
  const kind = kindAt(block, path)
  switch (kind) {
    case 'text':
      return textBlock(block, path, losses)
    case 'image':
      return imageParts(block, path, losses)
    case 'document':
      return documentParts(block, path, losses)
    case 'search_result':
      return [{ type: 'text', text: searchText(block, path, losses), ...cacheHintOf(block, path, losses) }]
    default:
      if (!OF_SERVER_TOOLS.test(kind)) return leftOut(losses, `${path}.type`, `"${shown(kind)}" is not supported by this model`)
      losses.drop(kind)
      return []
  }
}

/**
 * A note in place of content that is refused. A model sees it only where it answers in place of a server of this API that could not:
 * such a server gets the content itself.
 */
function leftOut(losses: Losses, field: string, reason: string): readonly TextPart[] {
  losses.refuse(field, reason)
  return [{ type: 'text', text: '[content was left out: the model cannot read it]' }]
}

const IMAGE = new Set(['type', 'source', 'cache_control'])
const URL_TEXT = /^https?:\/\/\S{1,8000}$/i

function imageParts(block: Fields, path: string, losses: Losses): Parts {
  losses.dropUnknown(block, IMAGE, 'image')
  const hint = cacheHintOf(block, path, losses)
  const source = objectAt(block.source, `${path}.source`)
  if (source.type === 'base64') {
    return imageOf(source, `${path}.source`, losses).map(part => ({ ...part, ...hint }))
  }
  if (source.type === 'url') {
    const url = textAt(source.url, `${path}.source.url`)
    if (!URL_TEXT.test(url)) throw fieldInvalid(`${path}.source.url`, 'must be an http or https address')
    return [{ type: 'image_url', url, ...hint }]
  }
  return leftOut(losses, `${path}.source.type`, 'must be "base64" or "url" for this model')
}

/** A checked image. A model gets no bytes that are no image of their type. */
function imageOf({ media_type, data }: Fields, path: string, losses: Losses): readonly (ImagePart | TextPart)[] {
  const mimeType = textAt(media_type, `${path}.media_type`)
  const base64 = textAt(data, `${path}.data`)
  if (!IMAGE_TYPES.includes(mimeType)) return leftOut(losses, `${path}.media_type`, `must be one of ${IMAGE_TYPES.join(', ')}`)
  if (!BASE64.test(base64)) return leftOut(losses, `${path}.data`, 'must be base64')
  if (!isImageData(mimeType, base64)) return leftOut(losses, `${path}.data`, `is not an image of the type ${mimeType}`)
  return [{ type: 'image', data: base64, mimeType }]
}

const DOCUMENT = new Set(['type', 'source', 'title', 'context', 'citations', 'cache_control'])

function documentParts(block: Fields, path: string, losses: Losses): Parts {
  losses.dropUnknown(block, DOCUMENT, 'document')
  if (isFields(block.citations) && block.citations.enabled === true) losses.drop('document.citations')
  const hint = cacheHintOf(block, path, losses)
  const source = objectAt(block.source, `${path}.source`)
  const [title, context] = [noteAt(block, 'title', path), noteAt(block, 'context', path)]
  const place = `${path}.source`
  if (source.type === 'base64') {
    const data = textAt(source.data, `${place}.data`)
    const mimeType = nameAt(source.media_type, `${place}.media_type`)
    if (!BASE64.test(data)) throw fieldInvalid(`${place}.data`, 'must be base64')
    const file: MessagePart = { type: 'file', data, mimeType, ...(title === undefined ? {} : { name: title }), ...hint }
    return context === undefined ? [file] : [{ type: 'text', text: context }, file]
  }
  const head = [title, context].filter(text => text !== undefined)
  if (source.type === 'text')
    return [{ type: 'text', text: [...head, textAt(source.data, `${place}.data`)].join('\n\n'), ...hint }]
  if (source.type === 'content') return contentSource(source, head, { place, hint, losses })
  return leftOut(losses, `${place}.type`, 'must be "base64", "text" or "content" for this model')
}

interface SourcePlace {
  readonly place: string
  readonly hint: { readonly cacheHint?: CacheHint }
  readonly losses: Losses
}

/** The blocks in a document. The last part has the cache hint of the document. */
function contentSource({ content }: Fields, head: readonly string[], { place, hint, losses }: SourcePlace): Parts {
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : listAt(content, `${place}.content`)
  const inner = blocks.flatMap((item, at) => {
    const block = objectAt(item, `${place}.content.${at}`)
    if (block.type !== 'text' && block.type !== 'image')
      throw fieldInvalid(`${place}.content.${at}.type`, 'must be "text" or "image"')
    return userParts(block, `${place}.content.${at}`, losses)
  })
  const parts = [...head.map((text): MessagePart => ({ type: 'text', text })), ...inner]
  const last = parts.at(-1)
  return last === undefined ? [] : [...parts.slice(0, -1), { ...last, ...hint } as MessagePart]
}

const noteAt = (block: Fields, name: string, path: string): string | undefined => {
  const value = given(block, name)
  return value === undefined || value === '' ? undefined : textAt(value, `${path}.${name}`)
}

const SEARCH = new Set(['type', 'source', 'title', 'content', 'citations', 'cache_control'])

/** A search result of the client's own search as text. */
function searchText(block: Fields, path: string, losses: Losses): string {
  losses.dropUnknown(block, SEARCH, 'search_result')
  if (isFields(block.citations) && block.citations.enabled === true) losses.drop('search_result.citations')
  const texts = listAt(block.content, `${path}.content`).map((item, at) => {
    const { text } = objectAt(item, `${path}.content.${at}`)
    return textAt(text, `${path}.content.${at}.text`)
  })
  return [textAt(block.title, `${path}.title`), textAt(block.source, `${path}.source`), ...texts].join('\n')
}

function resultContent(content: Json | undefined, path: string, losses: Losses): readonly ContentPart[] {
  if (content === undefined || content === null || content === '') return []
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return listAt(content, path).flatMap((item, at): readonly ContentPart[] => {
    const place = `${path}.${at}`
    const block = objectAt(item, place)
    if (given(block, 'cache_control') !== undefined) losses.drop('tool_result.content.cache_control')
    if (block.type === 'image') return resultImage(block, place, losses)
    if (block.type === 'tool_reference') {
      losses.drop('tool_reference')
      return []
    }
    return userParts(block, place, losses).flatMap((part): readonly ContentPart[] => {
      if (part.type === 'text') return [{ type: 'text', text: part.text }]
      return leftOut(losses, `${place}.source.type`, 'must be "text" in a tool_result for this model')
    })
  })
}

function resultImage(block: Fields, path: string, losses: Losses): readonly ContentPart[] {
  const source = objectAt(block.source, `${path}.source`)
  if (source.type === 'base64') return imageOf(source, `${path}.source`, losses)
  return leftOut(losses, `${path}.source.type`, 'must be "base64" in a tool_result for this model')
}
