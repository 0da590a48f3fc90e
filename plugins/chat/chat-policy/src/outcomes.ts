import type { ModelCall, ModelDone, ModelFailed, ModelFailure, ModelFailureKind } from '@svc/core/contracts'
import type { Breakers } from './breakers.ts'
import { keyOf, plainRef } from './chain.ts'

/** Tells the breakers what came of the calls, each once. */
export interface Outcomes {
  /** Reports a failure before the first event, before the policy decides about a retry. */
  failed(call: ModelFailed): void
  /** For a tap of `Chat.hooks.modelDone`. */
  readonly done: (done: ModelDone) => void
}

/** Marks whose `modelDone` never came must not pile up. */
const MOST = 10_000

/** Listens to the ends of calls for these breakers. */
export function createOutcomes(breakers: Breakers): Outcomes {
  const reported = new Set<string>()
  return {
    failed(call) {
      if (!isModels(call.failure)) return
      if (reported.size >= MOST) reported.clear()
      reported.add(tryOf(call))
      breakers.failed(plainRef(call.selected), callOf(call))
    },
    done(done) {
      if ((reported.size > 0 && reported.delete(tryOf(done))) || done.answered) return
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

/** Whose fault a failure is: of the model (its upstream, the way there, our key), or of what it was asked. */
const FAULT = {
  rate_limited: 'model',
  overloaded: 'model',
  authentication: 'model',
  network: 'model',
  timeout: 'model',
  bad_request: 'caller',
  context_too_long: 'caller',
  content_refused: 'caller',
} as const satisfies Record<ModelFailureKind, 'model' | 'caller'>

const isAtFault = ({ kind }: ModelFailure): boolean => FAULT[kind] === 'model'

/** Whether it says that the model is not well: only these trip its breaker. */
const isModels = (failure: ModelFailure): boolean => isAtFault(failure) && failure.requestOnly !== true

/** Whether it answers what was asked: that this is wrong. */
const isOfQuestion = (failure: ModelFailure): boolean => !isAtFault(failure)

const GONE = 404
/** Whether another model may do better: not where what was asked is wrong, unless all that is wrong is that there is no such model. */
export const mayDoBetter = (failure: ModelFailure): boolean => isAtFault(failure) || failure.upstreamStatus === GONE
