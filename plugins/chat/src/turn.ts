import { timestamp, type Use } from '@svc/core'
import type {
  ModelMessage,
  ModelRequest,
  OpenTurn,
  ModelRef,
  Selected,
  StoredMessage,
  ToolUse,
  TurnEnd,
  TurnEvent,
  TurnRequest,
  TurnStatus,
} from '@svc/core/contracts'
import type { Candidate } from './candidate.ts'
import { invalid } from './errors.ts'
import { systemMessages, userMessage } from './messages.ts'
import type { ChatRoom } from './parts.ts'
import type { ToolList } from './tool-list.ts'

/** One turn while it runs: what it began with, what it has made so far. */
export interface Turn {
  /** Of its own: the id of a request is the client's. */
  readonly id: string
  readonly asked: TurnRequest
  /** Nobody reads along. */
  readonly gathered: boolean
  readonly selected: Selected
  /** Who answers now: the selected one, or another after a failure. */
  who: ModelRef
  /** The models given up before, in order. */
  readonly tried: ModelRef[]
  /** What is known of the model that answers now; absent before it was looked up. */
  known: Candidate | undefined
  readonly list: ToolList
  readonly open: OpenTurn
  /** The messages of this turn, to be kept. */
  readonly made: StoredMessage[]
  readonly usage: { input: number; output: number }
  readonly toolsUsed: ToolUse[]
  /** `performance.now()` when it began, and when it must have ended. */
  readonly begun: number
  readonly until: number
  /** What the assistant has said so far. */
  said: string
  tokens: number
  /** Whether the store was asked to keep it, and whether it has. */
  handed: boolean
  kept: boolean
}

/** Checks what was asked, decides who answers with which tools, and waits for the conversation. Throws what is wrong with the request. */
export async function beginTurn(room: ChatRoom, request: TurnRequest, gathered: boolean, use: Use): Promise<Turn> {
  const begun = performance.now()
  const asked = await room.hooks.turn(request, use)
  checkRequest(asked, room.config.message_limit)
  const selected = await room.selection.select({ provider: asked.provider, model: asked.model }, use)
  const list = room.toolsFor(asked.tools, selected.profile.tools, selected.mode)
  const { queue_timeout_ms: waitMs, history_turns: history } = room.config
  const open = await room.conversations.begin(
    { ...(asked.conversationId === undefined ? {} : { conversationId: asked.conversationId }), waitMs, history },
    use
  )
  const who = { provider: selected.provider, model: selected.model }
  return {
    id: crypto.randomUUID(),
    asked,
    gathered,
    selected,
    who,
    tried: [],
    known: undefined,
    list,
    open,
    made: [userMessage(asked.message)],
    usage: { input: 0, output: 0 },
    toolsUsed: [],
    begun,
    until: performance.now() + room.config.timeout_ms,
    said: '',
    tokens: 0,
    handed: false,
    kept: false,
  }
}

function checkRequest({ message, temperature, maxTokens }: TurnRequest, limit: number) {
  if (message.trim() === '') throw invalid('message', 'must not be blank')
  if (message.length > limit)
    throw invalid('message', `must have at most ${limit} characters, has ${message.length}`, { limit, count: message.length })
  if (temperature !== undefined && !(temperature >= 0 && temperature <= 1))
    throw invalid('temperature', 'must be from 0 to 1', { value: temperature })
  if (maxTokens !== undefined && !(Number.isInteger(maxTokens) && maxTokens >= 1))
    throw invalid('max_tokens', 'must be an integer above 0', { value: maxTokens })
}

/** What the model is asked in this round; the past is fitted in by the caller. */
export function requestOf(room: ChatRoom, turn: Turn, withTools: boolean): ModelRequest {
  const { asked, gathered, selected, who, list } = turn
  const temperature = asked.temperature ?? selected.profile.temperature
  const maxTokens = asked.maxTokens ?? selected.profile.maxTokens
  const messages: ModelMessage[] = [...systemMessages(selected, room.modes.get(selected.mode)?.prompt), ...turn.made]
  return {
    model: who.model,
    messages,
    ...(withTools && list.specs.length > 0 ? { tools: list.specs } : {}),
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...(gathered ? { gathered } : {}),
  }
}

/** The first event: who is to answer, in which conversation. That one is there for others once something is kept in it. */
export function startEvent(turn: Turn, use: Use): TurnEvent {
  return {
    type: 'start',
    requestId: use.requestId,
    timestamp: timestamp(),
    conversationId: turn.open.conversationId,
    ...turn.who,
  }
}

/** The last event: how it went, who has answered, and what it took. */
export function endEvent(turn: Turn, status: TurnStatus, use: Use): TurnEnd {
  const { input, output } = turn.usage
  return {
    type: 'end',
    requestId: use.requestId,
    timestamp: timestamp(),
    conversationId: turn.open.conversationId,
    status,
    ...turn.who,
    usage: { input, output, total: input + output },
    durationMs: Math.round(performance.now() - turn.begun),
    toolsUsed: turn.toolsUsed,
  }
}

/** Keeps the turn, once, although the caller may have left; without any output there is nothing to keep. */
export async function keepTurn(room: ChatRoom, turn: Turn, status: TurnStatus, use: Use): Promise<void> {
  if (turn.handed || turn.made.length < 2) return
  turn.handed = true
  const messages = status === 'completed' ? turn.made : marked(turn.made, status)
  await room.conversations.append(turn.open.ticket, messages, { ...use, signal: room.lasting.signal })
  turn.kept = true
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
