import type { ContentPart, FilePart, Json, MessagePart, ModelMessage, ToolCallPart, ToolResultPart } from '@svc/core/contracts'
import { argumentsOf, dataUrl, isImage } from '../chat/messages.ts'
import { invalidParam } from '../errors.ts'
import { addName, isSet, type Leftovers, listIn, objectIn, textIn, type Wire, wordIn } from '../fields.ts'
import { decodeOpaque, type OpaqueData } from '../opaque.ts'
import { flatName } from './tools.ts'

/** An item of the input, and its place in the request. */
export interface PlacedItem {
  readonly item: Json
  readonly param: string
}

/** The assistant message that consecutive items of the model form. */
interface Answer {
  readonly parts: MessagePart[]
  readonly opaque: OpaqueData[]
}

interface Reading {
  readonly leftovers: Leftovers
  /** The tools of the calls so far, by id. */
  readonly calls: Map<string, string>
  readonly messages: ModelMessage[]
  answer: Answer | undefined
}

type ItemReader = (item: Wire, param: string, reading: Reading) => void

/** Reads items as messages of a model. Throws INVALID_VALUE. */
export function readItems(items: readonly PlacedItem[], leftovers: Leftovers): ModelMessage[] {
  const reading: Reading = { leftovers, calls: new Map(), messages: [], answer: undefined }
  for (const { item, param } of items) {
    const wire = objectIn(item, param)
    const type = isSet(wire.type) ? textIn(wire.type, `${param}.type`) : 'message'
    if (Object.hasOwn(READERS, type)) READERS[type]!(wire, param, reading)
    else addName(leftovers.foreign, `${param}.type`)
  }
  endAnswer(reading)
  return reading.messages
}

const READERS: Readonly<Record<string, ItemReader>> = {
  message: readMessage,
  reasoning: readReasoning,
  function_call: (item, param, reading) => readCall(item, param, reading, argumentsOf(item.arguments, `${param}.arguments`)),
  custom_tool_call: (item, param, reading) =>
    readCall(item, param, reading, { arguments: { input: textIn(item.input, `${param}.input`) } }),
  function_call_output: readResult,
  custom_tool_call_output: readResult,
}

const ROLES = ['user', 'assistant', 'system', 'developer'] as const

function readMessage(item: Wire, param: string, reading: Reading): void {
  const role = wordIn(item.role, `${param}.role`, ROLES)
  noteRest(item, MESSAGE_FIELDS, reading.leftovers)
  const place = `${param}.content`
  if (role === 'assistant') {
    answerOf(reading).parts.push(...partsOf(item.content, place, ASSISTANT_PARTS, reading.leftovers))
    return
  }
  endAnswer(reading)
  if (role === 'user') reading.messages.push({ role, parts: partsOf(item.content, place, USER_PARTS, reading.leftovers) })
  else reading.messages.push({ role: 'system', parts: partsOf(item.content, place, TEXT_PARTS, reading.leftovers) })
}

/** Reasoning, or data of a provider about a call or the whole answer. */
function readReasoning(item: Wire, param: string, reading: Reading): void {
  noteRest(item, REASONING_FIELDS, reading.leftovers)
  const texts = [
    ...textsIn(item.content, `${param}.content`, 'reasoning_text'),
    ...textsIn(item.summary, `${param}.summary`, 'summary_text'),
  ]
  const answer = answerOf(reading)
  const own = decodeOpaque(item.encrypted_content)
  // a message has one author
  const usable = own?.filter(({ provider }) => provider === (answer.opaque[0] ?? own[0])!.provider) ?? []
  if (isSet(item.encrypted_content) && (usable.length === 0 || usable.length < own!.length))
    addName(reading.leftovers.dropped, 'input.encrypted_content')
  answer.opaque.push(...usable)
  const kept = usable.filter(({ of }) => of === 'reasoning')
  for (const { text = texts.join('\n\n'), data } of kept) answer.parts.push({ type: 'reasoning', text, providerData: data })
  if (kept.length === 0 && texts.length > 0) answer.parts.push({ type: 'reasoning', text: texts.join('\n\n') })
}

function textsIn(value: Json | undefined, param: string, type: string): string[] {
  if (!isSet(value)) return []
  return listIn(value, param).flatMap((part, at) => {
    const item = objectIn(part, `${param}[${at}]`)
    if (item.type !== type) throw invalidParam(`${param}[${at}].type`, `must be ${type}`)
    const text = textIn(item.text, `${param}[${at}].text`)
    return text === '' ? [] : [text]
  })
}

function readCall(item: Wire, param: string, reading: Reading, args: Pick<ToolCallPart, 'arguments' | 'invalid'>): void {
  noteRest(item, CALL_FIELDS, reading.leftovers)
  const id = textIn(item.call_id, `${param}.call_id`)
  const namespace = isSet(item.namespace) ? textIn(item.namespace, `${param}.namespace`) : undefined
  const tool = flatName(namespace, textIn(item.name, `${param}.name`))
  reading.calls.set(id, tool)
  answerOf(reading).parts.push({ type: 'tool_call', id, tool, ...args })
}

/** Adds a result. Those of one step are one message. */
function readResult(item: Wire, param: string, reading: Reading): void {
  noteRest(item, RESULT_FIELDS, reading.leftovers)
  endAnswer(reading)
  const id = textIn(item.call_id, `${param}.call_id`)
  const tool = reading.calls.get(id)
  if (tool === undefined)
    throw invalidParam(`${param}.call_id`, `"${id.slice(0, 100)}" is not the id of a call in an earlier item`)
  const parts = partsOf(item.output, `${param}.output`, RESULT_PARTS, reading.leftovers)
  const result: ToolResultPart = { type: 'tool_result', id, tool, content: parts.flatMap(contentPart), isError: false }
  const { messages } = reading
  const last = messages.at(-1)
  if (last?.role === 'tool') messages[messages.length - 1] = { ...last, parts: [...last.parts, result] }
  else messages.push({ role: 'tool', parts: [result] })
}

function contentPart(part: MessagePart): ContentPart[] {
  if (part.type === 'text') return [{ type: 'text', text: part.text }]
  return part.type === 'image' ? [{ type: 'image', data: part.data, mimeType: part.mimeType }] : []
}

function answerOf(reading: Reading): Answer {
  return (reading.answer ??= { parts: [], opaque: [] })
}

/** Ends the assistant message, and gives its calls their data. */
function endAnswer(reading: Reading): void {
  const { answer } = reading
  reading.answer = undefined
  if (!answer || answer.parts.length === 0) return
  const { parts, opaque } = answer
  const ofCalls = new Map(opaque.filter(({ of }) => of === 'call').map(({ call, data }) => [call, data]))
  const whole = opaque.find(({ of }) => of === 'message')
  reading.messages.push({
    role: 'assistant',
    parts: parts.map(part =>
      part.type === 'tool_call' && ofCalls.has(part.id) ? { ...part, providerData: ofCalls.get(part.id)! } : part
    ),
    ...(whole ? { providerData: whole.data } : {}),
    ...(opaque[0] ? { provider: opaque[0].provider } : {}),
  })
}

const MESSAGE_FIELDS: ReadonlySet<string> = new Set(['type', 'id', 'role', 'content', 'status'])
const REASONING_FIELDS: ReadonlySet<string> = new Set(['type', 'id', 'summary', 'content', 'encrypted_content', 'status'])
const CALL_FIELDS: ReadonlySet<string> = new Set(['type', 'id', 'call_id', 'name', 'namespace', 'arguments', 'input', 'status'])
const RESULT_FIELDS: ReadonlySet<string> = new Set(['type', 'id', 'call_id', 'output', 'status'])
const TEXT_FIELDS: ReadonlySet<string> = new Set(['type', 'text', 'annotations', 'logprobs'])
const IMAGE_FIELDS: ReadonlySet<string> = new Set(['type', 'image_url', 'file_id', 'detail'])
const FILE_FIELDS: ReadonlySet<string> = new Set(['type', 'file_data', 'filename', 'file_id', 'file_url', 'detail'])

/** Notes the fields that svc has no use for. */
function noteRest(item: Wire, known: ReadonlySet<string>, { dropped }: Leftovers): void {
  for (const name in item) if (!known.has(name) && isSet(item[name])) addName(dropped, `input.${name}`)
}

type PartReader = (part: Wire, param: string, leftovers: Leftovers) => MessagePart | undefined
type PartReaders = Readonly<Record<string, PartReader>>

const text: PartReader = (part, param, leftovers) => {
  noteRest(part, TEXT_FIELDS, leftovers)
  return { type: 'text', text: textIn(part.text, `${param}.text`) }
}

const refusal: PartReader = ({ refusal: said }, param) => ({
  type: 'text',
  text: textIn(said, `${param}.refusal`),
  refusal: true,
})

const image: PartReader = (part, param, leftovers) => {
  noteRest(part, IMAGE_FIELDS, leftovers)
  if (isSet(part.detail) && part.detail !== 'auto') addName(leftovers.dropped, 'input.content.detail')
  if (!isSet(part.image_url) && isSet(part.file_id)) {
    addName(leftovers.foreign, `${param}.file_id`)
    return undefined
  }
  const url = textIn(part.image_url, `${param}.image_url`)
  if (/^https?:\/\//i.test(url)) return { type: 'image_url', url }
  const { data, mimeType, bytes } = dataUrl(url, `${param}.image_url`)
  if (!isImage(mimeType, bytes)) throw invalidParam(`${param}.image_url`, 'has data that is not an image of its media type')
  return { type: 'image', data, mimeType }
}

/** An image of a tool result: results have no addresses. */
const imageData: PartReader = (part, param, leftovers) => {
  const read = image(part, param, leftovers)
  if (read?.type === 'image_url') addName(leftovers.foreign, `${param}.image_url`)
  return read
}

const file: PartReader = (part, param, leftovers): FilePart | undefined => {
  noteRest(part, FILE_FIELDS, leftovers)
  if (!isSet(part.file_data)) {
    const other = ['file_id', 'file_url'].find(name => isSet(part[name]))
    if (other === undefined) throw invalidParam(`${param}.file_data`, 'must be a data URL with base64')
    addName(leftovers.foreign, `${param}.${other}`)
    return undefined
  }
  const { data, mimeType } = dataUrl(textIn(part.file_data, `${param}.file_data`), `${param}.file_data`)
  return { type: 'file', data, mimeType, ...(isSet(part.filename) ? { name: textIn(part.filename, `${param}.filename`) } : {}) }
}

const TEXT_PARTS: PartReaders = { input_text: text, text }
const USER_PARTS: PartReaders = { input_text: text, text, output_text: text, input_image: image, input_file: file }
const ASSISTANT_PARTS: PartReaders = { output_text: text, input_text: text, text, refusal }
const RESULT_PARTS: PartReaders = { input_text: text, output_text: text, text, input_image: imageData }

/** Reads content: text, or a list of parts. */
function partsOf(content: Json | undefined, param: string, readers: PartReaders, leftovers: Leftovers): MessagePart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return listIn(content, param).flatMap((item, at) => {
    const place = `${param}[${at}]`
    const part = objectIn(item, place)
    const type = textIn(part.type, `${place}.type`)
    if (!Object.hasOwn(readers, type)) {
      addName(leftovers.foreign, `${place}.type`)
      return []
    }
    return readers[type]!(part, place, leftovers) ?? []
  })
}
