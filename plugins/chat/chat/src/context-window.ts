import { type CallContext, withTimeout } from '@svc/core'
import type {
  MessagePart,
  ModelInfo,
  ModelMessage,
  ModelRef,
  ModelRequest,
  Provider,
  StoredMessage,
  ToolSpec,
  Usage,
} from '@svc/core/contracts'
import { contextTooLong, invalid, modelBroke, modelsLate, turnTimeout, unfit } from './errors.ts'
import { cutContent, forProvider, hasImage, paired, shaped } from './messages.ts'
import type { ModelCandidate, ChatServices, Turn } from './turn.ts'

// A token has at least one byte. A text with fewer bytes than the window has tokens fits without a count.
const BYTES_A_CHARACTER = 3

/**
 * Shortens the request until it fits into the model's context window, in this order:
 * 1. cut tool results of past turns;
 * 2. drop whole past turns, oldest first, so that each call keeps its result;
 * 3. cut tool results of this turn, oldest first.
 * Throws MODEL_FAILED (context_too_long) if the shortest form does not fit.
 */
export async function fitContextWindow(
  request: ModelRequest,
  past: readonly (readonly StoredMessage[])[],
  at: ModelCandidate,
  ctx: CallContext
): Promise<ModelRequest> {
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

/** Time limit for the model list of a provider. */
const LIST_MS = 5_000

/** Returns the model that the turn calls now. Replaces an alias with the real name. Throws MODEL_FAILED. */
export async function candidateOf(services: ChatServices, turn: Turn, ctx: CallContext): Promise<ModelCandidate> {
  const { who, known, selected } = turn
  const source = services.providers.get(who.provider)
  // the provider existed at selection; its plugin can have been unloaded since
  if (!source) throw unfit(who.provider, `provider "${who.provider}" is not available`)
  if (known && known.source === source && sameModel(known, who)) return known
  if (selected.info && sameModel(selected, who)) return (turn.known = candidate(source, who, selected.info))
  const resolved = await listed(services, turn, source, ctx)
  turn.who = { provider: resolved.provider, model: resolved.model }
  return (turn.known = resolved)
}

/** Whether both are the same model of the same provider. */
export const sameModel = (modelRef: ModelRef, other: ModelRef) =>
  modelRef.model === other.model && modelRef.provider === other.provider

function candidate(source: Provider, { provider, model }: ModelRef, info: ModelInfo | undefined): ModelCandidate {
  const features = info?.features ? { ...source.features, ...info.features } : source.features
  return { source, provider, model, info, features }
}

async function listed(
  { aliases, config }: ChatServices,
  { who, until, limitMs }: Turn,
  source: Provider,
  ctx: CallContext
): Promise<ModelCandidate> {
  const ms = Math.min(LIST_MS, config.first_token_timeout_ms)
  const left = Math.max(0, until - performance.now())
  const late = () => (left < ms ? turnTimeout(who.provider, limitMs) : modelsLate(who.provider, ms))
  const list = await withTimeout(Math.min(ms, left), signal => source.models({ ...ctx, signal }), { signal: ctx.signal, late })
  const infoOf = (id: string) => list.models.find(model => model.id === id)
  const alias = infoOf(who.model) ? undefined : aliases.get(who.model)
  const real = alias?.provider === who.provider ? alias : who
  const info = infoOf(real.model)
  if (!info && !list.open) throw unfit(who.provider, `provider "${who.provider}" has no model "${who.model.slice(0, 100)}"`)
  return candidate(source, real, info)
}

/**
 * Adapts a request to the features of a model.
 * Throws INVALID_VALUE if the caller requests a feature that the selected model lacks.
 * Drops the feature if a profile or mode requests it, or if another model answers in place of the selected model.
 * Throws MODEL_FAILED if such another model cannot call the tools that the caller names.
 */
export function adaptToModel(request: ModelRequest, at: ModelCandidate, turn: Turn): ModelRequest {
  if (takesAll(request, at)) return request
  const isSelected = sameModel(at, turn.selected)
  const { temperature, maxTokens, tools, indexed, messages, ...same } = request
  const keepsTools = tools !== undefined && takesTools(at, turn, isSelected)
  return {
    ...same,
    model: at.model,
    messages: shaped(messages, at.features),
    ...(keepsTools ? { tools, ...(indexed ? { indexed } : {}) } : {}),
    ...(temperature !== undefined && takesTemperature(at, turn, isSelected) ? { temperature } : {}),
    ...(maxTokens === undefined ? {} : { maxTokens: outputOf(maxTokens, at, turn, isSelected) }),
  }
}

const takesAll = ({ model, messages, temperature, maxTokens }: ModelRequest, at: ModelCandidate) =>
  at.features.tool_calling &&
  (at.features.vision || !messages.some(hasImage)) &&
  model === at.model &&
  (temperature === undefined || at.info?.temperature !== false) &&
  (maxTokens === undefined || at.info?.output === undefined || maxTokens <= at.info.output)

function takesTools({ features, provider, model }: ModelCandidate, { asked }: Turn, isSelected: boolean): boolean {
  if (features.tool_calling || !asked.tools) return features.tool_calling
  if (!isSelected) throw unfit(provider, `the model ${model} does not support tools`)
  throw invalid('tools', `cannot be used by the model ${model}: the model does not support tools`, {
    value: asked.tools.slice(0, 20),
  })
}

function takesTemperature({ info, model }: ModelCandidate, { asked }: Turn, isSelected: boolean): boolean {
  if (info?.temperature !== false) return true
  if (asked.temperature === undefined || !isSelected) return false
  throw invalid('temperature', `is not supported by the model ${model}`, { value: asked.temperature })
}

function outputOf(maxTokens: number, { info, model }: ModelCandidate, { asked }: Turn, isSelected: boolean): number {
  if (info?.output === undefined || maxTokens <= info.output) return maxTokens
  if (asked.maxTokens === undefined || !isSelected) return info.output
  throw invalid('max_tokens', `must be at most ${info.output} for the model ${model}`, { value: maxTokens, limit: info.output })
}

/** The taps of `modelCall` keep switching the turn between models. */
export const tooManySwitches = (provider: string) => modelBroke(provider, 'was replaced too many times by plugins')

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
  const count = async (signal: AbortSignal): Promise<Usage> => {
    const ask = (modelRequest: ModelRequest) => provider.countTokens(modelRequest, { ...ctx, signal })
    const alone = (text: string) => ask({ model: request.model, messages: [userSays(text)] })
    const [input, whole, found] = await Promise.all([ask(request), alone(said), alone(ONE)])
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
