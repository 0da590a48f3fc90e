import type { ModelRef, ModelCall, ModelDone, ModelFailed, ModelFailure, ModelFailureKind, Selected } from '@svc/core/contracts'

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

export type BreakerState = 'closed' | 'half_open' | 'open'

interface BreakerOptions {
  /** So many failures in a row open it. */
  readonly failures: number
  readonly openMs: number
  /** Milliseconds, of a clock that does not jump. */
  readonly now: () => number
}

/** A model that has failed lately: whether it may be asked. `call` names a call, so that only the one that probes decides. */
interface Breaker {
  readonly state: BreakerState
  /** Milliseconds for which it is to be left alone; 0: it may be asked. */
  waitMs(): number
  /** Milliseconds until it may be tried, or since when it might have been (below 0), while it is not closed. */
  dueMs(): number
  /** Whether this call may go on; the first after the wait is the probe, others are refused until it has ended. */
  ask(call: string): boolean
  failed(call: string): void
  succeeded(call: string): void
  /** The call has ended without an answer or a failure: its caller left. */
  abandoned(call: string): void
}

/** Milliseconds after which one that is refused while another probes may look again. */
const PROBE_MS = 1_000

interface Probe {
  readonly call: string
  readonly since: number
}

/**
 * A circuit breaker of consecutive failures. Closed: failures in a row are counted, `failures` of them open it. Open: no call for `openMs`. Then half open: one call
 * is the probe. Its answer closes the breaker, its failure opens it again, and where its caller left, the next call may probe at once.
 */
function createBreaker({ failures, openMs, now }: BreakerOptions): Breaker {
  let failed = 0
  let isOpen = false
  let until = 0
  let probe: Probe | undefined

  const open = (forMs: number) => {
    isOpen = true
    until = now() + forMs
    probe = undefined
  }
  const close = () => {
    failed = 0
    isOpen = false
    probe = undefined
  }
  /** While it is not closed only the probe decides: other calls began before it opened. */
  const decides = (call: string) => !isOpen || probe?.call === call
  const waitMs = () => {
    if (!isOpen) return 0
    if (probe) return now() - probe.since >= openMs ? 0 : PROBE_MS
    return Math.max(0, until - now())
  }
  return {
    get state() {
      return probe ? 'half_open' : isOpen ? 'open' : 'closed'
    },
    waitMs,
    dueMs: () => until - now(),
    ask(call) {
      if (decides(call)) return true
      if (waitMs() > 0) return false
      // a probe whose end was never reported gives way to another
      probe = { call, since: now() }
      return true
    },
    failed(call) {
      if (decides(call) && (isOpen || ++failed >= failures)) open(openMs)
    },
    succeeded(call) {
      if (decides(call)) close()
    },
    abandoned(call) {
      if (probe?.call === call) open(0)
    },
  }
}

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

/** A model as a key of a map. */
export const keyOf = ({ provider, model }: ModelRef): string => `${provider}\n${model}`
export const isSame = (a: ModelRef, b: ModelRef): boolean => a.provider === b.provider && a.model === b.model
export const has = (all: readonly ModelRef[], one: ModelRef): boolean => all.some(each => isSame(each, one))
export const plainRef = ({ provider, model }: ModelRef): ModelRef => ({ provider, model })

/** Whether the request itself names the model. */
const isAsked = ({ source }: Selected) => source.provider === 'request' || source.model === 'request'

/**
 * The models that may answer in place of the one a turn has: the profile's `fallback` in order. A caller who has asked for a model by name gets another only where
 * the profile names that one in its chain: then the profile says that they stand in for each other.
 */
export const chainOf = (selected: Selected): readonly ModelRef[] =>
  isAsked(selected) && !has(selected.fallback, selected) ? [] : selected.fallback.map(plainRef)

/** Whether a model answers in place of another: what is too much for it says nothing of what was asked. */
export const standsIn = ({ selected, tried }: ModelCall): boolean =>
  tried.length > 0 || (!isAsked(selected) && has(selected.fallback, selected))
