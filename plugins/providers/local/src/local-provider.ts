import { setTimeout } from 'node:timers/promises'
import type { ModelEvent, ModelRequest, Provider } from '@svc/core/contracts'
import { unknownModel } from './errors.ts'
import { type LocalModel, type LocalTurn, type Plan, planReply, readTurn } from './plan.ts'
import { countInput, loadTokens, type Tokens } from './tokens.ts'

/** The models it has unless the configuration says otherwise; the first is the default, the second is for trimming. */
export const MODELS: readonly LocalModel[] = [
  { id: 'local-1', context: 1_048_576, output: 4096 },
  { id: 'local-small', context: 8192, output: 1024 },
]

/** An entry of `providers` of type `local`. */
export interface LocalConfig {
  readonly models: readonly LocalModel[]
}

/** A provider without a model: it restates the message, counts with a real tokenizer, and does what the message's directives say. */
export function createLocalProvider({ models }: LocalConfig): Provider {
  const byId = new Map(models.map(model => [model.id, model]))
  let loading: Promise<Tokens> | undefined
  const tokens = () => (loading ??= loadTokens())
  const plan = async (request: ModelRequest, turn: LocalTurn, signal: AbortSignal): Promise<Plan> => {
    const model = byId.get(request.model)
    if (!model) throw unknownModel(request.model, [...byId.keys()])
    return planReply(await tokens(), model, request, turn, signal)
  }
  return {
    features: { tool_calling: true, streaming: true, vision: false },
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
    async probe() {},
  }
}

type Stream = AsyncIterableIterator<ModelEvent, undefined, undefined>
const END: IteratorReturnResult<undefined> = { done: true, value: undefined }

/**
 * Plays a plan as fast as it is read. An iterator by hand: an async generator costs three turns of the microtask queue for each piece, and this is
 * what a load run spends its time in.
 */
function play(begin: () => Promise<Plan>, signal: AbortSignal): Stream {
  let begun: Promise<Plan> | undefined
  let plan: Plan | undefined
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

/** Plays a plan with a wait before the first piece and between two of them. */
async function* playSlowly(
  begin: () => Promise<Plan>,
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
    // The timer's own AbortError hides why.
    signal.throwIfAborted()
    throw error
  }
}
