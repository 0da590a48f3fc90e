import { type BreakerState, type CircuitOptions, createCircuit, NO_WORD } from './circuit.ts'

/** A model that has failed lately: whether it may be asked. `call` names a call, so that only the one that probes decides. */
export interface Breaker {
  readonly state: BreakerState
  /** Milliseconds for which it is to be left alone; 0: it may be asked. */
  waitMs(): number
  /** Milliseconds until it may be tried, or since when it might have been (below 0), while it is not closed. */
  dueMs(): number
  /** Whether this call may go on; the first after the wait is the probe, others are refused until it has ended. */
  ask(call: string): boolean
  failed(call: string): Promise<void>
  succeeded(call: string): Promise<void>
  /** The call has ended without an answer or a failure: its caller left. */
  abandoned(call: string): Promise<void>
}

/** Milliseconds after which one that is refused while another probes may look again. */
const PROBE_MS = 1_000
const FAILED = new Error('the model failed')

interface Probe {
  call: string
  since: number
  decide(failure?: Error): Promise<void>
}

/**
 * A breaker for calls that are chat's: the library's wraps a call and sees its end itself. So each end that is told is run through it as a call that ends at once,
 * and only the probe, which has the breaker's one place while it is half open, as one that lasts until its end is told.
 */
export function createBreaker(options: CircuitOptions): Breaker {
  const { openMs, now } = options
  const circuit = createCircuit(options)
  let probe: Probe | undefined

  const beginProbe = (call: string): Probe => {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const decided = circuit.run(promise)
    return {
      call,
      since: now(),
      async decide(failure) {
        if (failure) reject(failure)
        else resolve()
        await decided
        probe = undefined
      },
    }
  }
  const tell = async (call: string, failure?: Error) => {
    if (probe) return probe.call === call ? probe.decide(failure) : undefined
    if (circuit.state === 'closed' && failure !== NO_WORD)
      await circuit.run(failure ? Promise.reject(failure) : Promise.resolve())
  }
  const waitMs = () => {
    if (circuit.state === 'closed') return 0
    if (probe) return now() - probe.since >= openMs ? 0 : PROBE_MS
    return Math.max(0, circuit.until - now())
  }
  return {
    get state() {
      return circuit.state
    },
    waitMs,
    dueMs: () => circuit.until - now(),
    ask(call) {
      if (circuit.state === 'closed' || probe?.call === call) return true
      if (waitMs() > 0) return false
      // a probe whose end was never told is another's now
      if (probe) [probe.call, probe.since] = [call, now()]
      else probe = beginProbe(call)
      return true
    },
    failed: call => tell(call, FAILED),
    succeeded: call => tell(call),
    abandoned: call => tell(call, NO_WORD),
  }
}
