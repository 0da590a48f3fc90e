import type { JsonSchema } from '@svc/core'
import type {
  Json,
  ModelRequest,
  ReasoningEffort,
  MessagePart,
  ModelFailureKind,
  ModelMessage,
  ToolResultPart,
} from '@svc/core/contracts'
import { noSample, isFailureKind } from './errors.ts'
import { fits, sampleOf } from './sample.ts'
import { wordsOf } from './tokens.ts'

/** A tool that the message requests. */
export interface RequestedTool {
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
  /** The images, files and sounds of that message, described. */
  readonly attachments: readonly string[]
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
  return { ...readDirectives(last ? textOf(last) : ''), number, attachments: last ? attachmentsOf(last) : NONE, results }
}

const textOf = ({ parts }: ModelMessage): string => {
  const [first] = parts
  if (parts.length === 1 && first?.type === 'text') return first.text
  return parts
    .filter(part => part.type === 'text')
    .map(part => part.text)
    .join('\n')
}

const NONE: readonly string[] = []

/** This provider cannot see or hear. It names the type and the size of what it got. */
const attachmentsOf = ({ parts }: ModelMessage): readonly string[] =>
  parts.length === 1 && parts[0]!.type === 'text' ? NONE : parts.flatMap(part => describe(part) ?? [])

function describe(part: MessagePart): string | undefined {
  if (part.type === 'image_url') return `image at ${part.url}`
  if (part.type === 'file') return `file ${part.name === undefined ? '' : `${part.name}, `}${sizeOf(part)}`
  return part.type === 'image' || part.type === 'audio' ? `${part.type} ${sizeOf(part)}` : undefined
}

const sizeOf = ({ mimeType, data }: { readonly mimeType: string; readonly data: string }) =>
  `${mimeType}, ${Buffer.byteLength(data, 'base64')} bytes`

/** The next step of the model: tool calls, or a text in parts. */
export type Reply = { readonly calls: readonly RequestedTool[] } | { readonly say: readonly string[] }

/** True if the reply only restates the message. Nearly all replies of a load test do. */
export const isPlain = ({ toolChoice, responseSchema, responseFormat }: ModelRequest, { tools, results }: LocalTurn) =>
  tools.length === 0 &&
  results.length === 0 &&
  responseSchema === undefined &&
  responseFormat === undefined &&
  (toolChoice === undefined || toolChoice === 'auto' || toolChoice === 'none')

export const plainReply = (request: ModelRequest, turn: LocalTurn, choice: number): Extract<Reply, { say: unknown }> => ({
  say: restated(request, turn, choice),
})

type Offered = (name: string) => boolean

/** Decides the reply. The same request always gets the same reply. Throws MODEL_FAILED if it finds no value for a schema. */
export async function replyTo(request: ModelRequest, turn: LocalTurn, choice: number): Promise<Reply> {
  const offered: Offered = name =>
    request.toolChoice !== 'none' &&
    ((request.tools ?? []).some(tool => tool.name === name) || request.indexed?.includes(name) === true)
  const calls = await callsOf(request, turn, offered)
  if (calls.length > 0) return { calls }
  if (request.responseSchema !== undefined) return { say: [JSON.stringify(await valueOf(request.responseSchema, turn.text))] }
  const texts = [...toolLines(turn, offered), ...restated(request, turn, choice)]
  return { say: request.responseFormat === 'json' ? [JSON.stringify({ reply: texts.join('') })] : texts }
}

/** The calls that the message requests, else those that `toolChoice` forces. */
async function callsOf(request: ModelRequest, turn: LocalTurn, offered: Offered): Promise<readonly RequestedTool[]> {
  const { toolChoice, tools = [], parallelToolCalls } = request
  const named = typeof toolChoice === 'object' ? toolChoice.tool : undefined
  const open = (call: RequestedTool) => offered(call.tool) && (named === undefined || call.tool === named)
  const wanted = turn.tools.length === 0 ? [] : turn.tools.filter(open)
  // One call at a time: each result leads to the next call.
  const left = parallelToolCalls === false ? wanted.slice(turn.results.length) : turn.results.length === 0 ? wanted : []
  const calls = parallelToolCalls === false ? left.slice(0, 1) : left
  if (calls.length > 0) return strictly(request, turn, calls)
  const forced = tools.find(tool => tool.name === (named ?? (toolChoice === 'required' ? tools[0]?.name : undefined)))
  return forced ? [{ tool: forced.name, arguments: objectOf(await valueOf(forced.parameters, turn.text)) }] : []
}

/** Replaces arguments that a strict tool does not accept. */
async function strictly({ tools = [] }: ModelRequest, { text }: LocalTurn, calls: readonly RequestedTool[]) {
  const strict = tools.filter(tool => tool.strict === true)
  if (strict.length === 0) return calls
  return Promise.all(
    calls.map(async (call): Promise<RequestedTool> => {
      const schema = strict.find(tool => tool.name === call.tool)?.parameters
      if (schema === undefined || (await fits(schema, call.arguments))) return call
      return { tool: call.tool, arguments: objectOf(await valueOf(schema, text)) }
    })
  )
}

async function valueOf(schema: JsonSchema, text: string): Promise<Json> {
  const value = await sampleOf(schema, text)
  if (value === undefined) throw noSample()
  return value
}

const objectOf = (value: Json): RequestedTool['arguments'] => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw noSample()
  return value as RequestedTool['arguments']
}

/** A line for each tool: its answer, or that the request did not offer it. */
function toolLines(turn: LocalTurn, offered: Offered): string[] {
  const answers = turn.results.map(
    ({ tool, isError, content }) => `${tool} ${isError ? 'failed' : 'answered'}: ${wordsOf(content)}\n`
  )
  const missing = turn.tools.filter(call => !offered(call.tool)).map(call => `I was not offered the tool ${call.tool}.\n`)
  return [...answers, ...missing]
}

const PLAIN = 'You said: '
const OTHERS = ['I heard: ', 'Your message was: ', 'You wrote: ', 'As I understand it: '] as const

/**
 * Repeats the message. Its attachments follow, and from the second turn on, the turn's number. With sampling, text and sampling
 * settings select the phrasing.
 */
function restated(request: ModelRequest, { text, number, attachments }: LocalTurn, choice: number): string[] {
  const ending = number > 1 ? [` (turn ${number})`] : []
  const attached = attachments.map(item => ` [${item}]`)
  return text === '' && attached.length === 0
    ? [`Done.`, ...ending]
    : [phrasing(request, text, choice), text, ...attached, ...ending]
}

function phrasing(request: ModelRequest, text: string, choice: number): string {
  const { temperature, seed, topP = 1, topK = OTHERS.length } = request
  const samples =
    temperature === undefined ? seed !== undefined || request.topP !== undefined || request.topK !== undefined : temperature > 0
  if (!samples && choice === 0) return PLAIN
  // Fewer phrasings are likely enough for a low top_p or top_k.
  const count = Math.max(1, Math.min(topK, Math.ceil(topP * OTHERS.length), OTHERS.length))
  const source = `${temperature ?? ''} ${text.slice(0, 200)}${seed === undefined ? '' : ` ${seed}`}`
  return OTHERS[(hashOf(source) + choice) % count]!
}

const THOUGHTS: Readonly<Record<ReasoningEffort, number>> = { none: 0, minimal: 1, low: 2, medium: 3, high: 4, xhigh: 5, max: 6 }

/** The reasoning before the reply: the more effort, the more sentences. */
export function thoughtsOf({ reasoningEffort, reasoningTokens }: ModelRequest, { text }: LocalTurn): string {
  if (reasoningEffort === undefined && reasoningTokens === undefined) return ''
  const count = THOUGHTS[reasoningEffort ?? 'medium'] ?? THOUGHTS.medium
  const about = text.slice(0, 40).toWellFormed()
  return Array.from({ length: count }, (_, at) => `Thought ${at + 1} of ${count}: the message is "${about}".\n`).join('')
}

/** FNV-1a hash. */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return hash >>> 0
}
