import type { ModelCall, ModelDone, ModelFailed } from '@svc/core/contracts'
import type { Breakers } from './breakers.ts'
import { keyOf, plainRef } from './chain.ts'
import { isModels, isOfQuestion } from './failures.ts'

/** Tells the breakers what came of the calls, each once. */
export interface Outcomes {
  /** A failure before the first event, told before it is decided what follows. */
  failed(call: ModelFailed): void
  /** For a tap of `Chat.hooks.modelDone`. */
  readonly done: (done: ModelDone) => void
}

/** Marks whose `modelDone` never came must not pile up. */
const MOST = 10_000

/** Listens to the ends of calls for these breakers. */
export function createOutcomes(breakers: Breakers): Outcomes {
  const told = new Set<string>()
  return {
    failed(call) {
      if (!isModels(call.failure)) return
      if (told.size >= MOST) told.clear()
      told.add(tryOf(call))
      breakers.failed(plainRef(call.selected), callOf(call))
    },
    done(done) {
      if ((told.size > 0 && told.delete(tryOf(done))) || done.answered) return
      const [ref, call] = [plainRef(done.selected), callOf(done)]
      if (done.failure && isModels(done.failure)) breakers.failed(ref, call)
      else if (isAnswer(done)) breakers.succeeded(ref, call)
      else breakers.abandoned(ref, call)
    },
  }
}

/** Whether the model has said anything: that what it was asked is wrong is an answer too. */
const isAnswer = ({ failure, events, firstMs }: ModelDone) =>
  events !== undefined || firstMs > 0 || (failure !== undefined && isOfQuestion(failure))

/** A round of a turn has one call at a time. */
export const callOf = ({ turn, round }: ModelCall): string => `${turn} ${round}`
const tryOf = (call: ModelCall) => `${callOf(call)} ${call.attempt} ${keyOf(call.selected)}`
