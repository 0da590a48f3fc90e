import type { CallContext } from '@svc/core'
import type {
  Conversations,
  ConversationSummary,
  EvaluationCheck,
  EvaluationReplay,
  MessageDetail,
  ModelMessage,
  ModelRef,
  ToolCallPart,
  TurnDetail,
  Usage,
} from '@svc/core/contracts'
import { turnGone } from './errors.ts'
import type { RecordedCall } from './tool-records.ts'

/** A stored turn to run again. */
export interface TurnRef {
  /** Conversation and number of the turn. */
  readonly name: string
  readonly conversationId: string
  readonly number: number
}

/** A stored turn with what ran before it. */
export interface StoredTurn {
  /** Earlier turns and the message of the user. */
  readonly messages: readonly ModelMessage[]
  readonly input: string
  readonly reply: string
  readonly calls: readonly RecordedCall[]
  /** The names of the called tools, in order. */
  readonly tools: readonly string[]
  /** The model of each step, and its tokens. */
  readonly steps: readonly (ModelRef & { readonly usage: Usage })[]
  readonly checks: readonly EvaluationCheck[]
}

const PAGE = 200
/** Turns of one page of a conversation. */
const TURNS = 200
/** Conversations that one replay looks at. */
const MOST_CONVERSATIONS = 10_000
/** Turns before the one that runs again. */
const HISTORY = 50
const USUAL_LIMIT = 20

/** The newest turns of the caller's conversations in this time, oldest first. */
export async function findTurns(
  conversations: Conversations,
  replay: EvaluationReplay,
  ctx: CallContext
): Promise<readonly TurnRef[]> {
  const since = Date.parse(replay.since)
  const until = replay.until === undefined ? Number.POSITIVE_INFINITY : Date.parse(replay.until)
  const found: (TurnRef & { readonly at: number })[] = []
  for await (const conversationId of candidates(conversations, replay, since, ctx))
    for await (const turn of turnsOf(conversations, conversationId, ctx)) {
      const at = Date.parse(turn.at ?? '')
      if (at >= since && at < until && isComplete(turn))
        found.push({ name: `${conversationId}/${turn.number}`, conversationId, number: turn.number, at })
    }
  return found.toSorted((a, b) => a.at - b.at).slice(-(replay.limit ?? USUAL_LIMIT))
}

async function* candidates(
  conversations: Conversations,
  { conversation_id: named }: EvaluationReplay,
  since: number,
  ctx: CallContext
): AsyncGenerator<string> {
  if (named !== undefined) return yield named
  let left = MOST_CONVERSATIONS
  for (let cursor: string | undefined; left > 0; ) {
    const page = await conversations.list({ limit: PAGE, ...(cursor === undefined ? {} : { cursor }) }, ctx)
    for (const conversation of page.conversations) {
      // the newest come first
      if (left-- <= 0 || Date.parse(conversation.updatedAt) < since) return
      if (isOwn(conversation, ctx)) yield conversation.id
    }
    cursor = page.next
    if (cursor === undefined) return
  }
}

/** A principal replays its own turns, also one that sees those of others. svc itself runs for the operator of the home. */
const isOwn = ({ owner }: ConversationSummary, { principal: { id, scopes } }: CallContext) =>
  owner === id || (id === 'system' && scopes.includes('*'))

async function* turnsOf(conversations: Conversations, conversationId: string, ctx: CallContext): AsyncGenerator<TurnDetail> {
  for (let from: number | undefined = 1; from !== undefined; ) {
    const page: { readonly turns: readonly TurnDetail[]; readonly next?: number } = await conversations.turns(
      conversationId,
      { from, limit: TURNS },
      ctx
    )
    yield* page.turns
    from = page.next
  }
}

/** A turn that begins with a message of the user and has a whole reply. */
const isComplete = ({ messages }: TurnDetail) =>
  messages[0]?.role === 'user' && messages.at(-1)?.role === 'assistant' && messages.every(({ status }) => status === undefined)

/** Reads a stored turn with the turns before it. Throws TURN_UNKNOWN. */
export async function openTurn(
  conversations: Conversations,
  { conversationId, number, name }: TurnRef,
  replay: EvaluationReplay,
  ctx: CallContext
): Promise<StoredTurn> {
  const from = Math.max(1, number - HISTORY)
  const { turns } = await conversations.turns(conversationId, { from, limit: HISTORY + 1 }, ctx)
  const turn = turns.find(found => found.number === number)
  if (!turn || !isComplete(turn)) throw turnGone(name)
  const past = turns.filter(found => found.number < number).flatMap(({ messages }) => messages.map(messageOf))
  const [first] = turn.messages
  const reply = textOf(turn.messages.at(-1)!)
  const calls = turn.messages.flatMap(({ parts }) => parts.filter(part => part.type === 'tool_call'))
  return {
    messages: [...past, messageOf(first!)],
    input: textOf(first!),
    reply,
    calls: calls.flatMap(call => recordedCall(call, turn)),
    tools: calls.map(({ tool }) => tool),
    steps: turn.messages.flatMap(({ provider, model, usage }) =>
      provider === undefined || model === undefined || usage === undefined ? [] : [{ provider, model, usage }]
    ),
    checks: checksOf(reply, replay),
  }
}

const messageOf = ({ role, parts, provider }: MessageDetail): ModelMessage => ({
  role,
  parts,
  ...(provider === undefined ? {} : { provider }),
})

const textOf = ({ parts }: MessageDetail) => parts.map(part => (part.type === 'text' ? part.text : '')).join('')

function recordedCall({ id, tool, arguments: given }: ToolCallPart, { messages }: TurnDetail): RecordedCall[] {
  const results = messages.flatMap(({ parts }) => parts.filter(part => part.type === 'tool_result'))
  const result = results.find(part => part.id === id)
  return result ? [{ tool, arguments: given, result: { content: result.content, isError: result.isError } }] : []
}

const SAME_MEANING =
  'The reply has the same meaning as the reference: the same facts, decisions and answers. Wording, order and style do not matter.'

function checksOf(reply: string, { similarity, judge }: EvaluationReplay): EvaluationCheck[] {
  const compared = reply.trim() === '' || similarity === undefined ? [] : [{ similarity: { to: reply, threshold: similarity } }]
  const graded = judge === true ? [{ judge: { rubric: SAME_MEANING } }] : []
  return compared.length + graded.length > 0 ? [...compared, ...graded] : [{ exact: reply }]
}
