import type { FailureAnswer, ModelAnswer, ModelCall, ModelFailed } from '@svc/core/contracts'
import type { Breakers } from './breakers.ts'
import type { Candidates } from './candidates.ts'
import { plainRef, standsIn } from './chain.ts'
import { callOf, mayDoBetter, type Outcomes } from './outcomes.ts'
import type { PolicyCounts } from './policy-counts.ts'
import { refusal } from './refusal.ts'
import type { PolicyConfig } from './settings.ts'

export interface PolicyParts {
  readonly config: Readonly<PolicyConfig>
  readonly breakers: Breakers
  readonly candidates: Candidates
  readonly outcomes: Pick<Outcomes, 'failed'>
  readonly counts: Pick<PolicyCounts, 'retried' | 'left' | 'refused'>
  /** From 0 up to 1. */
  readonly random: () => number
}

/** A turn waits at most this long for a model with an open breaker; then it fails with `retryAfterMs`. */
const REST_MS = 1_000

/** Who is asked, and what follows when that fails. */
export interface Policy {
  /** For a tap of `Chat.hooks.modelCall`. */
  readonly called: (call: ModelCall) => ModelAnswer | undefined
  /** For a tap of `Chat.hooks.modelFailed`. */
  readonly failed: (call: ModelFailed) => Promise<FailureAnswer | undefined>
}

export function createPolicy({ config, breakers, candidates, outcomes, counts, random }: PolicyParts): Policy {
  /** Milliseconds to wait before the same model is asked again, if it is to be. */
  const retryIn = ({ selected, failure, attempt }: ModelFailed, hasNext: boolean): number | undefined => {
    if (!failure.retryable || attempt >= config.attempts) return undefined
    const restMs = breakers.waitMs(selected)
    // one that was silent for all of its time, or is left alone, is not waited for while another can be asked
    if (restMs > REST_MS || (hasNext && (failure.kind === 'timeout' || restMs > 0))) return undefined
    return waitAfter(config, attempt, Math.max(failure.retryAfterMs ?? 0, restMs), random())
  }
  return {
    called(call) {
      const drawn = candidates.drawn(call)
      if (drawn) return drawn
      const at = plainRef(call.selected)
      if (breakers.ask(at, callOf(call))) return undefined
      counts.refused(at)
      const next = candidates.next(call)
      if (next) counts.left(at)
      return next ?? refusal(at, breakers.waitMs(at))
    },
    async failed(call) {
      outcomes.failed(call)
      const at = plainRef(call.selected)
      const next = mayDoBetter(call.failure) || standsIn(call) ? candidates.next(call) : undefined
      const waitMs = retryIn(call, next !== undefined)
      if (waitMs !== undefined) counts.retried(at)
      else if (next) counts.left(at)
      return waitMs === undefined ? next : { waitMs }
    },
  }
}

type WaitConfig = Pick<PolicyConfig, 'backoff_ms' | 'backoff_limit_ms' | 'wait_limit_ms'>

/**
 * Milliseconds to wait after try number `attempt`: exponential with full jitter, `random` from 0 to 1. Where the model says when to come again (`afterMs`) that is
 * added, so that those who were sent away together do not come back together; `undefined` where it is too long to wait.
 */
function waitAfter(config: Readonly<WaitConfig>, attempt: number, afterMs: number, random: number): number | undefined {
  if (afterMs > config.wait_limit_ms) return undefined
  const most = Math.min(config.backoff_limit_ms, config.backoff_ms * 2 ** (attempt - 1))
  return Math.round(afterMs + most * random)
}
