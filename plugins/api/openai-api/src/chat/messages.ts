import type {
  CacheHint,
  ContentPart,
  Json,
  MessagePart,
  ModelMessage,
  ReasoningPart,
  ToolCallPart,
  ToolResultPart,
} from '@svc/core/contracts'
import { invalidParam } from '../errors.ts'
import { addName, isObject, isSet, type Leftovers, listIn, objectIn, parsedJson, textIn, type Wire, wordIn } from '../fields.ts'
import { decodeOpaque, type OpaqueData } from '../opaque.ts'

/** The messages of a request. */
interface Reading {
  readonly leftovers: Leftovers
  /** The tools of the calls so far, by id. */
  readonly calls: Map<string, string>
  readonly messages: ModelMessage[]
}

/** Reads the messages of a chat completion. Throws INVALID_VALUE. */
export function readMessages(value: Json | undefined, leftovers: Leftovers): readonly ModelMessage[] {
  const items = listIn(value, 'messages')
  if (items.length === 0) throw invalidParam('messages', 'must not be empty')
  const reading: Reading = { leftovers, calls: new Map(), messages: [] }
  for (const [at, item] of items.entries()) {
    const param = `messages[${at}]`
    const message = objectIn(item, param)
    const role = textIn(message.role, `${param}.role`)
    if (Object.hasOwn(READERS, role)) READERS[role]!(message, param, reading)
    else addName(leftovers.foreign, `${param}.role`)
  }
  return reading.messages
}

type Reader = (message: Wire, param: string, reading: Reading) => void

const instruct: Reader = ({ role: _role, content, ...rest }, param, { messages, leftovers }) => {
  noteRest(rest, leftovers)
  messages.push({ role: 'system', parts: partsOf(content, `${param}.content`, TEXT_ONLY, leftovers) })
}

const READERS: Readonly<Record<string, Reader>> = {
  system: instruct,
  developer: instruct,
  user({ role: _role, content, ...rest }, param, { messages, leftovers }) {
    noteRest(rest, leftovers)
    messages.push({ role: 'user', parts: partsOf(content, `${param}.content`, ALL_PARTS, leftovers) })
  },
  assistant: readAssistant,
  tool: readResult,
}

/** Notes the fields of a message that svc has no use for. Empty lists are in messages that clients send back. */
export function noteRest(rest: Wire, { dropped }: Leftovers, prefix = 'messages'): void {
  for (const name in rest) {
    const value = rest[name]
    if (isSet(value) && !(Array.isArray(value) && value.length === 0)) addName(dropped, `${prefix}.${name}`)
  }
}

function readAssistant(
  { role: _role, content, refusal, tool_calls, reasoning_content, reasoning, reasoning_details, ...rest }: Wire,
  param: string,
  { messages, leftovers, calls: known }: Reading
): void {
  noteRest(rest, leftovers)
  const written = isSet(tool_calls) ? listIn(tool_calls, `${param}.tool_calls`) : []
  const opaque = opaqueIn(reasoning_details, written, leftovers)
  const calls = written.flatMap((call, at) => callOf(call, `${param}.tool_calls[${at}]`, opaque, leftovers))
  for (const { id, tool } of calls) known.set(id, tool)
  const thoughts = reasoningOf(opaque, isSet(reasoning_content) ? reasoning_content : reasoning)
  const text = isSet(content) ? partsOf(content, `${param}.content`, ASSISTANT_PARTS, leftovers) : []
  const refused: MessagePart[] =
    isSet(refusal) && refusal !== '' ? [{ type: 'text', text: textIn(refusal, `${param}.refusal`), refusal: true }] : []
  const whole = opaque.find(({ of }) => of === 'message')
  const provider = opaque[0]?.provider
  messages.push({
    role: 'assistant',
    parts: [...thoughts, ...text, ...refused, ...calls],
    ...(whole ? { providerData: whole.data } : {}),
    ...(provider === undefined ? {} : { provider }),
  })
}

/** The data of a provider in a message and its calls. That of other servers is only for a server of the same kind. */
function opaqueIn(details: Json | undefined, calls: readonly Json[], { dropped }: Leftovers): readonly OpaqueData[] {
  const packed = new Set<Json | undefined>()
  for (const detail of Array.isArray(details) ? details : []) packed.add(isObject(detail) ? detail.data : undefined)
  const inDetails = packed.size
  for (const call of calls) if (isObject(call) && isSet(call.extra_content)) packed.add(signatureIn(call.extra_content))
  const found: OpaqueData[] = []
  let at = 0
  for (const text of packed) {
    const data = decodeOpaque(text)
    if (data) found.push(...data)
    else addName(dropped, at < inDetails ? 'messages.reasoning_details' : 'messages.tool_calls.extra_content')
    at++
  }
  // a message has one author
  return found.filter(({ provider }) => provider === found[0]!.provider)
}

function signatureIn(extra: Json): Json | undefined {
  const google = isObject(extra) ? extra.google : undefined
  return isObject(google) ? google.thought_signature : undefined
}

function reasoningOf(opaque: readonly OpaqueData[], text: Json | undefined): ReasoningPart[] {
  const kept = opaque.filter(({ of }) => of === 'reasoning')
  if (kept.length > 0)
    return kept.map(({ text: thought = '', data }) => ({ type: 'reasoning', text: thought, providerData: data }))
  return typeof text === 'string' && text !== '' ? [{ type: 'reasoning', text }] : []
}

/** Reads a call; other calls than those of functions are left to the server of the model. */
function callOf(value: Json, param: string, opaque: readonly OpaqueData[], leftovers: Leftovers): ToolCallPart[] {
  const { id, type, function: called, index: _index, extra_content: _extra, ...rest } = objectIn(value, param)
  noteRest(rest, leftovers, 'messages.tool_calls')
  if (isSet(type) && type !== 'function') {
    addName(leftovers.foreign, `${param}.type`)
    return []
  }
  const { name, arguments: written } = objectIn(called, `${param}.function`)
  const own = opaque.find(({ of, call }) => of === 'call' && call === id)
  return [
    {
      type: 'tool_call',
      id: textIn(id, `${param}.id`),
      tool: textIn(name, `${param}.function.name`),
      ...argumentsOf(written, `${param}.function.arguments`),
      ...(own ? { providerData: own.data } : {}),
    },
  ]
}

export function argumentsOf(written: Json | undefined, param: string): Pick<ToolCallPart, 'arguments' | 'invalid'> {
  if (isObject(written)) return { arguments: written }
  const text = isSet(written) ? textIn(written, param) : ''
  if (text.trim() === '') return { arguments: {} }
  const value = parsedJson(text)
  return isObject(value) ? { arguments: value } : { arguments: {}, invalid: text }
}

/** Adds a result. Those of one step are one message. */
function readResult(
  { role: _role, content, tool_call_id, name: _name, ...rest }: Wire,
  param: string,
  { messages, leftovers, calls }: Reading
): void {
  noteRest(rest, leftovers)
  const id = textIn(tool_call_id, `${param}.tool_call_id`)
  const tool = calls.get(id)
  if (tool === undefined)
    throw invalidParam(`${param}.tool_call_id`, `"${id.slice(0, 100)}" is not the id of a tool call in an earlier message`)
  const parts = isSet(content) ? partsOf(content, `${param}.content`, RESULT_PARTS, leftovers) : []
  const hint = parts.find(part => 'cacheHint' in part)
  const result: ToolResultPart = {
    type: 'tool_result',
    id,
    tool,
    content: parts.flatMap(contentPart),
    isError: false,
    ...(hint && 'cacheHint' in hint ? { cacheHint: hint.cacheHint } : {}),
  }
  const last = messages.at(-1)
  if (last?.role === 'tool') messages[messages.length - 1] = { ...last, parts: [...last.parts, result] }
  else messages.push({ role: 'tool', parts: [result] })
}

function contentPart(part: MessagePart): ContentPart[] {
  if (part.type === 'text') return [{ type: 'text', text: part.text }]
  return part.type === 'image' ? [{ type: 'image', data: part.data, mimeType: part.mimeType }] : []
}

type PartReader = (part: Wire, param: string, leftovers: Leftovers) => MessagePart
type PartReaders = Readonly<Record<string, PartReader>>

const text: PartReader = ({ text: said, type: _type, cache_control, ...rest }, param, leftovers) => {
  noteRest(rest, leftovers, 'messages.content')
  return { type: 'text', text: textIn(said, `${param}.text`), ...hintOf(cache_control, param) }
}

const image: PartReader = ({ image_url, type: _type, cache_control, ...rest }, param, leftovers) => {
  noteRest(rest, leftovers, 'messages.content')
  const { url: address, detail } = typeof image_url === 'string' ? { url: image_url } : objectIn(image_url, `${param}.image_url`)
  if (isSet(detail) && detail !== 'auto') addName(leftovers.dropped, 'messages.content.image_url.detail')
  const url = textIn(address, `${param}.image_url.url`)
  const hint = hintOf(cache_control, param)
  if (/^https?:\/\//i.test(url)) return { type: 'image_url', url, ...hint }
  const { data, mimeType, bytes } = dataUrl(url, `${param}.image_url.url`)
  if (!isImage(mimeType, bytes)) throw invalidParam(`${param}.image_url.url`, 'has data that is not an image of its media type')
  return { type: 'image', data, mimeType, ...hint }
}

const file: PartReader = ({ file: given, type: _type, cache_control, ...rest }, param, leftovers) => {
  noteRest(rest, leftovers, 'messages.content')
  const { file_data, filename, file_id } = objectIn(given, `${param}.file`)
  if (isSet(file_id) && !isSet(file_data)) return leftOut(`${param}.file.file_id`, 'file_id', leftovers)
  const { data, mimeType } = dataUrl(textIn(file_data, `${param}.file.file_data`), `${param}.file.file_data`)
  const name = isSet(filename) ? { name: textIn(filename, `${param}.file.filename`) } : {}
  return { type: 'file', data, mimeType, ...name, ...hintOf(cache_control, param) }
}

const audio: PartReader = ({ input_audio, type: _type, ...rest }, param, leftovers) => {
  noteRest(rest, leftovers, 'messages.content')
  const { data, format } = objectIn(input_audio, `${param}.input_audio`)
  const sound = textIn(data, `${param}.input_audio.data`)
  bytesOf(sound, `${param}.input_audio.data`)
  const kind = textIn(format, `${param}.input_audio.format`)
  if (!/^[\w.+-]{1,40}$/.test(kind)) throw invalidParam(`${param}.input_audio.format`, 'must be a format such as wav')
  return { type: 'audio', data: sound, mimeType: kind === 'mp3' ? 'audio/mpeg' : `audio/${kind}` }
}

const refusal: PartReader = ({ refusal: said }, param) => ({
  type: 'text',
  text: textIn(said, `${param}.refusal`),
  refusal: true,
})

const TEXT_ONLY: PartReaders = { text }
const ALL_PARTS: PartReaders = { text, image_url: image, file, input_audio: audio }
const ASSISTANT_PARTS: PartReaders = { text, refusal }
const RESULT_PARTS: PartReaders = { text, image_url: image }

/** Reads content: text, or a list of parts. */
function partsOf(content: Json | undefined, param: string, readers: PartReaders, leftovers: Leftovers): MessagePart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  const parts: MessagePart[] = []
  for (const [at, item] of listIn(content, param).entries()) {
    const place = `${param}[${at}]`
    const part = objectIn(item, place)
    const type = textIn(part.type, `${place}.type`)
    if (Object.hasOwn(readers, type)) parts.push(readers[type]!(part, place, leftovers))
    else parts.push(leftOut(`${place}.type`, type, leftovers))
  }
  return parts
}

const TIMES = ['5m', '1h'] as const

/** A note in place of a part that only a server of the protocol understands, for a model that answers in place of such a server. */
function leftOut(place: string, what: string, { foreign }: Leftovers): MessagePart {
  addName(foreign, place)
  return { type: 'text', text: `(content of the type ${what.slice(0, 100)} was left out)` }
}

/** `cache_control` as Anthropic and its proxies take it. */
export function hintOf(control: Json | undefined, param: string): { readonly cacheHint?: CacheHint } {
  if (!isSet(control)) return {}
  const { ttl } = objectIn(control, `${param}.cache_control`)
  return { cacheHint: isSet(ttl) ? { ttl: wordIn(ttl, `${param}.cache_control.ttl`, TIMES) } : {} }
}

const DATA_URL = /^data:([\w.+-]{1,100}\/[\w.+-]{1,100})(?:;[\w.+=-]{1,100})*;base64$/i

/** The parts of a base64 data URL. Throws INVALID_VALUE. */
export function dataUrl(url: string, param: string): { data: string; mimeType: string; bytes: Buffer } {
  const comma = url.slice(0, 500).indexOf(',')
  const [, mimeType] = DATA_URL.exec(url.slice(0, Math.max(0, comma))) ?? []
  if (mimeType === undefined) throw invalidParam(param, 'must be an http or https address, or a data URL with base64')
  const data = url.slice(comma + 1)
  return { data, mimeType: mimeType.toLowerCase(), bytes: bytesOf(data, param) }
}

/** Decodes base64. Node skips what is not base64, so the length shows whether all of it was. */
function bytesOf(data: string, param: string): Buffer {
  const bytes = Buffer.from(data, 'base64')
  const length = data.endsWith('==') ? data.length - 2 : data.endsWith('=') ? data.length - 1 : data.length
  if (bytes.length === 0 || bytes.length !== Math.floor((length * 3) / 4)) throw invalidParam(param, 'must have data in base64')
  return bytes
}

/** The first bytes of images that models read. Other types are left to the server of the model. */
const MAGIC: Readonly<Record<string, (head: string) => boolean>> = {
  'image/png': head => head.startsWith('\x89PNG\r\n\x1a\n'),
  'image/jpeg': head => head.startsWith('\xff\xd8\xff'),
  'image/jpg': head => head.startsWith('\xff\xd8\xff'),
  'image/gif': head => head.startsWith('GIF8'),
  'image/webp': head => head.startsWith('RIFF') && head.slice(8, 12) === 'WEBP',
}

export function isImage(mimeType: string, bytes: Buffer): boolean {
  if (!mimeType.startsWith('image/')) return false
  if (!Object.hasOwn(MAGIC, mimeType)) return true
  const head = bytes.subarray(0, 16).toString('latin1')
  // some clients name the wrong one of these types
  return Object.values(MAGIC).some(isOf => isOf(head))
}
