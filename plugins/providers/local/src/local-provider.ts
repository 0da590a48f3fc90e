import { setTimeout } from 'node:timers/promises'
import type { ModelEvent, ModelFeature, ModelRequest, Provider } from '@svc/core/contracts'
import { unknownModel } from './errors.ts'
import { type LocalTurn, readTurn } from './reply.ts'
import { embedTexts } from './embeddings.ts'
import { type LocalModel, type ReplyPlan, planReply } from './plan.ts'
import { countInput, loadTokens, type TextTokenizer } from './tokens.ts'

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
