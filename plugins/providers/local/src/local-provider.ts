import { setTimeout } from 'node:timers/promises'
import type { SvcError } from '@svc/core'
import type { ModelEvent, ModelFeature, ModelRequest, Provider, TokenLogprob } from '@svc/core/contracts'
import { embedTexts } from './embeddings.ts'
import { contextTooLong, requestedFailure, unknownModel } from './errors.ts'
import { hashOf, isPlain, type LocalTurn, plainReply, readTurn, replyTo, type RequestedTool, thoughtsOf } from './reply.ts'
import { countInput, loadTokens, type TextTokenizer } from './tokens.ts'

/** A model of this provider, with its limits in tokens. */
interface LocalModel {
  readonly id: string
  readonly context: number
  readonly output: number
}

/** All events of a call in order, and the error at its end, if any. */
interface ReplyPlan {
  readonly events: readonly ModelEvent[]
  readonly failure?: SvcError
}

/** The models if the configuration names none. The first is the default. The second has a small context, to test trimming. */
export const MODELS: readonly LocalModel[] = [
  { id: 'local-1', context: 1_048_576, output: 4096 },
  { id: 'local-small', context: 8192, output: 1024 },
]

/** An entry of `providers` of type `local`. */
export interface LocalConfig {
  readonly models: readonly LocalModel[]
}

/** Not supported: penalties and a bias of tokens, because no tokens are sampled; cache hints, because there is no cache. */
const SUPPORTS: readonly ModelFeature[] = [
  'stop',
  'top_p',
  'top_k',
  'seed',
  'n',
  'logprobs',
  'reasoning_effort',
  'parallel_tool_calls',
  'strict_tools',
  'tool_choice',
  'json',
  'response_schema',
  'high_temperature',
  'image_urls',
  'files',
  'audio',
  'tool_call_deltas',
  'embeddings',
]

/** A provider without a real model: it restates the message, counts with a real tokenizer, and follows the directives of the message. */
export function createLocalProvider({ models }: LocalConfig): Provider {
  const byId = new Map(models.map(model => [model.id, model]))
  let loading: Promise<TextTokenizer> | undefined
  const tokens = () => (loading ??= loadTokens())
  const modelOf = (id: string): LocalModel => {
    const model = byId.get(id)
    if (!model) throw unknownModel(id, [...byId.keys()])
    return model
  }
  const plan = async (request: ModelRequest, turn: LocalTurn, signal: AbortSignal): Promise<ReplyPlan> => {
    const model = modelOf(request.model)
    return planReply(await tokens(), model, request, turn, signal)
  }
  return {
    features: { tool_calling: true, streaming: true, vision: true, supports: SUPPORTS },
    async models() {
      return { models, open: false }
    },
    async countTokens(request, { signal }) {
      signal.throwIfAborted()
      return countInput(await tokens(), request, signal)
    },
    chat(request, { signal }) {
      const turn = readTurn(request)
      const begin = () => plan(request, turn, signal)
      return turn.delayMs > 0 || turn.paceMs > 0 ? playSlowly(begin, turn.delayMs, turn.paceMs, signal) : play(begin, signal)
    },
    async embed(request, { signal }) {
      signal.throwIfAborted()
      modelOf(request.model)
      return embedTexts(await tokens(), request, signal)
    },
    async probe() {},
  }
}

type Stream = AsyncIterableIterator<ModelEvent, undefined, undefined>
const END: IteratorReturnResult<undefined> = { done: true, value: undefined }

/**
 * Plays a plan as fast as the caller reads it. A hand-written iterator: an async generator costs three microtasks for each piece, which dominates
 * the time of a load test.
 */
function play(begin: () => Promise<ReplyPlan>, signal: AbortSignal): Stream {
  let begun: Promise<ReplyPlan> | undefined
  let plan: ReplyPlan | undefined
  let at = 0
  let over = false
  const end = (error?: unknown) => {
    over = true
    return error === undefined ? Promise.resolve(END) : Promise.reject(error)
  }
  const start = async () => {
    try {
      plan = await (begun ??= begin())
    } catch (error) {
      return end(error)
    }
    return next()
  }
  const next = (): Promise<IteratorResult<ModelEvent, undefined>> => {
    if (over) return Promise.resolve(END)
    if (signal.aborted) return end(signal.reason)
    if (!plan) return start()
    const value = plan.events[at++]
    return value ? Promise.resolve({ done: false, value }) : end(plan.failure)
  }
  return { next, return: () => end(), [Symbol.asyncIterator]: asItself }
}

function asItself(this: Stream): Stream {
  return this
}

/** Plays a plan with a delay before the first piece and between two pieces. */
async function* playSlowly(
  begin: () => Promise<ReplyPlan>,
  delayMs: number,
  paceMs: number,
  signal: AbortSignal
): AsyncGenerator<ModelEvent, undefined> {
  const plan = await begin()
  await wait(delayMs, signal)
  let first = true
  for (const event of plan.events) {
    if (!first && event.type === 'text') await wait(paceMs, signal)
    first = false
    signal.throwIfAborted()
    yield event
  }
  if (plan.failure) throw plan.failure
}

async function wait(ms: number, signal: AbortSignal): Promise<void> {
  if (ms === 0) return
  try {
    await setTimeout(ms, undefined, { signal })
  } catch (error) {
    // The AbortError of the timer hides the reason of the signal.
    signal.throwIfAborted()
    throw error
  }
}

// --- the answer ---

/** The input of an answer. */
interface Order {
  readonly tokens: TextTokenizer
  readonly request: ModelRequest
  readonly turn: LocalTurn
  /** Maximum output tokens. */
  readonly room: number
  readonly signal: AbortSignal
}

type Finish = Extract<ModelEvent, { type: 'finish' }>

/** One answer without its usage and its end. */
interface Answer {
  readonly events: ModelEvent[]
  readonly output: number
  readonly reasoning: number
  readonly finish: Finish
}

const STOP: Finish = { type: 'finish', reason: 'stop' }
const LENGTH: Finish = { type: 'finish', reason: 'length' }
const CALLS: Finish = { type: 'finish', reason: 'tool_calls' }

/** Computes the whole answer before its first piece is sent. Throws MODEL_FAILED if the messages exceed the context of the model. */
async function planReply(
  tokens: TextTokenizer,
  model: LocalModel,
  request: ModelRequest,
  turn: LocalTurn,
  signal: AbortSignal
): Promise<ReplyPlan> {
  const input = await countInput(tokens, request, signal)
  if (input > model.context) throw contextTooLong(model.id, model.context, input)
  const room = Math.min(request.maxTokens ?? model.output, model.output, Math.max(1, model.context - input))
  const order: Order = { tokens, request, turn, room, signal }
  const first = await answer(order, 0)
  if (turn.fail && first.finish !== CALLS)
    return fail(first.events, turn.fail.after, requestedFailure(turn.fail.kind, { limit: model.context, count: input }))
  return request.n === undefined || request.n === 1 ? end(first, input) : planChoices(order, first, input, request.n)
}

function end({ events, output, reasoning, finish }: Answer, input: number): ReplyPlan {
  events.push({ type: 'usage', usage: reasoning > 0 ? { input, output, reasoning } : { input, output } }, finish)
  return { events }
}

/** The answers of `n`: the later ones, then the first, whose end is the end of the call. */
async function planChoices(order: Order, first: Answer, input: number, n: number): Promise<ReplyPlan> {
  const events: ModelEvent[] = []
  let [output, reasoning] = [first.output, first.reasoning]
  for (let choice = 1; choice < n; choice++) {
    const other = await answer(order, choice)
    // The events of texts are shared with a cache.
    for (const event of [...other.events, other.finish]) events.push({ ...event, choice } as ModelEvent)
    output += other.output
    reasoning += other.reasoning
  }
  events.push(...first.events)
  return end({ events, output, reasoning, finish: first.finish }, input)
}

/** Nearly all answers of a load test are plain, and take the shortest way through this function. */
async function answer(order: Order, choice: number): Promise<Answer> {
  const { request, turn } = order
  const thought = thinks(request) ? await think(order) : undefined
  const room = order.room - (thought?.output ?? 0)
  const reply = isPlain(request, turn) ? plainReply(request, turn, choice) : await replyTo(request, turn, choice)
  const made = await ('calls' in reply ? planCalls(order, reply.calls, choice) : say(order, reply.say, room))
  if (!thought) return made
  return {
    events: [...thought.events, ...made.events],
    output: made.output + thought.output,
    reasoning: thought.output,
    finish: made.finish,
  }
}

const fail = (events: readonly ModelEvent[], after: number, failure: SvcError): ReplyPlan => ({
  events: events.slice(0, after),
  failure,
})

/** True if a text can be sent as one piece: the reply is gathered, and nothing counts or delays pieces. */
const isWhole = ({ gathered, logprobs }: ModelRequest, { fail: failing, paceMs }: LocalTurn) =>
  gathered === true && logprobs === undefined && !failing && paceMs === 0

async function say({ tokens, request, turn, signal }: Order, reply: readonly string[], room: number): Promise<Answer> {
  const { stop, logprobs } = request
  const cut = stop === undefined ? undefined : beforeStop(reply, stop)
  const whole = isWhole(request, turn)
  const events: ModelEvent[] = []
  let output = 0
  for (const text of cut?.texts ?? reply) {
    const pieces = await tokens.pieces(text, room - output, signal)
    if (whole && pieces.total > 0 && output + pieces.total <= room) {
      output += pieces.total
      events.push({ type: 'text', text })
      continue
    }
    for (let at = 0; at < pieces.parts.length; at++) {
      if (output + pieces.tokens[at]! > room) return { events, output, reasoning: 0, finish: LENGTH }
      output += pieces.tokens[at]!
      events.push(pieces.parts[at]!)
      if (logprobs !== undefined) events.push(logprobsOf(pieces.parts[at]!.text, logprobs))
    }
  }
  return { events, output, reasoning: 0, finish: cut?.stopText === undefined ? STOP : { ...STOP, stopText: cut.stopText } }
}

/** Cuts a reply before the first of the texts that end it. */
function beforeStop(texts: readonly string[], stops: readonly string[]): { texts: readonly string[]; stopText?: string } {
  const whole = texts.join('')
  let [at, stopText]: [number, string | undefined] = [whole.length, undefined]
  for (const stop of stops) {
    const found = stop === '' ? -1 : whole.indexOf(stop)
    if (found >= 0 && found < at) [at, stopText] = [found, stop]
  }
  if (stopText === undefined) return { texts }
  return { texts: at === 0 ? [] : [whole.slice(0, at)], stopText }
}

const thinks = ({ reasoningEffort, reasoningTokens }: ModelRequest) =>
  reasoningEffort !== undefined || reasoningTokens !== undefined

/** The reasoning before the answer. */
async function think({ tokens, request, turn, room, signal }: Order): Promise<{ events: ModelEvent[]; output: number }> {
  const text = thoughtsOf(request, turn)
  const most = Math.min(request.reasoningTokens ?? room, room)
  if (text === '' || most < 1) return { events: [], output: 0 }
  const pieces = await tokens.pieces(text, most, signal)
  const events: ModelEvent[] = []
  let output = 0
  for (let at = 0; at < pieces.parts.length && output + pieces.tokens[at]! <= most; at++) {
    output += pieces.tokens[at]!
    events.push({ type: 'reasoning', text: pieces.parts[at]!.text })
  }
  return { events, output }
}

async function planCalls(
  { tokens, request, turn, signal }: Order,
  calls: readonly RequestedTool[],
  choice: number
): Promise<Answer> {
  const step = turn.results.length
  const made = calls.map((call, at) => ({
    id: `call_${turn.number}_${step + at + 1}${choice === 0 ? '' : `_${choice}`}`,
    ...call,
  }))
  const written = calls.flatMap(call => [call.tool, JSON.stringify(call.arguments)])
  const output = await tokens.count(written, signal)
  const deltas: ModelEvent[] = []
  if (request.toolCallDeltas)
    for (const [index, { id, tool, arguments: args }] of made.entries())
      for (const text of piecesOf(JSON.stringify(args))) deltas.push({ type: 'tool_call_delta', index, id, tool, text })
  const events = [...deltas, ...made.map((call): ModelEvent => ({ type: 'tool_call', ...call }))]
  return { events, output, reasoning: 0, finish: CALLS }
}

const PIECE = 16

/** Text in pieces of whole characters. */
function piecesOf(text: string): string[] {
  const pieces: string[] = []
  for (let from = 0; from < text.length; ) {
    const unit = text.charCodeAt(from + PIECE - 1)
    const to = from + PIECE + (unit >= 0xd800 && unit <= 0xdbff ? 1 : 0)
    pieces.push(text.slice(from, to))
    from = to
  }
  return pieces
}

/** Tokens that could have stood in the place of another. */
const OTHERS = ' the, a, of, and, to, in, is, it, that, for, on, with, as, at, by, an, be, this, from, or, not'.split(',')

/** The log probability of a piece of text, with `alternatives` less likely tokens. The same text always has the same. */
function logprobsOf(text: string, alternatives: number): ModelEvent {
  // The probability of the token is between 0.6 and 0.99.
  const probability = 0.6 + (hashOf(text) % 400) / 1000
  const said = tokenOf(text, probability)
  if (alternatives <= 0) return { type: 'logprobs', tokens: [said] }
  let rest = 1 - probability
  const others = OTHERS.filter(token => token !== text)
    .slice(0, alternatives - 1)
    .map(token => {
      rest /= 2
      return tokenOf(token, rest)
    })
  return { type: 'logprobs', tokens: [{ ...said, top: [said, ...others] }] }
}

const tokenOf = (token: string, probability: number): TokenLogprob => ({
  token,
  logprob: Math.log(probability),
  bytes: [...Buffer.from(token)],
})
