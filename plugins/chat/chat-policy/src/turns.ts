import type { ModelRef, TurnDone } from '@svc/core/contracts'

/** The models that turns would have had without the draw; forgotten at their end. */
export interface Turns {
  own(turn: string): ModelRef | undefined
  keep(turn: string, own: ModelRef): void
  /** For a tap of `Chat.hooks.end`. */
  readonly ended: (done: TurnDone) => void
}

/** Those of turns whose end was never told must not pile up. */
const MOST = 10_000

/** Makes an empty one. */
export function createTurns(): Turns {
  const turns = new Map<string, ModelRef>()
  return {
    own: turn => turns.get(turn),
    keep(turn, own) {
      if (turns.size >= MOST) turns.delete(turns.keys().next().value ?? '')
      turns.set(turn, own)
    },
    ended: ({ turn }) => void turns.delete(turn),
  }
}
