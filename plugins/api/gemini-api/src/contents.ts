import {
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
} from '@svc/api-types'
import type { ContentPart, Json, MessagePart, ModelMessage, TextPart, ToolResultPart } from '@svc/core/contracts'
import { given, shown } from './fields.ts'
import { isOpaque, type Opaque, readOpaque } from './opaque.ts'

type Parts = readonly MessagePart[]

/** The messages of a request, and the system instruction before them. Throws INVALID_VALUE. */
export function messagesOf(body: Fields, losses: Losses): ModelMessage[] {
  const list = listAt(given(body, 'contents'), 'contents')
  if (list.length === 0) throw fieldInvalid('contents', 'must have at least one content')
  const reader = new ContentsReader(losses)
  for (const [at, item] of list.entries()) reader.read(objectAt(item, `contents[${at}]`), `contents[${at}]`)
  const messages = reader.end()
  if (messages.length === 0) throw fieldInvalid('contents', 'must have at least one part that is not empty')
  return [...systemOf(given(body, 'systemInstruction'), losses), ...messages]
}

function systemOf(value: Json | undefined, losses: Losses): readonly ModelMessage[] {
  if (value === undefined) return []
  const path = 'systemInstruction'
  const content = typeof value === 'string' ? { parts: [{ text: value }] } : objectAt(value, path)
  losses.dropUnknown(content, CONTENT, path)
  const parts = partsIn(content, path).flatMap((item, at): readonly TextPart[] => {
    const place = `${path}.parts[${at}]`
    const value = given(objectAt(item, place), 'text')
    if (value === undefined) return leftOut(losses, place, 'must have a text')
    const text = textAt(value, `${place}.text`)
    return text === '' ? [] : [{ type: 'text', text }]
  })
  return parts.length === 0 ? [] : [{ role: 'system', parts }]
}

const CONTENT = new Set(['role', 'parts'])

/** The parts of a content. Many clients write one part without a list. */
function partsIn(content: Fields, path: string): readonly Json[] {
  const parts = given(content, 'parts')
  if (parts === undefined) return []
  return isFields(parts) ? [parts] : listAt(parts, `${path}.parts`)
}

/** A call without a result. */
interface OpenCall {
  readonly id: string
  readonly tool: string
  /** Whether the client knows the id. */
  readonly isNamed: boolean
}

/** A message of the model while its contents are read: those of a stream are several. */
interface OpenMessage {
  readonly parts: MessagePart[]
  /** Thoughts without data of a provider. */
  readonly plain: Set<MessagePart>
  provider: string | undefined
  message: Json | undefined
}

/** Reads contents in order, and knows the calls so far. */
class ContentsReader {
  readonly #losses: Losses
  readonly #messages: ModelMessage[] = []
  /** Calls without a result, in order. */
  #calls: OpenCall[] = []
  readonly #ids = new Set<string>()
  #open: OpenMessage | undefined

  constructor(losses: Losses) {
    this.#losses = losses
  }

  read(content: Fields, path: string): void {
    this.#losses.dropUnknown(content, CONTENT, 'contents')
    const role = textAt(given(content, 'role') ?? 'user', `${path}.role`)
    const parts = partsIn(content, path).map((item, at) => objectAt(item, `${path}.parts[${at}]`))
    if (role === 'model') {
      this.#open ??= { parts: [], plain: new Set(), provider: undefined, message: undefined }
      for (const [at, part] of parts.entries()) this.#modelPart(this.#open, part, `${path}.parts[${at}]`)
    } else if (USER_ROLES.has(role)) {
      this.#close()
      this.#user(parts, path)
    } else throw fieldInvalid(`${path}.role`, `must be "user" or "model", was "${shown(role)}"`)
  }

  end(): readonly ModelMessage[] {
    this.#close()
    return this.#messages
  }

  /** Results, then the other parts: a model sees the results next to the calls. */
  #user(fields: readonly Fields[], path: string): void {
    const parts = fields.flatMap((part, at) => {
      const place = `${path}.parts[${at}]`
      return kindOf(part, place) === 'functionResponse' ? [this.#result(part, place)] : userParts(part, place, this.#losses)
    })
    const results = parts.filter(part => part.type === 'tool_result')
    const others = parts.filter(part => part.type !== 'tool_result')
    if (results.length > 0) this.#messages.push({ role: 'tool', parts: results })
    if (others.length > 0) this.#messages.push({ role: 'user', parts: others })
  }

  #result(part: Fields, path: string): ToolResultPart {
    const place = `${path}.functionResponse`
    const fields = objectAt(given(part, 'functionResponse'), place)
    this.#losses.dropUnknown(fields, RESPONSE, 'functionResponse')
    const tool = nameAt(fields.name, `${place}.name`)
    const call = this.#callFor(given(fields, 'id'), tool, place)
    const response = objectAt(given(fields, 'response') ?? {}, `${place}.response`)
    const media = listAt(given(fields, 'parts') ?? [], `${place}.parts`)
    const shownMedia = media.flatMap((item, at) => resultMedia(item, `${place}.parts[${at}]`, this.#losses))
    const words = resultOf(response)
    return {
      type: 'tool_result',
      id: call.id,
      tool: call.tool,
      content: [...(words === '' ? [] : [{ type: 'text', text: words } as const]), ...shownMedia],
      isError: isLone(response, 'error'),
    }
  }

  /** Takes the call that a result is of: that with its id, else the first one without an id that has its name. */
  #callFor(id: Json | undefined, tool: string, path: string): OpenCall {
    const named = id === undefined || id === '' ? undefined : nameAt(id, `${path}.id`, LONGEST_ID)
    const call =
      this.#calls.find(one => named !== undefined && one.id === named) ??
      this.#calls.find(one => one.tool === tool && !(named !== undefined && one.isNamed))
    if (!call) throw fieldInvalid(path, `must be of an earlier functionCall without a response, was of "${shown(named ?? tool)}"`)
    this.#calls = this.#calls.filter(one => one !== call)
    return call
  }

  #modelPart(open: OpenMessage, part: Fields, path: string): void {
    const kind = kindOf(part, path)
    const callData = this.#takeOpaque(open, given(part, 'thoughtSignature'))
    if (kind === 'text') this.#modelText(open, part, path)
    else if (kind === 'functionCall') open.parts.push(this.#call(part, path, callData))
    else if (OF_SERVER_TOOLS.has(kind)) this.#losses.drop(kind)
    else if (kind !== '') this.#losses.refuse(`${path}.${kind}`, 'is not supported in a content of the model')
  }

  #modelText(open: OpenMessage, part: Fields, path: string): void {
    const text = textAt(given(part, 'text'), `${path}.text`)
    this.#losses.dropUnknown(part, TEXT, 'parts')
    if (text === '') return
    const last = open.parts.at(-1)
    if (given(part, 'thought') === true) {
      const joined = last?.type === 'reasoning' && open.plain.delete(last) ? (open.parts.pop(), last.text + text) : text
      const thought: MessagePart = { type: 'reasoning', text: joined }
      open.plain.add(thought)
      open.parts.push(thought)
    } else if (last?.type === 'text') open.parts[open.parts.length - 1] = { type: 'text', text: last.text + text }
    else open.parts.push({ type: 'text', text })
  }

  /** Reads the data in a signature, and returns that of the call. Data of another provider than that of the first is left out. */
  #takeOpaque(open: OpenMessage, signature: Json | undefined): Json | undefined {
    if (signature === undefined || signature === '') return undefined
    const opaque = readOpaque(signature)
    if (!opaque || (open.provider ??= opaque.provider) !== opaque.provider) {
      this.#losses.drop('thoughtSignature')
      return undefined
    }
    return takeEntries(open, opaque)
  }

  #call(part: Fields, path: string, providerData: Json | undefined): MessagePart {
    const place = `${path}.functionCall`
    const fields = objectAt(given(part, 'functionCall'), place)
    this.#losses.dropUnknown(fields, CALL, 'functionCall')
    const tool = nameAt(fields.name, `${place}.name`)
    const given_ = given(fields, 'id')
    const isNamed = given_ !== undefined && given_ !== ''
    const id = isNamed ? nameAt(given_, `${place}.id`, LONGEST_ID) : this.#newId()
    if (this.#ids.has(id))
      throw fieldInvalid(`${place}.id`, `must be unique, but "${shown(id)}" is the id of another functionCall`)
    this.#ids.add(id)
    this.#calls.push({ id, tool, isNamed })
    const args = objectAt(given(fields, 'args') ?? {}, `${place}.args`)
    return { type: 'tool_call', id, tool, arguments: args, ...(providerData === undefined ? {} : { providerData }) }
  }

  /** An id that is the same in the next request, which begins with the same contents. */
  #newId(): string {
    for (let at = this.#ids.size + 1; ; at++) if (!this.#ids.has(`call_${at}`)) return `call_${at}`
  }

  #close(): void {
    if (!this.#open) return
    const { parts, plain, provider, message } = this.#open
    this.#open = undefined
    // the data of a provider has the text of its reasoning too
    const hasData = parts.some(part => part.type === 'reasoning' && !plain.has(part))
    const kept = hasData ? parts.filter(part => !plain.has(part)) : parts
    if (kept.length === 0) return
    this.#messages.push({
      role: 'assistant',
      parts: kept,
      ...(message === undefined ? {} : { providerData: message }),
      ...(provider === undefined ? {} : { provider }),
    })
  }
}

function takeEntries(open: OpenMessage, { entries }: Opaque): Json | undefined {
  let callData: Json | undefined
  for (const { of, text = '', data } of entries) {
    if (of === 'call') callData = data
    else if (of === 'message') open.message = data
    else open.parts.push({ type: 'reasoning', text, ...(data === undefined ? {} : { providerData: data }) })
  }
  return callData
}

/** Whether a body has a signature that svc has written. */
export function hasOpaque(body: Fields): boolean {
  const contents = given(body, 'contents')
  if (!Array.isArray(contents)) return false
  return contents.some(content => {
    const parts = isFields(content) ? given(content, 'parts') : undefined
    const list: readonly Json[] = Array.isArray(parts) ? parts : [parts ?? null]
    return list.some(part => isFields(part) && isOpaque(given(part, 'thoughtSignature')))
  })
}

/** `function` and `tool` are older names for the role of results. */
const USER_ROLES: ReadonlySet<string> = new Set(['user', '', 'function', 'tool'])
const RESPONSE = new Set(['id', 'name', 'response', 'parts'])
const CALL = new Set(['id', 'name', 'args'])
const TEXT = new Set(['text', 'thought', 'thoughtSignature'])
const LONGEST_ID = 4096

/** Parts that a server of this API makes with its own tools. Other models never see them. */
const OF_SERVER_TOOLS: ReadonlySet<string> = new Set(['executableCode', 'codeExecutionResult', 'toolCall', 'toolResponse'])
const KINDS = ['text', 'functionCall', 'functionResponse', 'inlineData', 'fileData', ...OF_SERVER_TOOLS] as const

/** The kind of a part; an empty text for one that only has a signature. */
function kindOf(part: Fields, path: string): string {
  const kinds = KINDS.filter(kind => given(part, kind) !== undefined)
  if (kinds.length > 1) throw fieldInvalid(path, `must have one of ${kinds.join(', ')}`)
  if (kinds[0] !== undefined) return kinds[0]
  if (given(part, 'thoughtSignature') !== undefined) return ''
  throw fieldInvalid(path, 'must have a text, inlineData, fileData, functionCall or functionResponse')
}

const PART = new Set(['text', 'inlineData', 'fileData', 'thought', 'thoughtSignature'])

function userParts(part: Fields, path: string, losses: Losses): Parts {
  losses.dropUnknown(part, PART, 'parts')
  const kind = kindOf(part, path)
  if (kind === 'text') {
    const text = textAt(given(part, 'text'), `${path}.text`)
    return text === '' ? [] : [{ type: 'text', text }]
  }
  if (kind === 'inlineData') return mediaOf(given(part, 'inlineData'), `${path}.inlineData`, losses)
  if (kind === 'fileData') return fileOf(given(part, 'fileData'), `${path}.fileData`, losses)
  if (kind === '') return []
  if (OF_SERVER_TOOLS.has(kind)) losses.drop(kind)
  else losses.refuse(`${path}.${kind}`, 'is not supported in a content of the user')
  return []
}

/**
 * A note in place of content that is refused. A model sees it only where it answers in place of a server of this API that could not:
 * such a server gets the content itself.
 */
function leftOut(losses: Losses, field: string, reason: string): readonly TextPart[] {
  losses.refuse(field, reason)
  return [{ type: 'text', text: '[content was left out: the model cannot read it]' }]
}

const BLOB = new Set(['mimeType', 'data', 'displayName'])
const MIME = /^[\w.+-]{1,100}\/[\w.+-]{1,100}$/
const BASE64 = /^[A-Za-z0-9+/_-]+={0,2}$/
/** Data of a part by its type: an image, sound, or a file. A model gets no bytes that are no image of their type. */
function mediaOf(value: Json | undefined, path: string, losses: Losses): Parts {
  const blob = objectAt(value, path)
  losses.dropUnknown(blob, BLOB, 'inlineData')
  const mimeType = mimeAt(blob, path)
  const data = base64At(given(blob, 'data'), `${path}.data`)
  if (mimeType.startsWith('image/')) {
    if (!IMAGE_TYPES.includes(mimeType)) return leftOut(losses, `${path}.mimeType`, `must be one of ${IMAGE_TYPES.join(', ')}`)
    if (!isImageData(mimeType, data)) throw fieldInvalid(`${path}.data`, `is not an image of the type ${mimeType}`)
    return [{ type: 'image', data, mimeType }]
  }
  if (mimeType.startsWith('audio/')) return [{ type: 'audio', data, mimeType }]
  const name = given(blob, 'displayName')
  return [{ type: 'file', data, mimeType, ...(name === undefined ? {} : { name: nameAt(name, `${path}.displayName`, 1_000) }) }]
}

function mimeAt(fields: Fields, path: string): string {
  const [type = ''] = textAt(given(fields, 'mimeType'), `${path}.mimeType`).toLowerCase().split(';', 1)
  if (!MIME.test(type)) throw fieldInvalid(`${path}.mimeType`, 'must be a media type like image/png')
  return type
}

/** The API takes both alphabets of base64. svc has one. */
function base64At(value: Json | undefined, path: string): string {
  const data = textAt(value, path)
  if (!BASE64.test(data)) throw fieldInvalid(path, 'must be base64')
  return data.replaceAll('-', '+').replaceAll('_', '/')
}

const FILE = new Set(['mimeType', 'fileUri', 'displayName'])
const ADDRESS = /^https?:\/\/\S{1,8000}$/i
/** Files that a client has uploaded to Google. */
const UPLOADED = /^https:\/\/generativelanguage\.googleapis\.com\//i

/** An image at an address. svc does not open it. */
function fileOf(value: Json | undefined, path: string, losses: Losses): Parts {
  const file = objectAt(value, path)
  losses.dropUnknown(file, FILE, 'fileData')
  const url = textAt(given(file, 'fileUri'), `${path}.fileUri`)
  const type = given(file, 'mimeType') === undefined ? 'image/jpeg' : mimeAt(file, path)
  if (!ADDRESS.test(url) || UPLOADED.test(url))
    return leftOut(losses, `${path}.fileUri`, 'must be an http or https address for this model')
  if (!type.startsWith('image/')) return leftOut(losses, `${path}.mimeType`, 'must be an image for this model')
  return [{ type: 'image_url', url }]
}

const isLone = (response: Fields, name: string) => {
  const keys = Object.keys(response)
  return keys.length === 1 && keys[0] === name
}

/** The words of a response. `output`, `result` and `error` are the usual names of its only field. */
function resultOf(response: Fields): string {
  for (const name of ['output', 'result', 'error'])
    if (isLone(response, name)) {
      const value = response[name]
      return typeof value === 'string' ? value : JSON.stringify(value ?? null)
    }
  return JSON.stringify(response)
}

const RESULT_PART = new Set(['inlineData'])

function resultMedia(item: Json, path: string, losses: Losses): readonly ContentPart[] {
  const part = objectAt(item, path)
  losses.dropUnknown(part, RESULT_PART, 'functionResponse.parts')
  if (given(part, 'inlineData') === undefined) return leftOut(losses, path, 'must be inlineData for this model')
  return mediaOf(given(part, 'inlineData'), `${path}.inlineData`, losses).flatMap((media): readonly ContentPart[] => {
    if (media.type === 'text' || media.type === 'image' || media.type === 'audio') return [media]
    return leftOut(losses, `${path}.inlineData.mimeType`, 'must be an image or sound in a functionResponse for this model')
  })
}
