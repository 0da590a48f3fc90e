import { createHash } from 'node:crypto'
import {
  type CallContext,
  codeOf,
  type Events,
  type SchemaProblem,
  type HookCallers,
  type JsonSchema,
  type Log,
  schemaErrorText,
  type SlotView,
  timestamp,
  type StartSpan,
} from '@svc/core'
import type {
  ChatHooks,
  FinishReason,
  ModelMessage,
  MessagePart,
  Conversations,
  Json,
  Mode,
  ModelCalls,
  ModelRef,
  OpenTurn,
  RequestField,
  Selected,
  Selection,
  StoredMessage,
  Tool,
  ToolCallPart,
  ToolUse,
  TurnEnd,
  TurnEvent,
  TurnRequest,
  TurnStatus,
  TurnStep,
  TurnStop,
} from '@svc/core/contracts'
import { type ParametersCheck, toolSchema } from '@svc/plugin-kit/tool-schema'
import { answerInvalid, invalid } from './errors.ts'
import type { PersonAnswer, Questions } from './questions.ts'
import type { ChatConfig } from './settings.ts'
import type { Titles } from './titles.ts'
import { addCalled, type TurnTools } from './tool-list.ts'
import type { OpenTurnQuestions, TurnJournal, WaitingQuestion, WaitingTurns } from './waiting-turns.ts'

/** The services and settings that chat requires. */
export interface ChatDependencies {
  readonly config: ChatConfig
  readonly hooks: HookCallers<ChatHooks>
  readonly events: Events
  readonly conversations: Conversations
  readonly selection: Selection
  readonly modelCalls: ModelCalls
  readonly tools: SlotView<Tool>
  readonly modes: SlotView<Mode>
  readonly questions: Pick<Questions, 'ask'>
  /** Stores turns that wait for a person. Absent where no other worker could continue them. */
  readonly waiting: Pick<WaitingTurns, 'open'> | undefined
  /** Absent where titles are the first words of the message. */
  readonly titles: Titles | undefined
  readonly log: Log
  readonly span: StartSpan
  /** For work that must finish after the caller aborts. */
  readonly lasting: CallContext
}

/** The services of a turn: those of chat, and the objects that all turns share. */
export interface ChatServices extends ChatDependencies {
  /** `asked` takes precedence over the profile's list; without both, all tools that the mode allows. Throws INVALID_VALUE. */
  readonly toolsFor: (asked: readonly string[] | undefined, profile: readonly string[] | undefined, mode: string) => TurnTools
}

/** Options of a run: whether it is streamed, the idempotency key of its caller, and its stream in `TurnStreams`. */
export interface TurnHow {
  readonly isShown: boolean
  readonly key: string | undefined
  readonly journal?: TurnJournal | undefined
}

/** The last model step of a turn whose worker exited while it waited for a person. */
export interface InterruptedStep {
  /** The questions that are still open. */
  readonly questions: OpenTurnQuestions
  /** The answers to the others by call id, with their questions. The call takes its answer out. */
  readonly answers: Map<string, { readonly said: PersonAnswer; readonly asked: WaitingQuestion }>
}

/** The state of a running turn. */
export interface Turn {
  /** A generated id. The client chooses the request id, so that is not unique. */
  readonly id: string
  readonly asked: TurnRequest
  /** The reply is not streamed. */
  readonly gathered: boolean
  readonly journal: TurnJournal | undefined
  /** Set until the calls of that step have results. */
  interrupted: InterruptedStep | undefined
  readonly selected: Selected
  /** The model that answers now: the selected model, or another after a failure. */
  who: ModelRef
  /** The models that failed before, in order. */
  tried: readonly ModelRef[]
  readonly list: TurnTools
  /** Indexed tools of `list` whose schemas the model receives. */
  readonly added: Set<string>
  readonly open: OpenTurn
  /** Makes idempotency keys for tool calls. Absent if the caller sent no key. */
  readonly keys: CallKeys | undefined
  /** The schema of the reply; absent for a plain text reply. */
  readonly form: Form | undefined
  /** The end of `asked.messages` that this turn answers, without system messages. */
  readonly prior: readonly ModelMessage[]
  /** The system messages of `asked.messages`. */
  readonly system: readonly ModelMessage[]
  readonly clientTools: ReadonlySet<string>
  /** Why the model ended its last answer. */
  finish: FinishReason | undefined
  /** Calls of client tools that end the turn. */
  clientCalls: readonly ToolCallPart[]
  /** Fields that the model of the last step does not get. */
  dropped: readonly RequestField[]
  /** The messages of this turn that the conversation will store. */
  readonly made: StoredMessage[]
  /** The model steps so far, which the conversation will store with the messages. */
  readonly steps: TurnStep[]
  /** A rejected answer and its correction, before `made[at]`. Only the model sees them. */
  aside: { readonly at: number; readonly messages: readonly StoredMessage[] } | undefined
  readonly usage: { input: number; output: number; cached: number; cacheWrite: number; reasoning: number }
  /** The cost of its steps by models with a price. */
  cost: number | undefined
  /** The budget that has stopped the turn. */
  stop: TurnStop | undefined
  readonly toolsUsed: ToolUse[]
  /** Start and latest end as `performance.now()`, and the time limit in milliseconds. */
  readonly begun: number
  readonly until: number
  readonly limitMs: number
  /** The reply so far. */
  said: string
  /** The reply as data, once it matches the schema. */
  data: Json | undefined
  tokens: number
  /** `handed`: the turn was sent to the store. `kept`: the store has saved it. */
  handed: boolean
  kept: boolean
}

/** Checks the request, selects model and tools, and waits for the conversation. Throws INVALID_VALUE and the errors of selection and conversation. */
export async function beginTurn(
  services: ChatServices,
  request: TurnRequest,
  { isShown, key, journal }: TurnHow,
  ctx: CallContext
): Promise<Turn> {
  const begun = performance.now()
  const asked = await services.hooks.turn(request, ctx)
  checkRequest(asked, services.config.message_limit)
  const form = asked.responseSchema === undefined ? undefined : await formOf(asked.responseSchema)
  const { provider, model, profile, mode } = asked
  const selected = await services.selection.select({ provider, model, profile, mode }, ctx)
  const list = services.toolsFor(asked.tools, selected.profile.tools, selected.mode)
  const given = asked.messages && partsOf(asked.messages)
  const open = asked.keep === false ? { ...NOT_KEPT, turns: given?.past ?? [] } : await openConversation(services, asked, ctx)
  const who = { provider: selected.provider, model: selected.model }
  const limitMs = asked.timeoutMs ?? services.config.timeout_ms
  const added = new Set<string>()
  if (list.index) addCalled(list, open.turns.flat(), added)
  return {
    id: crypto.randomUUID(),
    asked,
    gathered: !isShown,
    journal,
    interrupted: undefined,
    selected,
    who,
    tried: [],
    list,
    added,
    open,
    keys: key === undefined ? undefined : new CallKeys(key),
    form,
    prior: given?.own ?? [],
    system: given?.system ?? [],
    clientTools: new Set(asked.clientTools?.map(tool => tool.name)),
    finish: undefined,
    clientCalls: [],
    dropped: [],
    made: given ? [] : [userMessage(asked.message, asked.parts)],
    steps: [],
    aside: undefined,
    usage: { input: 0, output: 0, cached: 0, cacheWrite: 0, reasoning: 0 },
    cost: undefined,
    stop: undefined,
    toolsUsed: [],
    begun,
    until: performance.now() + limitMs,
    limitMs,
    said: '',
    data: undefined,
    tokens: 0,
    handed: false,
    kept: false,
  }
}

/** The conversation of a turn with `keep: false`. */
const NOT_KEPT: OpenTurn = { ticket: '', conversationId: '', exists: false, turns: [] }

/** A span over work on the store, which waits for other turns and for the disk. */
async function inSpan<T>(
  { span }: Pick<ChatServices, 'span'>,
  name: string,
  ctx: CallContext,
  work: (ctx: CallContext) => Promise<T>
): Promise<T> {
  const open = span(name, ctx)
  try {
    return await work(open.ctx)
  } catch (error) {
    open.fail(error)
    throw error
  } finally {
    open.end()
  }
}

function openConversation(
  { conversations, config, span }: ChatServices,
  { conversationId, newConversation }: TurnRequest,
  ctx: CallContext
): Promise<OpenTurn> {
  const { queue_timeout_ms: waitMs, history_turns: history } = config
  const asked = { ...(conversationId === undefined ? {} : { conversationId }), ...(newConversation && { newConversation }) }
  // a new conversation is not read
  if (conversationId === undefined) return conversations.begin({ ...asked, waitMs, history }, ctx)
  return inSpan({ span }, 'open conversation', ctx, inner => conversations.begin({ ...asked, waitMs, history }, inner))
}

function checkRequest(asked: TurnRequest, limit: number) {
  const { message, temperature, maxTokens, keep, conversationId } = asked

  if (asked.messages) checkMessages(asked)
  else if (message.trim() === '') throw invalid('message', 'must not be blank')
  if (message.length > limit)
    throw invalid('message', `must have at most ${limit} characters, has ${message.length}`, { limit, count: message.length })
  if (temperature !== undefined && !(temperature >= 0 && temperature <= 1))
    throw invalid('temperature', 'must be from 0 to 1', { value: temperature })
  if (maxTokens !== undefined && !(Number.isInteger(maxTokens) && maxTokens >= 1))
    throw invalid('max_tokens', 'must be an integer above 0', { value: maxTokens })
  if (asked.parts && keep !== false) checkStored(asked.parts)
  checkLimits(asked)
  if (keep === false && conversationId !== undefined) throw invalid('keep', 'cannot be false in a conversation')
}

function checkLimits({ toolBudget, tokenBudget, costBudget, timeoutMs }: TurnRequest) {
  checkCount('tool_budget', toolBudget)
  checkCount('token_budget', tokenBudget)
  checkCount('timeout_ms', timeoutMs)
  if (costBudget !== undefined && !(costBudget >= 0))
    throw invalid('cost_budget', 'must be a number of 0 or more', { value: costBudget })
}

/** Characters of images and files in a turn that is stored: a store keeps 16 MiB for each turn, with its answer. */
const MOST_STORED = 12 * 1024 * 1024

function checkStored(parts: NonNullable<TurnRequest['parts']>) {
  const count = parts.reduce((sum, { data }) => sum + data.length, 0)
  if (count > MOST_STORED)
    throw invalid('parts', `must have at most ${MOST_STORED} characters of base64 in a conversation, have ${count}`, {
      limit: MOST_STORED,
      count,
    })
}

function checkMessages({ message, messages = [], parts, keep }: TurnRequest) {
  if (parts) throw invalid('parts', 'cannot be used in a turn with messages')
  if (message !== '') throw invalid('message', 'must be empty in a turn with messages')
  if (keep !== false) throw invalid('messages', 'cannot be used in a conversation')
  const last = messages.at(-1)
  if (last?.role !== 'user' && last?.role !== 'tool')
    throw invalid('messages', 'must end with a message of the user, or with results of tools')
}

/** A conversation in parts: past turns, the messages that a turn answers, and system messages. */
interface ConversationParts {
  readonly past: readonly (readonly StoredMessage[])[]
  readonly own: readonly ModelMessage[]
  readonly system: readonly ModelMessage[]
}

/** A turn begins with a message of the user. */
function partsOf(messages: readonly ModelMessage[]): ConversationParts {
  const turns: ModelMessage[][] = []
  for (const message of messages) {
    if (message.role === 'system') continue
    if (message.role === 'user' || turns.length === 0) turns.push([])
    turns.at(-1)!.push(message)
  }
  const own = turns.pop() ?? []
  return { past: turns, own, system: messages.filter(({ role }) => role === 'system') }
}

function checkCount(field: string, value: number | undefined) {
  if (value !== undefined && !(Number.isInteger(value) && value >= 0))
    throw invalid(field, 'must be an integer from 0', { value })
}

/** Whether the last answer matches the schema. The model receives the reason for a first mismatch; a second throws ANSWER_INVALID. */
export function isFit(turn: Turn, form: Form): boolean {
  const answer = turn.made.at(-1)!
  const read = readAs(form, textOf(answer))
  if ('reason' in read) {
    if (turn.aside) throw answerInvalid(turn.who, read.reason)
    turn.made.pop()
    turn.aside = { at: turn.made.length, messages: [answer, userMessage(correctionOf(read.reason))] }
    return false
  }
  turn.said = textOf(answer)
  turn.data = read.data
  return true
}

const correctionOf = (reason: string) =>
  `That answer cannot be used: ${reason}. Answer only with JSON that matches the requested schema.`

const textOf = ({ parts }: StoredMessage) => parts.map(part => (part.type === 'text' ? part.text : '')).join('')

/** The start event with model and conversation. Other clients see a new conversation only after its first turn is kept. */
export function startEvent(turn: Turn, ctx: CallContext): TurnEvent {
  return {
    type: 'start',
    requestId: ctx.requestId,
    timestamp: timestamp(),
    conversationId: turn.open.conversationId,
    ...turn.who,
    ...(turn.dropped.length === 0 ? {} : { dropped: turn.dropped }),
  }
}

/** The end event with status, model, usage and duration. */
export function endEvent(turn: Turn, status: TurnStatus, ctx: CallContext): TurnEnd {
  const { input, output, ...parts } = turn.usage
  const some = Object.fromEntries(Object.entries(parts).filter(([, tokens]) => tokens > 0))
  return {
    type: 'end',
    requestId: ctx.requestId,
    timestamp: timestamp(),
    conversationId: turn.open.conversationId,
    status,
    ...turn.who,
    usage: { input, output, total: input + output, ...some },
    ...(turn.cost === undefined ? {} : { cost: turn.cost }),
    durationMs: Math.round(performance.now() - turn.begun),
    toolsUsed: turn.toolsUsed,
    ...(turn.stop && status === 'completed' ? { partial: turn.stop } : {}),
    ...(turn.data === undefined || status !== 'completed' ? {} : { data: turn.data }),
    ...(turn.asked.messages ? { made: turn.made } : {}),
    ...(turn.finish === undefined ? {} : { finish: turn.finish }),
    ...(turn.clientCalls.length > 0 ? { calls: turn.clientCalls } : {}),
  }
}

/** Stores the turn once, also after the caller aborts. A turn without output is not stored. Of a partial reply, the message is marked. */
export async function keepTurn(services: ChatServices, turn: Turn, status: TurnStatus, ctx: CallContext): Promise<void> {
  if (turn.handed || turn.made.length < 2 || turn.asked.keep === false) return
  turn.handed = true
  const mark = status === 'completed' ? turn.stop && 'failed' : status
  const messages = mark ? marked(turn.made, mark) : turn.made
  await inSpan(services, 'store turn', ctx, inner =>
    services.conversations.append(turn.open.ticket, messages, turn.steps, { ...inner, signal: services.lasting.signal })
  )
  turn.kept = true
}

/** Releases the conversation. */
export async function leaveTurn({ conversations, lasting }: ChatServices, { asked, open }: Turn): Promise<void> {
  if (asked.keep !== false) await conversations.end(open.ticket, lasting)
}

function marked(made: readonly StoredMessage[], status: Exclude<TurnStatus, 'completed'>): StoredMessage[] {
  const last = made.findLastIndex(message => message.role === 'assistant')
  const answered = last < made.length - 1
  return made.map((message, at) =>
    at === last ? { ...message, status, parts: answered ? message.parts : withoutCalls(message.parts) } : message
  )
}

// A call without its result would make every later request of the conversation invalid.
const withoutCalls = (parts: StoredMessage['parts']) => parts.filter(part => part.type !== 'tool_call')

/** Idempotency keys of the tool calls of a turn. A repeated turn gives the n-th equal call of a tool the same key. */
export class CallKeys {
  readonly turn: string
  readonly #counts = new Map<string, number>()

  constructor(turn: string) {
    this.turn = turn
  }

  of({ tool, arguments: args }: ToolCallPart): string {
    const what = `${tool}:${createHash('sha256').update(JSON.stringify(args)).digest('base64url')}`
    const count = (this.#counts.get(what) ?? 0) + 1
    this.#counts.set(what, count)
    return `${this.turn}:${what}:${count}`
  }
}

/** The check of a reply against its schema. */
type Form = Pick<ParametersCheck, 'check'>

const forms = new WeakMap<object, Promise<Form>>()

/** Compiles a response schema. Throws INVALID_VALUE for an invalid schema. */
export async function formOf(json: JsonSchema): Promise<Form> {
  if (typeof json !== 'object') return made(json)
  const form = forms.get(json) ?? made(json)
  forms.set(json, form)
  return form
}

async function made(json: JsonSchema): Promise<Form> {
  try {
    const form = await toolSchema(json, { once: true })
    // the schema is compiled on the first check
    form.check(null, 'first')
    return form
  } catch (error) {
    throw invalid('response_schema', `is not a valid JSON Schema: ${schemaErrorText(error)}`)
  }
}

const MAX_PROBLEMS = 10

/** The data of an answer, or the reason why it does not match. */
function readAs(form: Form, text: string): { readonly data: Json } | { readonly reason: string } {
  const data = jsonIn(text)
  if (data === undefined) return { reason: 'it is not valid JSON' }
  try {
    const problems = form.check(data)
    return problems.length === 0 ? { data } : { reason: problems.slice(0, MAX_PROBLEMS).map(problemText).join('; ') }
  } catch (error) {
    if (codeOf(error) === 'ARGUMENTS_TOO_LONG' || error instanceof RangeError)
      return { reason: 'it is too long, or nested too deeply' }
    throw error
  }
}

const problemText = ({ path, message }: SchemaProblem) => `${(path || 'the value').slice(0, 200)} ${message.slice(0, 500)}`

/** Models without schema support often wrap JSON in a Markdown code fence. */
const FENCED = /^\s*```(?:json)?\s*\n(.*)\n\s*```\s*$/s

function jsonIn(text: string): Json | undefined {
  try {
    return JSON.parse(FENCED.exec(text)?.[1] ?? text) as Json
  } catch {
    return undefined
  }
}

const userMessage = (text: string, more: readonly MessagePart[] = []): StoredMessage => ({
  role: 'user',
  parts: [{ type: 'text', text }, ...more],
})
