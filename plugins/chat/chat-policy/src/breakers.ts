import type { ModelRef } from '@svc/core/contracts'
import { type Breaker, type BreakerOptions, type BreakerState, createBreaker } from './breaker.ts'
import { keyOf } from './chain.ts'

/** The breakers of the models that have failed; one that never has needs none. */
export interface Breakers {
  /** Milliseconds for which a model is to be left alone; 0: it may be asked. */
  waitMs(ref: ModelRef): number
  /** Whether this call may go on; where the breaker is half open it is the probe then. */
  ask(ref: ModelRef, call: string): boolean
  failed(ref: ModelRef, call: string): void
  succeeded(ref: ModelRef, call: string): void
  abandoned(ref: ModelRef, call: string): void
  states(): (readonly [ModelRef, BreakerState])[]
  /** Those whose breaker is not closed, with the milliseconds until they may be tried; below 0: since when they might have been. */
  broken(): (readonly [ModelRef, dueMs: number])[]
}

/** So many models are watched: callers may invent their names. */
const MODELS = 200

interface Watched {
  readonly ref: ModelRef
  readonly breaker: Breaker
}

/** `failures: 0` in the options: none ever opens. */
export function createBreakers(options: BreakerOptions): Breakers {
  const watched = new Map<string, Watched>()
  const find = (ref: ModelRef) => watched.get(keyOf(ref))?.breaker
  const watch = (ref: ModelRef): Breaker => {
    const known = find(ref)
    if (known) return known
    if (watched.size >= MODELS) watched.delete(leastOf(watched))
    const breaker = createBreaker(options)
    watched.set(keyOf(ref), { ref, breaker })
    return breaker
  }
  return {
    waitMs: ref => find(ref)?.waitMs() ?? 0,
    ask: (ref, call) => find(ref)?.ask(call) ?? true,
    failed(ref, call) {
      if (options.failures > 0) watch(ref).failed(call)
    },
    succeeded: (ref, call) => find(ref)?.succeeded(call),
    abandoned: (ref, call) => find(ref)?.abandoned(call),
    states: () => [...watched.values()].map(({ ref, breaker }) => [ref, breaker.state] as const),
    broken: () =>
      [...watched.values()]
        .filter(({ breaker }) => breaker.state !== 'closed')
        .map(({ ref, breaker }) => [ref, breaker.dueMs()] as const),
  }
}

/** The one to forget: the first that is closed, else the first. */
function leastOf(watched: ReadonlyMap<string, Watched>): string {
  for (const [key, { breaker }] of watched) if (breaker.state === 'closed') return key
  return watched.keys().next().value ?? ''
}
