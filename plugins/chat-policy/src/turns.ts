import type { ModelRef, TurnDone } from '@svc/core/contracts'

/** The models that turns would have had without the draw, by the id of their request; forgotten at their end. */
export interface Turns {
  own(requestId: string): ModelRef | undefined
  keep(requestId: string, own: ModelRef): void
  /** For a tap of `Chat.hooks.end`. */
  readonly ended: (done: TurnDone) => void
}

/** Those of turns whose end was never told must not pile up. */
const MOST = 10_000

export function createTurns(): Turns {
  const turns = new Map<string, ModelRef>()
  return {
    own: requestId => turns.get(requestId),
    keep(requestId, own) {
      if (turns.size >= MOST) turns.delete(turns.keys().next().value ?? '')
      turns.set(requestId, own)
    },
    ended: ({ end }) => void turns.delete(end.requestId),
  }
}
