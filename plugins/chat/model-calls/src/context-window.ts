import { type CallContext, withTimeout } from '@svc/core'
import type { MessagePart, ModelMessage, ModelRequest, Provider, StoredMessage, ToolSpec, Usage } from '@svc/core/contracts'
import { cutContent } from '@svc/plugin-kit'
import { contextTooLong } from './errors.ts'
import { forProvider, paired, shaped } from './messages.ts'
import type { ModelCandidate } from './request.ts'

// A token has at least one byte. A text with fewer bytes than the window has tokens fits without a count.
const BYTES_A_CHARACTER = 3

/**
 * Shortens the request until it fits into the model's context window, in this order:
 * 1. cut tool results of past turns;
 * 2. drop whole past turns, oldest first, so that each call keeps its result;
 * 3. cut tool results of this turn, oldest first.
 * Throws MODEL_FAILED (context_too_long) if the shortest form does not fit. Without `past`, the request is not shortened.
 */
export async function fitContextWindow(
  request: ModelRequest,
  past: readonly (readonly StoredMessage[])[] | undefined,
  at: ModelCandidate,
  ctx: CallContext
): Promise<ModelRequest> {
  if (!past) return checkContextWindow(request, at, ctx)
  const { context, output } = at.info ?? {}
  // the first message of a conversation is never shortened
  const isFirst = past.length === 0 && !request.messages.some(message => message.role === 'assistant')
  const steps = isFirst ? undefined : stepsOf(request, past, at)
  const whole = steps ? steps.build(0) : request
  if (context === undefined || lengthOf(whole) * BYTES_A_CHARACTER < context) return whole
  const inputLimit = context - Math.min(request.maxTokens ?? output ?? 0, context / 2)
  const least = await tokensOf(whole, at, ctx)
  if (least <= inputLimit) return whole
  if (!steps && least > context) throw contextTooLong(at, context, least)
  return steps ? shortest(steps, inputLimit, context, at, ctx) : whole
}

/** The request for a caller who sends the whole conversation. Throws MODEL_FAILED (context_too_long). */
async function checkContextWindow(request: ModelRequest, at: ModelCandidate, ctx: CallContext): Promise<ModelRequest> {
  // the server judges its own protocol; a count can be a request of its own
  if (request.native) return request
  const isForeign = ({ role, provider }: ModelMessage) => role === 'assistant' && provider !== at.provider
  const seen = request.messages.some(isForeign)
    ? { ...request, messages: request.messages.map(message => forProvider(message, at.provider)) }
    : request
  const { context } = at.info ?? {}
  if (context === undefined || lengthOf(seen) * BYTES_A_CHARACTER < context) return seen
  const count = await tokensOf(seen, at, ctx)
  if (count > context) throw contextTooLong(at, context, count)
  return seen
}

/** The first step that leaves room for an answer; otherwise the last step, if it fits. */
async function shortest(
  steps: Steps,
  inputLimit: number,
  context: number,
  at: ModelCandidate,
  ctx: CallContext
): Promise<ModelRequest> {
  const countAt = (step: number) => tokensOf(steps.build(step), at, ctx)
  const step = await firstThatFits(1, steps.count, async item => (await countAt(item)) <= inputLimit)
  if (step < steps.count) return steps.build(step)
  const count = await countAt(steps.count - 1)
  if (count > context) throw contextTooLong(at, context, count)
  return steps.build(steps.count - 1)
}

const COUNT_MS = 2_000

/** Tokens of a request, counted by its provider, or estimated if the provider fails to count. */
export function tokensOf(request: ModelRequest, { source }: ModelCandidate, ctx: CallContext): Promise<number> {
  return withTimeout(COUNT_MS, signal => source.countTokens(request, { ...ctx, signal }), ctx).catch(() => {
    ctx.signal.throwIfAborted()
    return estimated(JSON.stringify([request.messages, request.tools ?? []]))
  })
}

/** A request in forms of decreasing length. */
interface Steps {
  readonly count: number
  build(step: number): ModelRequest
}

/** Characters to which step 1 cuts a tool result of a past turn. */
const PAST_RESULT = 2_000
/** Characters to which step 3 cuts a tool result of this turn. */
const OLD_RESULT = 200
/** Characters to which the results of the last model step are cut, one limit after the other, as the last resort. */
const LAST_RESULTS = [20_000, 5_000, 1_000, OLD_RESULT]

function stepsOf(request: ModelRequest, past: readonly (readonly StoredMessage[])[], at: ModelCandidate): Steps {
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

/** Cuts the `steps` oldest tool results of a turn. After these, it cuts the results of the last model step. */
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

/** Cuts the first `count` tool results of a message to `limit` characters and adds a note. */
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

// all turns of a mode share the same list
const lengths = new WeakMap<readonly ToolSpec[], number>()

function toolsLength(tools: readonly ToolSpec[]): number {
  const length = lengths.get(tools) ?? JSON.stringify(tools).length
  lengths.set(tools, length)
  return length
}

/** The lowest step from `from` that fits, by binary search: a later step is never longer. Returns `count` if no step fits. */
async function firstThatFits(from: number, count: number, fits: (step: number) => Promise<boolean>): Promise<number> {
  let [low, high] = [from, count]
  while (low < high) {
    const middle = (low + high) >> 1
    if (await fits(middle)) high = middle
    else low = middle + 1
  }
  return low
}

const LIMIT_MS = 1_000
/** A text of one token for every tokenizer. */
const ONE = '.'

/**
 * Returns the usage of a call that ended before its provider reported usage.
 * The provider counts the tokens. If it is unreachable, the usage is estimated.
 */
export async function countTokens(
  provider: Provider | undefined,
  request: ModelRequest,
  answer: StoredMessage,
  ctx: CallContext
): Promise<Usage> {
  const said = answer.parts.map(textOfPart).join('')
  const estimate = { input: estimated(JSON.stringify(request.messages)), output: estimated(said) }
  if (!provider) return estimate
  const { native: _native, ...counted } = request
  const count = async (signal: AbortSignal): Promise<Usage> => {
    const ask = (modelRequest: ModelRequest) => provider.countTokens(modelRequest, { ...ctx, signal })
    const alone = (text: string) => ask({ model: request.model, messages: [userSays(text)] })
    const [input, whole, found] = await Promise.all([ask(counted), alone(said), alone(ONE)])
    return { input, output: Math.max(0, whole - found + 1) }
  }
  return withTimeout(LIMIT_MS, count, ctx).catch(() => estimate)
}

const userSays = (text: string): ModelMessage => ({ role: 'user', parts: [{ type: 'text', text }] })

const BYTES_A_TOKEN = 4
const estimated = (text: string) => Math.ceil(Buffer.byteLength(text) / BYTES_A_TOKEN)

function textOfPart(part: MessagePart): string {
  if (part.type === 'text' || part.type === 'reasoning') return part.text
  return part.type === 'tool_call' ? `${part.tool}${JSON.stringify(part.arguments)}` : ''
}
