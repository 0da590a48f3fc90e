import type { RunAgentInput } from '@ag-ui/core'
import { type Fields, fieldInvalid, isFields, listAt, nameAt, objectAt, textAt } from '@svc/api-types'
import type { JsonSchema } from '@svc/core'
import type { ContentPart, Json, MessagePart, ModelMessage, ToolCallPart, ToolSpec, TurnRequest } from '@svc/core/contracts'

const MOST_TOOLS = 1024
const LONGEST_NAME = 128
const LONGEST_ID = 1_000

/** A request, read. */
export interface AskedRun {
  readonly threadId: string
  readonly runId: string
  readonly turn: TurnRequest
}

/** The members of the input that svc reads, by the names of AG-UI. */
type Member = keyof RunAgentInput

/** Reads a RunAgentInput for a profile. Members that are null count as absent; unknown ones are ignored. Throws INVALID_VALUE. */
export function readRun(body: Fields, profile: string): AskedRun {
  const member = (name: Member) => body[name] ?? undefined
  const entries = member('resume')
  if (Array.isArray(entries) && entries.length > 0)
    throw fieldInvalid('resume', 'must be empty: no run of this server ends with an interrupt')
  const tools = toolsIn(member('tools'))
  const { interactive } = isFields(body.forwardedProps) ? body.forwardedProps : {}
  return {
    threadId: nameAt(body.threadId, 'threadId', LONGEST_ID),
    runId: nameAt(body.runId, 'runId', LONGEST_ID),
    turn: {
      message: '',
      messages: [...backgroundOf(member('context'), member('state')), ...messagesIn(body.messages)],
      keep: false,
      profile,
      reasoning: true,
      ...(tools.length > 0 ? { clientTools: tools } : {}),
      ...(interactive === true ? { interactive } : {}),
    },
  }
}

function toolsIn(value: Json | undefined): ToolSpec[] {
  const items = value === undefined ? [] : listAt(value, 'tools')
  if (items.length > MOST_TOOLS) throw fieldInvalid('tools', `must have at most ${MOST_TOOLS} tools`)
  const tools = items.map((item, at) => {
    const { name, description, parameters } = objectAt(item, `tools[${at}]`)
    return {
      name: nameAt(name, `tools[${at}].name`, LONGEST_NAME),
      description: textAt(description ?? '', `tools[${at}].description`),
      parameters: objectAt(parameters ?? NO_PARAMETERS, `tools[${at}].parameters`) as JsonSchema,
    }
  })
  if (new Set(tools.map(({ name }) => name)).size < tools.length)
    throw fieldInvalid('tools', 'must not have two tools of the same name')
  return tools
}

const NO_PARAMETERS = { type: 'object', properties: {} }

/** What the application tells the agent, as a message of the system. An empty state says nothing. */
function backgroundOf(context: Json | undefined, state: Json | undefined): ModelMessage[] {
  const items = context === undefined ? [] : listAt(context, 'context')
  const lines = items.map((item, at) => {
    const { description, value } = objectAt(item, `context[${at}]`)
    return `${textAt(description, `context[${at}].description`)}: ${textAt(value, `context[${at}].value`)}`
  })
  const isEmpty = state === undefined || (typeof state === 'object' && Object.keys(state as object).length === 0)
  const all = [
    ...(lines.length === 0 ? [] : [`Context of the application:\n${lines.join('\n')}`]),
    ...(isEmpty ? [] : [`State of the application, as JSON:\n${JSON.stringify(state)}`]),
  ]
  return all.length === 0 ? [] : [{ role: 'system', parts: [{ type: 'text', text: all.join('\n\n') }] }]
}

interface Reading {
  readonly messages: ModelMessage[]
  /** The tools of the calls so far, by id. */
  readonly calls: Map<string, string>
}
type MessageReader = (message: Fields, path: string, reading: Reading) => void

function messagesIn(value: Json | undefined): ModelMessage[] {
  const reading: Reading = { messages: [], calls: new Map() }
  for (const [at, item] of listAt(value, 'messages').entries()) {
    const message = objectAt(item, `messages[${at}]`)
    const role = textAt(message.role, `messages[${at}].role`)
    if (!Object.hasOwn(ROLES, role)) throw fieldInvalid(`messages[${at}].role`, `must be one of ${Object.keys(ROLES).join(', ')}`)
    ROLES[role]!(message, `messages[${at}]`, reading)
  }
  const { messages } = reading
  if (messages.length === 0) throw fieldInvalid('messages', 'must have a message for the agent')
  return messages
}

/** Only of the application, not of the conversation. */
const ignored: MessageReader = () => {}

const system: MessageReader = ({ content }, path, { messages }) =>
  void messages.push({ role: 'system', parts: [{ type: 'text', text: textAt(content, `${path}.content`) }] })

const ROLES: Readonly<Record<string, MessageReader>> = {
  system,
  developer: system,
  user: ({ content }, path, { messages }) => void messages.push({ role: 'user', parts: partsIn(content, `${path}.content`) }),
  assistant({ content, toolCalls }, path, { messages, calls }) {
    const made = listAt(toolCalls ?? [], `${path}.toolCalls`).map((call, at) => callIn(call, `${path}.toolCalls[${at}]`))
    for (const { id, tool } of made) calls.set(id, tool)
    const text = textAt(content ?? '', `${path}.content`)
    const parts: MessagePart[] = [...(text === '' ? [] : [{ type: 'text' as const, text }]), ...made]
    if (parts.length > 0) messages.push({ role: 'assistant', parts })
  },
  tool: readResult,
  // svc does not read reasoning of other runs, and activities are for the person
  reasoning: ignored,
  activity: ignored,
}

function callIn(value: Json, path: string): ToolCallPart {
  const { id, function: called } = objectAt(value, path)
  const { name, arguments: written } = objectAt(called, `${path}.function`)
  return {
    type: 'tool_call',
    id: nameAt(id, `${path}.id`, LONGEST_ID),
    tool: nameAt(name, `${path}.function.name`),
    ...argumentsOf(textAt(written ?? '', `${path}.function.arguments`)),
  }
}

/** A model can write arguments that are not valid JSON, and gets them back as they are. */
function argumentsOf(text: string): Pick<ToolCallPart, 'arguments' | 'invalid'> {
  if (text.trim() === '') return { arguments: {} }
  try {
    const value: unknown = JSON.parse(text)
    if (isFields(value)) return { arguments: value }
  } catch {
    // below
  }
  return { arguments: {}, invalid: text }
}

/** Adds a result. Those of one step are one message. */
function readResult({ toolCallId, content, error }: Fields, path: string, { messages, calls }: Reading): void {
  const id = nameAt(toolCallId, `${path}.toolCallId`, LONGEST_ID)
  const tool = calls.get(id)
  if (tool === undefined) throw fieldInvalid(`${path}.toolCallId`, 'is not the id of a tool call in an earlier message')
  const isError = typeof error === 'string' && error !== ''
  const parts = partsIn(content, `${path}.content`).flatMap(contentOf)
  const shown: ContentPart[] = isError && parts.length === 0 ? [{ type: 'text', text: error }] : parts
  const result: MessagePart = { type: 'tool_result', id, tool, content: shown, isError }
  const last = messages.at(-1)
  if (last?.role === 'tool') messages[messages.length - 1] = { ...last, parts: [...last.parts, result] }
  else messages.push({ role: 'tool', parts: [result] })
}

function contentOf(part: MessagePart): ContentPart[] {
  if (part.type === 'text') return [{ type: 'text', text: part.text }]
  return part.type === 'image' || part.type === 'audio' ? [{ type: part.type, data: part.data, mimeType: part.mimeType }] : []
}

/** The parts of a text, or of a list of parts. */
function partsIn(content: Json | undefined, path: string): MessagePart[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }]
  return listAt(content, path).map((item, at) => partIn(objectAt(item, `${path}[${at}]`), `${path}[${at}]`))
}

const MEDIA = { image: 'image', audio: 'audio', document: 'file' } as const

function partIn(part: Fields, path: string): MessagePart {
  const type = textAt(part.type, `${path}.type`)
  if (type === 'text') return { type: 'text', text: textAt(part.text, `${path}.text`) }
  if (!Object.hasOwn(MEDIA, type)) throw fieldInvalid(`${path}.type`, 'must be text, image, audio or document')
  const source = objectAt(part.source, `${path}.source`)
  const value = textAt(source.value, `${path}.source.value`)
  if (source.type === 'data') {
    if (!/^[A-Za-z0-9+/]+={0,2}$/.test(value)) throw fieldInvalid(`${path}.source.value`, 'must be base64')
    const mimeType = nameAt(source.mimeType, `${path}.source.mimeType`)
    return { type: MEDIA[type as keyof typeof MEDIA], data: value, mimeType }
  }
  if (source.type === 'url' && type === 'image' && /^https?:\/\//i.test(value)) return { type: 'image_url', url: value }
  throw fieldInvalid(`${path}.source.type`, type === 'image' ? 'must be data, or url with an http address' : 'must be data')
}
