import { CircuitState, ConsecutiveBreaker, circuitBreaker, handleAll, type IBackoff } from 'cockatiel'

export type BreakerState = 'closed' | 'half_open' | 'open'

export interface CircuitOptions {
  /** So many failures in a row open it. */
  readonly failures: number
  readonly openMs: number
  /** Milliseconds, of a clock that nobody sets. */
  readonly now: () => number
}

/** cockatiel's breaker; when it is due is told by a clock that does not jump as the wall's does. */
export interface Circuit {
  readonly state: BreakerState
  /** When it may be tried again, on that clock, while it is open. */
  readonly until: number
  /** Runs an outcome through it; ends once the breaker knows. While it is open, this is the trial that makes it half open: not before `until`. */
  run(outcome: Promise<unknown>): Promise<void>
}

const STATES: Readonly<Record<CircuitState, BreakerState>> = {
  [CircuitState.Closed]: 'closed',
  [CircuitState.HalfOpen]: 'half_open',
  [CircuitState.Open]: 'open',
  [CircuitState.Isolated]: 'open',
}

/** The outcome of a trial that says nothing: the next may try at once. */
export const NO_WORD = new Error('no word of it')

/** Makes a closed one. Throws nothing that it was told. */
export function createCircuit({ failures, openMs, now }: CircuitOptions): Circuit {
  let until = 0
  // its own rest would go by the wall's clock: it has none, and nobody runs a trial before `until`
  const rest: IBackoff<{ readonly result: object }> = {
    duration: Number.NEGATIVE_INFINITY,
    next({ result }) {
      until = 'error' in result && result.error === NO_WORD ? now() : now() + openMs
      return rest
    },
  }
  const policy = circuitBreaker(handleAll, { breaker: new ConsecutiveBreaker(failures), halfOpenAfter: rest })
  return {
    get state() {
      return STATES[policy.state]
    },
    get until() {
      return until
    },
    async run(outcome) {
      // what it throws is what it was told
      await policy.execute(() => outcome).catch(() => undefined)
    },
  }
}
