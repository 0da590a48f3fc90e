import type { ModelFailure, ModelFailureKind } from '@svc/core/contracts'

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
export const isModels = (failure: ModelFailure): boolean => isAtFault(failure) && failure.requestOnly !== true

/** Whether it answers what was asked: that this is wrong. */
export const isOfQuestion = (failure: ModelFailure): boolean => !isAtFault(failure)

const GONE = 404
/** Whether another model may do better: not where what was asked is wrong, unless all that is wrong is that there is no such model. */
export const mayDoBetter = (failure: ModelFailure): boolean => isAtFault(failure) || failure.upstreamStatus === GONE
