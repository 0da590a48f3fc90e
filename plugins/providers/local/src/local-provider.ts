import type { ModelRequest, Provider } from '@svc/core/contracts'
import { unknownModel } from './errors.ts'
import { countInput } from './input.ts'
import type { LocalModel } from './models.ts'
import { type Plan, planReply } from './plan.ts'
import { play, playSlowly } from './stream.ts'
import { loadTokens, type Tokens } from './tokens.ts'
import { type LocalTurn, readTurn } from './turn.ts'

/** An entry of `providers` of type `local`. */
export interface LocalConfig {
  readonly models: readonly LocalModel[]
}

/** A provider without a model: it restates what it is told, counts with a real tokenizer, and does what the message's directives say. */
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
