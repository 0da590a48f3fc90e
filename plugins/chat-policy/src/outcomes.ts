import type { Use } from '@svc/core'
import type { ModelCall, ModelDone, ModelFailed } from '@svc/core/contracts'
import type { Breakers } from './breakers.ts'
import { keyOf, plainRef } from './chain.ts'
import { isModels } from './failures.ts'

/** Tells the breakers what came of the calls, each once. */
export interface Outcomes {
  /** A failure before the first event, told before it is decided what follows. */
  failed(call: ModelFailed, use: Use): Promise<void>
  /** For a tap of `Chat.hooks.modelDone`. */
  readonly done: (done: ModelDone, use: Use) => Promise<void> | undefined
}

/** Marks whose `modelDone` never came must not pile up. */
const MOST = 10_000

export function createOutcomes(breakers: Breakers): Outcomes {
  const told = new Set<string>()
  return {
    async failed(call, use) {
      if (!isModels(call.failure)) return
      if (told.size >= MOST) told.clear()
      told.add(tryOf(call, use))
      await breakers.failed(plainRef(call.selected), callOf(call, use))
    },
    // no promise where all is well
    done(done, use) {
      if ((told.size > 0 && told.delete(tryOf(done, use))) || done.answered) return undefined
      const [ref, call] = [plainRef(done.selected), callOf(done, use)]
      if (done.failure && isModels(done.failure)) return breakers.failed(ref, call)
      return isAnswer(done) ? breakers.succeeded(ref, call) : breakers.abandoned(ref, call)
    },
  }
}

/** Whether the model has said anything: that what it was asked is wrong is an answer too. */
const isAnswer = ({ failure, events, firstMs }: ModelDone) => failure !== undefined || events !== undefined || firstMs > 0

/** A round of a turn has one call at a time. */
export const callOf = ({ round }: ModelCall, { requestId }: Use): string => `${requestId} ${round}`
const tryOf = (call: ModelCall, use: Use) => `${callOf(call, use)} ${call.attempt} ${keyOf(call.selected)}`
