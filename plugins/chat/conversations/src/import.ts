import { schema, type SchemaProblem } from '@svc/core'
import type { ExportFormat, Json, MessagePart, StoredMessage, ToolCallPart } from '@svc/core/contracts'
import { formatWrong, importInvalid } from './errors.ts'
import { VERSION } from './export.ts'
import { checkedNames, isMade, messageId, type TurnEntry } from './record.ts'

// An import is untrusted: it gets new ids and the owner who imports it, and a line whose ids, roles or tool calls do not fit
// together is refused.

/** A conversation of an import, checked. */
export interface ImportedConversation {
  readonly title?: string
  readonly labels?: readonly string[]
  readonly turns: readonly TurnEntry[]
}

const [MOST_CONVERSATIONS, MOST_TURNS, MOST_MESSAGES, MOST_PARTS] = [1_000, 20_000, 1_000, 1_000]

/** Reads an import. Throws INVALID_VALUE with the line. */
export function readImport(format: Exclude<ExportFormat, 'markdown'>, content: string): ImportedConversation[] {
  const conversations = format === 'jsonl' ? readJsonl(content) : readCompletions(content)
  if (conversations.length === 0) throw importInvalid(1, 'has no conversation')
  return conversations
}

interface Line {
  readonly at: number
  readonly value: { readonly [member: string]: Json | undefined }
}

function* linesOf(content: string): Generator<Line> {
  let at = 0
  for (let from = 0; from < content.length; ) {
    const end = content.indexOf('\n', from)
    const text = content.slice(from, end === -1 ? undefined : end)
    from = end === -1 ? content.length : end + 1
    at += 1
    if (text.trim() !== '') yield { at, value: parsed(text, at) }
  }
}

const DEEPEST = 100

const isDeeper = (value: Json | undefined, levels: number): boolean =>
  typeof value === 'object' && value !== null && (levels === 0 || Object.values(value).some(item => isDeeper(item, levels - 1)))

function parsed(text: string, at: number): Line['value'] {
  let value: Json
  try {
    value = JSON.parse(text) as Json
  } catch {
    throw importInvalid(at, 'is not valid JSON')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw importInvalid(at, 'is not a JSON object')
  if (isDeeper(value, DEEPEST)) throw importInvalid(at, `is nested more than ${DEEPEST} levels deep`)
  return value as Line['value']
}

const string = { type: 'string' }
const name = { type: 'string', minLength: 1, maxLength: 256 }
const closed = (properties: object, required: readonly string[]) => ({
  type: 'object',
  additionalProperties: false,
  properties,
  required,
})
const FIRST = { problems: 'first' } as const
const conversationLine = schema<object>(
  closed(
    {
      type: { const: 'conversation' },
      version: { type: 'integer' },
      conversation_id: string,
      title: string,
      labels: { type: 'array', maxItems: 100, items: string },
      created_at: string,
      updated_at: string,
    },
    ['type', 'version']
  ),
  FIRST
)
const message = closed(
  {
    id: string,
    role: { enum: ['user', 'assistant', 'tool'] },
    status: { enum: ['failed', 'cancelled'] },
    provider: string,
    model: string,
    usage: { type: 'object' },
    parts: { type: 'array', maxItems: MOST_PARTS, items: { type: 'object' } },
  },
  ['role', 'parts']
)
const turnLine = schema<object>(
  closed(
    {
      type: { const: 'turn' },
      number: { type: 'integer' },
      at: string,
      messages: { type: 'array', minItems: 1, maxItems: MOST_MESSAGES, items: message },
    },
    ['type', 'messages']
  ),
  FIRST
)

const data = { type: 'string', pattern: '^[A-Za-z0-9+/]*={0,2}$' }
const mime = { type: 'string', pattern: '^[a-z]+/[A-Za-z0-9.+-]{1,100}$' }
const args = { type: 'object' }
const content = { type: 'array', maxItems: MOST_PARTS, items: { type: 'object', properties: { type: name }, required: ['type'] } }
const part = (properties: object, required: readonly string[]) =>
  schema<object>(closed({ type: string, ...properties }, ['type', ...required]), FIRST)
/** The parts that messages of a role can have. */
const PARTS: Readonly<Record<string, { readonly roles: readonly string[]; readonly schema: ReturnType<typeof part> }>> = {
  text: { roles: ['user', 'assistant'], schema: part({ text: string, refusal: { const: true } }, ['text']) },
  reasoning: { roles: ['assistant'], schema: part({ text: string }, ['text']) },
  image: { roles: ['user', 'assistant'], schema: part({ data, mime_type: mime }, ['data', 'mime_type']) },
  image_url: { roles: ['user'], schema: part({ url: { type: 'string', pattern: '^https?://', maxLength: 8000 } }, ['url']) },
  file: { roles: ['user'], schema: part({ data, mime_type: mime, name }, ['data', 'mime_type']) },
  audio: { roles: ['user', 'assistant'], schema: part({ data, mime_type: mime }, ['data', 'mime_type']) },
  tool_call: {
    roles: ['assistant'],
    schema: part({ id: name, tool: name, arguments: args, invalid: string }, ['id', 'tool', 'arguments']),
  },
  tool_result: {
    roles: ['tool'],
    schema: part({ id: name, tool: name, content, is_error: { type: 'boolean' } }, ['id', 'tool', 'content', 'is_error']),
  },
}

const refuse = (at: number, problems: readonly SchemaProblem[]) => {
  const [problem] = problems
  if (problem) throw importInvalid(at, `is invalid: ${[problem.path, problem.message].filter(Boolean).join(' ').slice(0, 300)}`)
}

interface Reading {
  readonly title?: string
  readonly labels?: readonly string[]
  readonly turns: TurnEntry[]
  readonly open: Map<string, string>
}

function readJsonl(text: string): ImportedConversation[] {
  const all: Reading[] = []
  const ids = new Set<string>()
  for (const { at, value } of linesOf(text)) {
    if (value.type === 'conversation') all.push(readConversation(at, value, ids))
    else if (value.type === undefined && Array.isArray(value.messages)) throw formatWrong(at, 'chat_completions')
    else if (value.type !== 'turn') throw importInvalid(at, 'must have the type conversation or turn')
    else {
      const conversation = all.at(-1)
      if (!conversation) throw importInvalid(at, 'is a turn without a conversation')
      conversation.turns.push(readTurn(at, value, conversation))
    }
    checkCounts(at, all)
  }
  return all
}

function checkCounts(at: number, all: readonly Reading[]) {
  if (all.length > MOST_CONVERSATIONS)
    throw importInvalid(at, `is conversation ${all.length}; at most ${MOST_CONVERSATIONS} are allowed`)
  if ((all.at(-1)?.turns.length ?? 0) > MOST_TURNS) throw importInvalid(at, `is turn ${MOST_TURNS + 1} of a conversation`)
}

function readConversation(at: number, value: Line['value'], ids: Set<string>): Reading {
  refuse(at, conversationLine.check(value))
  const { version, title, labels } = value
  const id = value.conversation_id as string | undefined
  if (version !== VERSION) throw importInvalid(at, `has the version ${JSON.stringify(version)}; this svc reads ${VERSION}`)
  if (id !== undefined && !isMade(id)) throw importInvalid(at, 'has a conversation_id that svc did not make')
  if (id !== undefined && ids.has(id)) throw importInvalid(at, 'repeats the conversation_id of an earlier line')
  if (id !== undefined) ids.add(id)
  return { ...namesOf(at, { title, labels }), turns: [], open: new Map() }
}

function namesOf(at: number, names: { title: Json | undefined; labels: Json | undefined }) {
  const { title, labels } = names
  try {
    return checkedNames({
      ...(title === undefined ? {} : { title: title as string }),
      ...(labels === undefined ? {} : { labels: labels as string[] }),
    })
  } catch (error) {
    throw importInvalid(at, `is invalid: ${(error as Error).message}`)
  }
}

interface GivenMessage {
  readonly id?: string
  readonly role: 'user' | 'assistant' | 'tool'
  readonly status?: 'failed' | 'cancelled'
  readonly provider?: string
  readonly model?: string
  readonly parts: readonly { readonly [member: string]: Json | undefined }[]
}

function readTurn(at: number, value: Line['value'], conversation: Reading): TurnEntry {
  refuse(at, turnLine.check(value))
  const number = conversation.turns.length + 1
  if (value.number !== undefined && value.number !== number)
    throw importInvalid(at, `has the number ${JSON.stringify(value.number)}, but it is turn ${number}`)
  const given = value.messages as unknown as readonly GivenMessage[]
  const messages = given.map((one, index): StoredMessage => {
    if (one.id !== undefined && one.id !== messageId(number, index))
      throw importInvalid(at, `has the id "${one.id.slice(0, 50)}" for message ${messageId(number, index)}`)
    return messageOf(at, one)
  })
  checkOrder(at, messages, conversation.open)
  return { ...timeOf(at, value.at as string | undefined), messages }
}

/** The time of a turn: not in the future. */
function timeOf(at: number, given: string | undefined): { readonly at?: string } {
  if (given === undefined) return {}
  const time = Date.parse(given)
  if (Number.isNaN(time)) throw importInvalid(at, 'has an `at` that is not a time')
  if (time > Date.now() + 60_000) throw importInvalid(at, 'has an `at` in the future')
  return { at: new Date(time).toISOString() }
}

function messageOf(at: number, { role, status, provider, model, parts }: GivenMessage): StoredMessage {
  if (status !== undefined && role !== 'assistant') throw importInvalid(at, `has a status at a message of the role ${role}`)
  if ((provider !== undefined || model !== undefined) && role !== 'assistant')
    throw importInvalid(at, `has a model at a message of the role ${role}`)
  return { role, parts: parts.map(one => partOf(at, role, one)), ...(status === undefined ? {} : { status }) }
}

function partOf(at: number, role: string, given: { readonly [member: string]: Json | undefined }): MessagePart {
  const kind = typeof given.type === 'string' ? given.type : ''
  const known = Object.hasOwn(PARTS, kind) ? PARTS[kind] : undefined
  if (!known) throw importInvalid(at, `has a part of the unknown type "${kind.slice(0, 50)}"`)
  if (!known.roles.includes(role)) throw importInvalid(at, `has a part of the type ${kind} in a message of the role ${role}`)
  refuse(at, known.schema.check(given))
  const { mime_type: mimeType, is_error: isError, ...rest } = given
  const read = {
    ...rest,
    ...(mimeType === undefined ? {} : { mimeType }),
    ...(isError === undefined ? {} : { isError }),
  }
  return read as unknown as MessagePart
}

/**
 * A turn begins with messages of the user (or with results of the last calls) and has no further ones. A result belongs to a call
 * of an earlier answer, which has no other result. `open`: the calls without results, which a new message of the user gives up.
 */
function checkOrder(at: number, messages: readonly StoredMessage[], open: Map<string, string>) {
  let hasAnswer = false
  if (messages[0]?.role === 'user') open.clear()
  for (const [index, { role, parts }] of messages.entries()) {
    if (role === 'user' && hasAnswer) throw importInvalid(at, 'has a message of the user after an answer; begin a new turn')
    if (role === 'assistant') {
      if (index === 0) throw importInvalid(at, 'begins with an answer; a turn begins with a message of the user')
      if (open.size > 0) throw importInvalid(at, 'has an answer before the results of the calls of the last one')
      hasAnswer = true
    }
    if (role === 'tool' && parts.length === 0) throw importInvalid(at, 'has a message of the role tool without results')
    for (const one of parts) checkCalls(at, one, open)
  }
}

function checkCalls(at: number, one: MessagePart, open: Map<string, string>) {
  if (one.type === 'tool_call') {
    if (open.has(one.id)) throw importInvalid(at, `repeats the call "${one.id.slice(0, 50)}"`)
    open.set(one.id, one.tool)
  }
  if (one.type !== 'tool_result') return
  if (open.get(one.id) !== one.tool) throw importInvalid(at, `has a result of a call that is not there: "${one.id.slice(0, 50)}"`)
  open.delete(one.id)
}

const completionLine = schema<object>(
  {
    type: 'object',
    properties: {
      messages: {
        type: 'array',
        minItems: 1,
        maxItems: MOST_TURNS,
        items: closed(
          {
            role: { enum: ['user', 'assistant', 'tool'] },
            name: string,
            content: { type: ['string', 'array', 'null'], items: { type: 'object' } },
            refusal: { type: ['string', 'null'] },
            tool_call_id: name,
            tool_calls: {
              type: 'array',
              maxItems: MOST_PARTS,
              items: {
                type: 'object',
                properties: {
                  id: name,
                  function: { type: 'object', properties: { name, arguments: string }, required: ['name', 'arguments'] },
                },
                required: ['id', 'function'],
              },
            },
          },
          ['role']
        ),
      },
    },
    required: ['messages'],
  },
  FIRST
)

interface CompletionMessage {
  readonly role: 'user' | 'assistant' | 'tool'
  readonly content?: string | null | readonly { readonly [member: string]: Json | undefined }[]
  readonly tool_call_id?: string
  readonly tool_calls?: readonly {
    readonly id: string
    readonly function: { readonly name: string; readonly arguments: string }
  }[]
}

/** One conversation a line. */
function readCompletions(text: string): ImportedConversation[] {
  const all: Reading[] = []
  for (const { at, value } of linesOf(text)) {
    if (value.type === 'conversation' || value.type === 'turn') throw formatWrong(at, 'jsonl')
    refuse(at, completionLine.check(value))
    const reading: Reading = { turns: [], open: new Map() }
    for (const turn of turnsOf(at, value.messages as unknown as readonly CompletionMessage[])) {
      checkOrder(at, turn, reading.open)
      reading.turns.push({ messages: turn })
    }
    all.push(reading)
    checkCounts(at, all)
  }
  return all
}

/** A turn begins with the first message of the user after an answer. */
function turnsOf(at: number, messages: readonly CompletionMessage[]): StoredMessage[][] {
  const turns: StoredMessage[][] = []
  const tools = new Map<string, string>()
  for (const given of messages) {
    const stored = completionMessage(at, given, tools)
    const turn = turns.at(-1)
    const last = turn?.at(-1)
    if (!turn || (stored.role === 'user' && last?.role !== 'user')) turns.push([stored])
    // results of one step are one message
    else if (stored.role === 'tool' && last?.role === 'tool')
      turn[turn.length - 1] = { role: 'tool', parts: [...last.parts, ...stored.parts] }
    else turn.push(stored)
  }
  return turns
}

function completionMessage(
  at: number,
  { role, content: given, tool_call_id: id, tool_calls: calls }: CompletionMessage,
  tools: Map<string, string>
): StoredMessage {
  const parts =
    typeof given === 'string' ? [{ type: 'text', text: given } as const] : (given ?? []).map(one => fromCompletionPart(at, one))
  if (role === 'tool') {
    const tool = tools.get(id ?? '')
    if (id === undefined || tool === undefined) throw importInvalid(at, 'has a message of the role tool without its call')
    return {
      role,
      parts: [
        {
          type: 'tool_result',
          id,
          tool,
          content: [{ type: 'text', text: parts.map(one => ('text' in one ? one.text : '')).join('') }],
          isError: false,
        },
      ],
    }
  }
  if (calls && role !== 'assistant') throw importInvalid(at, `has tool_calls in a message of the role ${role}`)
  const made = (calls ?? []).map((call): ToolCallPart => {
    tools.set(call.id, call.function.name)
    return { type: 'tool_call', id: call.id, tool: call.function.name, ...argumentsOf(call.function.arguments) }
  })
  const said = role === 'assistant' ? parts.filter(one => one.type !== 'text' || one.text !== '') : parts
  for (const one of said)
    if (!PARTS[one.type]!.roles.includes(role))
      throw importInvalid(at, `has a part of the type ${one.type} in a message of the role ${role}`)
  return { role, parts: [...said, ...made] }
}

function argumentsOf(text: string): Pick<ToolCallPart, 'arguments' | 'invalid'> {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return { arguments: value as ToolCallPart['arguments'] }
  } catch {
    // kept as the model sent them
  }
  return { arguments: {}, invalid: text }
}

const DATA_URL = /^data:([a-z]+\/[A-Za-z0-9.+-]{1,100});base64,/

function fromCompletionPart(at: number, given: { readonly [member: string]: Json | undefined }): MessagePart {
  if (given.type === 'text' && typeof given.text === 'string') return { type: 'text', text: given.text }
  const url = given.type === 'image_url' ? (given.image_url as { url?: unknown } | undefined)?.url : undefined
  if (typeof url !== 'string')
    throw importInvalid(
      at,
      `has a part of the type ${(JSON.stringify(given.type) ?? 'undefined').slice(0, 50)}, which cannot be imported`
    )
  const head = DATA_URL.exec(url)
  const read = head ? { type: 'image', data: url.slice(head[0].length), mime_type: head[1]! } : { type: 'image_url', url }
  return partOf(at, 'user', read)
}
