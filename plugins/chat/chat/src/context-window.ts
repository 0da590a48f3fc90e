import { type CallContext, withTimeout } from '@svc/core'
import type { MessagePart, ModelMessage, ModelRequest, StoredMessage, ToolSpec } from '@svc/core/contracts'
import type { Candidate } from './turn.ts'
import { estimated } from './count.ts'
import { contextTooLong } from './errors.ts'
import { forProvider, paired, shaped } from './messages.ts'
import { cutContent } from './tool-result.ts'

// A token stands for at least one byte; so text of fewer bytes than the window has tokens fits without being counted.
const BYTES_A_CHARACTER = 3

/**
 * The request with as much of the past as the model's context holds. What has to go, in this order: the length of old tool results; whole turns, oldest first,
 * so that no call loses its result; in the turn itself the length of tool results, oldest first. Throws MODEL_FAILED (context_too_long) where nothing helps.
 */
export async function fitContextWindow(
  request: ModelRequest,
  past: readonly (readonly StoredMessage[])[],
  at: Candidate,
  ctx: CallContext
): Promise<ModelRequest> {
  const { context, output } = at.info ?? {}
  // the first words of a conversation are as they are
  const isFirst = past.length === 0 && !request.messages.some(message => message.role === 'assistant')
  const steps = isFirst ? undefined : stepsOf(request, past, at)
  const whole = steps ? steps.build(0) : request
  if (context === undefined || lengthOf(whole) * BYTES_A_CHARACTER < context) return whole
  const room = context - Math.min(request.maxTokens ?? output ?? 0, context / 2)
  const least = await tokensOf(whole, at, ctx)
  if (least <= room) return whole
  if (!steps && least > context) throw contextTooLong(at, context, least)
  return steps ? shortest(steps, room, context, at, ctx) : whole
}

/** The first step that leaves room for an answer; else the last one, if it fits at all. */
async function shortest(steps: Steps, room: number, context: number, at: Candidate, ctx: CallContext): Promise<ModelRequest> {
  const countAt = (step: number) => tokensOf(steps.build(step), at, ctx)
  const step = await firstThatFits(1, steps.count, async one => (await countAt(one)) <= room)
  if (step < steps.count) return steps.build(step)
  const count = await countAt(steps.count - 1)
  if (count > context) throw contextTooLong(at, context, count)
  return steps.build(steps.count - 1)
}

const COUNT_MS = 2_000

/** Tokens of a request as its provider counts them; estimated where it does not say. */
export function tokensOf(request: ModelRequest, { source }: Candidate, ctx: CallContext): Promise<number> {
  return withTimeout(COUNT_MS, signal => source.countTokens(request, { ...ctx, signal }), ctx).catch(() => {
    ctx.signal.throwIfAborted()
    return estimated(JSON.stringify([request.messages, request.tools ?? []]))
  })
}

/** A request in ever shorter forms. */
interface Steps {
  readonly count: number
  build(step: number): ModelRequest
}

/** Characters that a tool result of the past keeps, and one of this turn that has to make room. */
const PAST_RESULT = 2_000
const OLD_RESULT = 200
/** What the results of the last round are cut to, where nothing else is left to go. */
const LAST_RESULTS = [20_000, 5_000, 1_000, OLD_RESULT]

function stepsOf(request: ModelRequest, past: readonly (readonly StoredMessage[])[], at: Candidate): Steps {
  const seen = (message: StoredMessage) => forProvider(message, at.provider)
  const turns = past.map(turn => shaped(paired(turn).map(seen), at.features))
  const begins = request.messages.findIndex(message => message.role !== 'system')
  const system = request.messages.slice(0, begins)
  const own = request.messages.slice(begins).map(seen)
  return {
    get count() {
      return 2 + turns.length + countOwnSteps(own)
    },
    build(step) {
      const left = turns.slice(Math.max(0, step - 1)).flat()
      const history = step === 0 ? left : left.map(message => cutResults(message, PAST_RESULT))
      return { ...request, messages: [...system, ...history, ...shortened(own, step - 1 - turns.length)] }
    },
  }
}

const resultsIn = (message: ModelMessage) => message.parts.filter(part => part.type === 'tool_result').length

function countOwnSteps(own: readonly ModelMessage[]): number {
  const results = own.map(resultsIn).filter(count => count > 0)
  return results.length === 0 ? 0 : results.slice(0, -1).reduce((sum, count) => sum + count, 0) + LAST_RESULTS.length
}

/** A turn with so many of its oldest tool results cut short; once they all are, those of the last round too. */
function shortened(own: readonly ModelMessage[], steps: number): readonly ModelMessage[] {
  if (steps <= 0) return own
  const last = own.findLastIndex(message => message.role === 'tool')
  let left = steps
  const cut = own.map((message, at) => {
    if (message.role !== 'tool' || at === last) return message
    const count = Math.min(left, resultsIn(message))
    left -= count
    return cutResults(message, OLD_RESULT, count)
  })
  const cap = LAST_RESULTS[left - 1]
  return cap === undefined ? cut : cut.map((message, at) => (at === last ? cutResults(message, cap) : message))
}

/** The first `count` tool results of a message, cut to so many characters with a note. */
function cutResults(message: ModelMessage, limit: number, count: number = message.parts.length): ModelMessage {
  if (message.role !== 'tool' || count === 0) return message
  const cut = (part: MessagePart, at: number) =>
    part.type === 'tool_result' && at < count ? { ...part, content: cutContent(part.content, limit, limit) } : part
  return { ...message, parts: message.parts.map(cut) }
}

const lengthOf = ({ messages, tools }: ModelRequest) =>
  messages.reduce((sum, message) => sum + 20 + message.parts.reduce((all, part) => all + partLength(part), 0), 0) +
  (tools ? toolsLength(tools) : 0)

const partLength = (part: MessagePart) => (part.type === 'text' ? part.text.length : JSON.stringify(part).length)

// the list of a mode is the same for all its turns
const lengths = new WeakMap<readonly ToolSpec[], number>()

function toolsLength(tools: readonly ToolSpec[]): number {
  const length = lengths.get(tools) ?? JSON.stringify(tools).length
  lengths.set(tools, length)
  return length
}

/** The lowest number from `low` that fits, by halving: a later step never needs more room. `count` when none does. */
async function firstThatFits(from: number, count: number, fits: (step: number) => Promise<boolean>): Promise<number> {
  let [low, high] = [from, count]
  while (low < high) {
    const middle = (low + high) >> 1
    if (await fits(middle)) high = middle
    else low = middle + 1
  }
  return low
}
