import type { JsonSchema, SvcError } from '@svc/core'
import type { Json, ModelEvent, ModelFailureKind, ModelMessage, ModelRequest, ToolResultPart } from '@svc/core/contracts'
import { requestedFailure, contextTooLong, isFailureKind } from './errors.ts'
import { countInput, type TextTokenizer, wordsOf } from './tokens.ts'

/** A tool that the message requests. */
interface RequestedTool {
  readonly tool: string
  readonly arguments: { readonly [name: string]: Json | undefined }
}

/** The directives of a message, and its remaining text. */
interface Directives {
  readonly text: string
  readonly tools: readonly RequestedTool[]
  readonly fail?: { readonly kind: ModelFailureKind; readonly after: number }
  /** Milliseconds before the first piece. */
  readonly delayMs: number
  /** Milliseconds between two pieces. */
  readonly paceMs: number
}

type MutableDirectives = { -readonly [K in keyof Directives]: Directives[K] } & { tools: RequestedTool[] }

/** Extracts the directives of a message: `/tool`, `/fail`, `/delay`, `/pace`, one on each line. Any other line is text. */
function readDirectives(message: string): Directives {
  const directives: MutableDirectives = { text: message, tools: [], delayMs: 0, paceMs: 0 }
  if (!message.includes('/')) return directives
  const lines = message.split('\n')
  const text = lines.filter(line => !take(line.trim(), directives))
  if (text.length < lines.length) directives.text = text.join('\n').trim()
  return directives
}

function take(line: string, into: MutableDirectives): boolean {
  if (!line.startsWith('/')) return false
  const [, word = '', rest = ''] = /^\/([a-z]+)\s+(.*)$/s.exec(line) ?? []
  return Object.hasOwn(READERS, word) && (READERS[word]?.(rest.trim(), into) ?? false)
}

/** Each reader returns true if the rest of the line is valid. */
const READERS: Readonly<Record<string, (rest: string, into: MutableDirectives) => boolean>> = {
  tool(rest, into) {
    const [, tool, json = ''] = /^(\S+)\s*(.*)$/s.exec(rest) ?? []
    const args = readObject(json === '' ? '{}' : json)
    if (tool === undefined || args === undefined) return false
    into.tools.push({ tool, arguments: args })
    return true
  },
  fail(rest, into) {
    const [, kind = '', after = '0'] = /^(\w+)(?:\s+after\s+(\d{1,9}))?$/.exec(rest) ?? []
    if (!isFailureKind(kind)) return false
    into.fail = { kind, after: Number(after) }
    return true
  },
  delay: (rest, into) => milliseconds(rest, ms => (into.delayMs = ms)),
  pace: (rest, into) => milliseconds(rest, ms => (into.paceMs = ms)),
}

/** A delay of at most one day; timers overflow after 24 days. */
const LONGEST_MS = 86_400_000

function milliseconds(text: string, set: (ms: number) => void): boolean {
  const ms = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  if (!(ms <= LONGEST_MS)) return false
  set(ms)
  return true
}

function readObject(json: string): RequestedTool['arguments'] | undefined {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as RequestedTool['arguments'])
      : undefined
  } catch {
    return undefined
  }
}

/** The last message of the user, and the tool results after it. */
export interface LocalTurn extends Directives {
  /** 1 for the first message of a user. */
  readonly number: number
  /** Results of tools after that message. */
  readonly results: readonly ToolResultPart[]
}

/** Reads the current turn of a request. */
export function readTurn(request: ModelRequest): LocalTurn {
  let number = 0
  let last: ModelMessage | undefined
  let results: ToolResultPart[] = []
  for (const message of request.messages) {
    if (message.role === 'user') {
      number++
      last = message
      results = []
    } else if (message.role === 'tool') results.push(...message.parts.filter(part => part.type === 'tool_result'))
  }
  return { ...readDirectives(last ? textOf(last) : ''), number, results }
}

const textOf = ({ parts }: ModelMessage): string => {
  const [first] = parts
  if (parts.length === 1 && first?.type === 'text') return first.text
  return parts
    .filter(part => part.type === 'text')
    .map(part => part.text)
    .join('\n')
}

/** A model of this provider, with its limits in tokens. */
export interface LocalModel {
  readonly id: string
  readonly context: number
  readonly output: number
}

/** All events of a call in order, and the error at its end, if any. */
export interface ReplyPlan {
  readonly events: readonly ModelEvent[]
  readonly failure?: SvcError
}

/** Computes the whole answer before its first piece is sent. Throws MODEL_FAILED if the messages exceed the context of the model. */
export async function planReply(
  tokens: TextTokenizer,
  model: LocalModel,
  request: ModelRequest,
  turn: LocalTurn,
  signal: AbortSignal
): Promise<ReplyPlan> {
  const input = await countInput(tokens, request, signal)
  if (input > model.context) throw contextTooLong(model.id, model.context, input)
  const reply = replyTo(request, turn)
  if ('calls' in reply) return planCalls(tokens, reply.calls, turn, input, signal)
  const room = Math.min(request.maxTokens ?? model.output, model.output, Math.max(1, model.context - input))
  const spoken = await say(tokens, reply.say, room, isWhole(request, turn), signal)
  if (turn.fail)
    return fail(spoken.events, turn.fail.after, requestedFailure(turn.fail.kind, { limit: model.context, count: input }))
  spoken.events.push(
    { type: 'usage', usage: { input, output: spoken.output } },
    { type: 'finish', reason: spoken.cut ? 'length' : 'stop' }
  )
  return spoken
}

interface SpokenText {
  readonly events: ModelEvent[]
  readonly output: number
  /** True if the token limit cut the text. */
  readonly cut: boolean
}

/** True if a text can be sent as one piece: the reply is gathered, and no directive counts or delays pieces. */
const isWhole = ({ gathered }: ModelRequest, { fail, paceMs }: LocalTurn) => gathered === true && !fail && paceMs === 0

async function say(
  tokens: TextTokenizer,
  texts: readonly string[],
  room: number,
  whole: boolean,
  signal: AbortSignal
): Promise<SpokenText> {
  const events: ModelEvent[] = []
  let output = 0
  for (const text of texts) {
    const pieces = await tokens.pieces(text, room - output, signal)
    if (whole && pieces.total > 0 && output + pieces.total <= room) {
      output += pieces.total
      events.push({ type: 'text', text })
      continue
    }
    for (let at = 0; at < pieces.parts.length; at++) {
      if (output + pieces.tokens[at]! > room) return { events, output, cut: true }
      output += pieces.tokens[at]!
      events.push(pieces.parts[at]!)
    }
  }
  return { events, output, cut: false }
}

async function planCalls(
  tokens: TextTokenizer,
  calls: readonly RequestedTool[],
  turn: LocalTurn,
  input: number,
  signal: AbortSignal
): Promise<ReplyPlan> {
  const parts = calls.map((call, at): ModelEvent => ({ type: 'tool_call', id: `call_${turn.number}_${at + 1}`, ...call }))
  const written = calls.flatMap(call => [call.tool, JSON.stringify(call.arguments)])
  const output = await tokens.count(written, signal)
  return { events: [...parts, { type: 'usage', usage: { input, output } }, { type: 'finish', reason: 'tool_calls' }] }
}

const fail = (events: readonly ModelEvent[], after: number, failure: SvcError): ReplyPlan => ({
  events: events.slice(0, after),
  failure,
})

/** The next step of the model: tool calls, or a text in parts. */
type Reply = { readonly calls: readonly RequestedTool[] } | { readonly say: readonly string[] }

/** Decides the reply. The same request always gets the same reply. */
function replyTo(request: ModelRequest, turn: LocalTurn): Reply {
  const offered = (name: string) =>
    request.toolChoice !== 'none' &&
    ((request.tools ?? []).some(tool => tool.name === name) || request.indexed?.includes(name) === true)
  if (turn.results.length === 0) {
    const calls = turn.tools.filter(call => offered(call.tool))
    if (calls.length > 0) return { calls }
    const forced = forcedTool(request)
    if (forced !== undefined) return { calls: [{ tool: forced, arguments: {} }] }
  }
  if (request.responseSchema !== undefined) return { say: [JSON.stringify(sampleOf(request.responseSchema, turn.text))] }
  return { say: [...toolLines(turn, offered), ...restated(request, turn)] }
}

/** The tool that `toolChoice` forces, if the message requests no tool. */
function forcedTool({ toolChoice, tools = [] }: ModelRequest): string | undefined {
  const wanted = toolChoice === 'required' ? tools[0]?.name : typeof toolChoice === 'object' ? toolChoice.tool : undefined
  return tools.some(tool => tool.name === wanted) ? wanted : undefined
}

/** A line for each tool: its answer, or that the request did not offer it. */
function toolLines(turn: LocalTurn, offered: (name: string) => boolean): string[] {
  const answers = turn.results.map(
    ({ tool, isError, content }) => `${tool} ${isError ? 'failed' : 'answered'}: ${wordsOf(content)}\n`
  )
  const missing = turn.tools.filter(call => !offered(call.tool)).map(call => `I was not offered the tool ${call.tool}.\n`)
  return [...answers, ...missing]
}

const PLAIN = 'You said: '
const OTHERS = ['I heard: ', 'Your message was: ', 'You wrote: ', 'As I understand it: '] as const

/** Repeats the message. The text and the temperature select the phrasing. From the second turn on, the turn's number follows. */
function restated(request: ModelRequest, { text, number }: LocalTurn): string[] {
  const opening = request.temperature ? OTHERS[hashOf(`${request.temperature} ${text.slice(0, 200)}`) % OTHERS.length]! : PLAIN
  const ending = number > 1 ? [` (turn ${number})`] : []
  return text === '' ? [`Done.`, ...ending] : [opening, text, ...ending]
}

/** FNV-1a hash. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return hash >>> 0
}

type Keywords = { readonly [keyword: string]: unknown }
const isObject = (value: unknown): value is Keywords => typeof value === 'object' && value !== null && !Array.isArray(value)
const numberOf = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined)

/** Schemas nested deeper give `null`, because a schema can refer to itself. */
const DEEPEST = 16

/** A value that fits the common keywords of a schema. Strings contain `text`. */
function sampleOf(root: JsonSchema, text: string): Json {
  return sample(root, { root, text, depth: 0 })
}

interface Where {
  readonly root: JsonSchema
  readonly text: string
  readonly depth: number
}

function sample(schema: unknown, where: Where): Json {
  if (!isObject(schema) || where.depth > DEEPEST) return null
  const inner = { ...where, depth: where.depth + 1 }
  if ('const' in schema) return schema.const as Json
  if (Array.isArray(schema.enum)) return (schema.enum[0] ?? null) as Json
  if ('default' in schema) return schema.default as Json
  if (typeof schema.$ref === 'string') return sample(lookUp(where.root, schema.$ref), inner)
  const [branch] = [schema.anyOf, schema.oneOf].filter(Array.isArray)
  if (branch) return sample(branch[0], inner)
  if (Array.isArray(schema.allOf)) return sample(merged(schema, schema.allOf, where.root), inner)
  const type = Array.isArray(schema.type) ? schema.type[0] : (schema.type ?? (isObject(schema.properties) ? 'object' : undefined))
  return SAMPLES[String(type)]?.(schema, inner) ?? null
}

const SAMPLES: Readonly<Record<string, (schema: Keywords, where: Where) => Json>> = {
  object(schema, where) {
    const properties = isObject(schema.properties) ? schema.properties : {}
    return Object.fromEntries(Object.entries(properties).map(([name, property]) => [name, sample(property, where)]))
  },
  array: (schema, where) =>
    Array.from({ length: Math.min(numberOf(schema.minItems) ?? 1, numberOf(schema.maxItems) ?? 100, 100) }, () =>
      sample(schema.items, where)
    ),
  string: (schema, { text }) =>
    text.slice(0, numberOf(schema.maxLength) ?? 200).padEnd(Math.min(numberOf(schema.minLength) ?? 0, 1000), '.'),
  integer: schema => Math.ceil(leastOf(schema)),
  number: leastOf,
  boolean: () => true,
}

/** The lower bound of a number; without one, the largest value up to 0 within the upper bound. */
function leastOf({ minimum, maximum, exclusiveMinimum, exclusiveMaximum }: Keywords): number {
  const above = numberOf(exclusiveMinimum)
  const below = numberOf(exclusiveMaximum)
  const least = above === undefined ? numberOf(minimum) : Math.max(above + 1, numberOf(minimum) ?? above + 1)
  return least ?? Math.min(0, numberOf(maximum) ?? 0, below === undefined ? 0 : below - 1)
}

/** Merges the `allOf` parts of a schema: their properties and plain keywords. */
function merged({ allOf: _allOf, ...own }: Keywords, parts: readonly unknown[], root: JsonSchema): Keywords {
  const all = [
    own,
    ...parts.map(part => (isObject(part) && typeof part.$ref === 'string' ? lookUp(root, part.$ref) : part)),
  ].filter(isObject)
  const properties = Object.assign({}, ...all.map(part => part.properties)) as object
  return { ...(Object.assign({}, ...all) as Keywords), ...(Object.keys(properties).length > 0 ? { properties } : {}) }
}

/** Resolves a `$ref` within the schema, such as `#/$defs/step`. */
function lookUp(root: JsonSchema, reference: string): unknown {
  const keys = reference.replace(/^#\/?/, '').split('/').filter(Boolean)
  return keys.reduce<unknown>((at, key) => (isObject(at) ? at[key.replaceAll('~1', '/').replaceAll('~0', '~')] : undefined), root)
}
