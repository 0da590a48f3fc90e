import { redactText } from '@svc/core'
import type {
  Json,
  ModelCall,
  ModelDone,
  ModelFailed,
  ModelFailure,
  ModelFailureKind,
  ModelHealth,
  ModelRef,
  ModelState,
  Peers,
  Selected,
  WorkerMetrics,
} from '@svc/core/contracts'
import { LRUCache } from 'lru-cache'

/** The circuit breakers of models that have failed. A model without failures has no breaker. */
export interface Breakers {
  /** Milliseconds until the next call is allowed; 0: allowed now. */
  waitMs(ref: ModelRef): number
  /** Whether this call is allowed. In the half-open state, an allowed call is the probe. */
  ask(ref: ModelRef, call: string): boolean
  failed(ref: ModelRef, call: string): void
  succeeded(ref: ModelRef, call: string): void
  abandoned(ref: ModelRef, call: string): void
  states(): (readonly [ModelRef, BreakerState])[]
  /** Models whose breaker is not closed, with the milliseconds until a probe is allowed. Negative: the time since then. */
  broken(): (readonly [ModelRef, dueMs: number])[]
}

/** Maximum number of models with a breaker, and of models that are counted, because callers can invent model names. */
const MODELS = 200

interface Watched {
  readonly ref: ModelRef
  readonly breaker: Breaker
}

/** With `failures: 0`, breakers never open. */
export function createBreakers(options: BreakerOptions): Breakers {
  const watched = new Map<string, Watched>()
  const find = (ref: ModelRef) => watched.get(keyOf(ref))?.breaker
  const watch = (ref: ModelRef): Breaker => {
    const known = find(ref)
    if (known) return known
    if (watched.size >= MODELS) watched.delete(leastOf(watched))
    const plain = plainRef(ref)
    const breaker = createBreaker({ ...options, changed: state => options.changed?.(plain, state) })
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

/** The breaker to drop: the first closed breaker, or else the first. An LRU cache would drop an open one, and calls would reach the failing model. */
function leastOf(watched: ReadonlyMap<string, Watched>): string {
  for (const [key, { breaker }] of watched) if (breaker.state === 'closed') return key
  return watched.keys().next().value ?? ''
}

export type BreakerState = 'closed' | 'half_open' | 'open'

interface BreakerOptions {
  /** Consecutive failures that open the breaker. */
  readonly failures: number
  readonly openMs: number
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  /** Called when the breaker of a model opens or closes. A failed probe opens it again without a call. */
  readonly changed?: (ref: ModelRef, state: 'open' | 'closed') => void
}

interface OneBreakerOptions extends Pick<BreakerOptions, 'failures' | 'openMs' | 'now'> {
  readonly changed: (state: 'open' | 'closed') => void
}

/** The circuit breaker of a model. `call` is the id of a call: only the probe decides about the next state. */
interface Breaker {
  readonly state: BreakerState
  /** Milliseconds until the next call is allowed; 0: allowed now. */
  waitMs(): number
  /** Milliseconds until a probe is allowed; negative: the time since then. Only for a breaker that is not closed. */
  dueMs(): number
  /** Whether this call is allowed. The first call after the wait is the probe; the breaker refuses other calls until its end. */
  ask(call: string): boolean
  failed(call: string): void
  succeeded(call: string): void
  /** The caller aborted the call before an answer or a failure. */
  abandoned(call: string): void
}

/** Milliseconds to wait while another call probes. */
const PROBE_MS = 1_000

interface Probe {
  readonly call: string
  readonly since: number
}

/**
 * A circuit breaker that counts consecutive failures.
 * - Closed: `failures` failures in a row open it.
 * - Open: it refuses calls for `openMs`, then it is half open.
 * - Half open: one call is the probe. Its answer closes the breaker, its failure opens it again. After an abort, the next call can probe at once.
 */
function createBreaker({ failures, openMs, now, changed }: OneBreakerOptions): Breaker {
  let failed = 0
  let isOpen = false
  let until = 0
  let probe: Probe | undefined

  const open = (forMs: number) => {
    if (!isOpen) changed('open')
    isOpen = true
    until = now() + forMs
    probe = undefined
  }
  const close = () => {
    if (isOpen) changed('closed')
    failed = 0
    isOpen = false
    probe = undefined
  }
  /** In the open and half-open state only the probe decides: other calls began before the breaker opened. */
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
      // replaces a probe whose end was never reported
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

/** Reports the outcome of each call to the breakers, once. */
export interface Outcomes {
  /** Reports a failure before the first event, before the policy decides about a retry. */
  failed(call: ModelFailed): void
  /** For a tap of `ModelCalls.hooks.modelDone`. */
  readonly done: (done: ModelDone) => void
}

/** Limits the memory for calls whose `modelDone` never runs. */
const MOST = 10_000

/** Creates the reporter for these breakers. */
export function createOutcomes(breakers: Breakers): Outcomes {
  // `max` would allocate all entries at startup; `maxSize` grows with the content
  const reported = new LRUCache<string, true>({ maxSize: MOST, sizeCalculation: () => 1 })
  return {
    failed(call) {
      if (!tripsBreaker(call.failure)) return
      reported.set(tryOf(call), true)
      breakers.failed(plainRef(call.selected), callOf(call))
    },
    done(done) {
      if ((reported.size > 0 && reported.delete(tryOf(done))) || done.answered) return
      const [ref, call] = [plainRef(done.selected), callOf(done)]
      if (done.failure && tripsBreaker(done.failure)) breakers.failed(ref, call)
      else if (isAnswer(done)) breakers.succeeded(ref, call)
      else breakers.abandoned(ref, call)
    },
  }
}

/** Whether the model answered. The rejection of a bad request counts as an answer. */
const isAnswer = ({ failure, events, firstMs }: ModelDone) =>
  events !== undefined || firstMs > 0 || (failure !== undefined && isCausedByRequest(failure))

/** The id of a call: a model step has one call at a time. */
export const callOf = ({ turn, round }: ModelCall): string => `${turn} ${round}`
const tryOf = (call: ModelCall) => `${callOf(call)} ${call.attempt} ${keyOf(call.selected)}`

/** The cause of a failure: the model (with its upstream, network and key), or the request of the caller. */
const CAUSE = {
  rate_limited: 'model',
  overloaded: 'model',
  authentication: 'model',
  network: 'model',
  timeout: 'model',
  bad_request: 'caller',
  context_too_long: 'caller',
  content_refused: 'caller',
} as const satisfies Record<ModelFailureKind, 'model' | 'caller'>

const isCausedByModel = ({ kind }: ModelFailure): boolean => CAUSE[kind] === 'model'

/** Whether the failure counts for the breaker of the model. */
const tripsBreaker = (failure: ModelFailure): boolean => isCausedByModel(failure) && failure.requestOnly !== true

/** Whether the request caused the failure. */
const isCausedByRequest = (failure: ModelFailure): boolean => !isCausedByModel(failure)

const NOT_FOUND = 404
/** Whether another model can succeed: the model caused the failure, or does not exist (404). */
export const canAnotherSucceed = (failure: ModelFailure): boolean =>
  isCausedByModel(failure) || failure.upstreamStatus === NOT_FOUND

/** A model as a key of a map. */
export const keyOf = ({ provider, model }: ModelRef): string => `${provider}\n${model}`
export const isSame = (a: ModelRef, b: ModelRef): boolean => a.provider === b.provider && a.model === b.model
export const has = (all: readonly ModelRef[], modelRef: ModelRef): boolean => all.some(each => isSame(each, modelRef))
export const plainRef = ({ provider, model }: ModelRef): ModelRef => ({ provider, model })

/** Whether the request itself names the model. */
const isAsked = ({ source }: Selected) => source.provider === 'request' || source.model === 'request'

/**
 * The models that can answer in place of the model of a turn: the profile's `fallback`, in order.
 * A model that the request names is replaced only if the `fallback` of the profile contains it.
 */
export const chainOf = (selected: Selected): readonly ModelRef[] =>
  isAsked(selected) && !has(selected.fallback, selected) ? [] : selected.fallback.map(plainRef)

/** Whether a model answers in place of another. Its limits can be lower than those of the other model. */
export const standsIn = ({ selected, tried }: ModelCall): boolean =>
  tried.length > 0 || (!isAsked(selected) && has(selected.fallback, selected))

const MAX_MESSAGE = 300
const PLUGIN = 'chat-policy'

/** What one worker has counted of a model. */
interface Counted extends ModelRef {
  readonly calls: number
  readonly failures: number
  /** Sum and number of the times to the first event, and the last of them with the time of its end. */
  readonly first: { readonly sum: number; readonly count: number; readonly last: number; readonly at: number }
  readonly lastError?: NonNullable<ModelState['lastError']>
}

/** What one worker reports. `breakers` has those that are not closed. */
interface Report {
  readonly models: readonly Counted[]
  readonly breakers: readonly (ModelRef & { readonly state: ModelState['breaker']; readonly retryAt: number })[]
}

/** Counts the calls of this worker, and gathers those of all. */
export interface ModelHealthCounts {
  readonly service: ModelHealth
  /** A call has failed before its first event: `done` does not have the message. */
  readonly failed: (call: ModelFailed) => undefined
  readonly done: (done: ModelDone) => void
  /** For a tap of `Peers.hooks.metrics`. */
  readonly own: (metrics: WorkerMetrics) => WorkerMetrics
  /** For a tap of `Peers.hooks.inherit`. */
  readonly inherit: (metrics: WorkerMetrics) => void
}

export function createModelHealth(breakers: Pick<Breakers, 'states' | 'broken'>, peers: Peers | undefined): ModelHealthCounts {
  const counted = new Map<string, Counted>()
  const messages = new Map<string, string>()
  const put = (next: Counted) => {
    const key = keyOf(next)
    // the most recently called models are the last: the least recently called is dropped
    counted.delete(key)
    counted.set(key, next)
    if (counted.size > MODELS) counted.delete(counted.keys().next().value!)
  }
  const report = (): Report => ({ models: [...counted.values()], breakers: brokenOf(breakers) })
  const reportJson = () => report() as unknown as Json
  return {
    failed({ selected, message }) {
      // calls whose end is never reported
      if (messages.size >= MODELS) messages.clear()
      messages.set(keyOf(selected), redactText(message).slice(0, MAX_MESSAGE))
      return undefined
    },
    done({ selected, answered, failure, events, firstMs }) {
      if (answered) return
      const key = keyOf(selected)
      const { calls, failures, first, lastError } = counted.get(key) ?? emptyOf(plainRef(selected))
      const at = Date.now()
      const error = failure && {
        kind: failure.kind,
        message: messages.get(key) ?? '',
        at,
        ...(failure.upstreamStatus === undefined ? {} : { upstreamStatus: failure.upstreamStatus }),
      }
      messages.delete(key)
      const isTimed = firstMs > 0 && (events !== undefined || !failure)
      put({
        ...plainRef(selected),
        calls: calls + 1,
        failures: failures + (failure ? 1 : 0),
        first: isTimed ? { sum: first.sum + firstMs, count: first.count + 1, last: firstMs, at } : first,
        ...(error ? { lastError: error } : lastError ? { lastError } : {}),
      })
    },
    own: metrics => ({ ...metrics, [PLUGIN]: reportJson() }),
    inherit(metrics) {
      for (const model of reportIn(metrics)?.models ?? []) put(sumOf(counted.get(keyOf(model)) ?? emptyOf(model), model))
    },
    service: {
      async states(ctx) {
        return statesOf(peers ? await peers.metrics(ctx) : [{ [PLUGIN]: reportJson() }])
      },
    },
  }
}

const emptyOf = ({ provider, model }: ModelRef): Counted => ({
  provider,
  model,
  calls: 0,
  failures: 0,
  first: { sum: 0, count: 0, last: 0, at: 0 },
})

// only this file writes it, in this process or in another worker
const reportIn = (metrics: WorkerMetrics) => metrics[PLUGIN] as unknown as Report | undefined

function brokenOf(breakers: Pick<Breakers, 'states' | 'broken'>): Report['breakers'] {
  const due = new Map(breakers.broken().map(([ref, dueMs]) => [keyOf(ref), dueMs]))
  return breakers.states().flatMap(([ref, state]) => {
    const dueMs = due.get(keyOf(ref))
    return dueMs === undefined ? [] : [{ ...plainRef(ref), state, retryAt: Math.round(Date.now() + Math.max(0, dueMs)) }]
  })
}

function sumOf(a: Counted, b: Counted): Counted {
  const later = a.first.at >= b.first.at ? a.first : b.first
  const first = { ...later, sum: a.first.sum + b.first.sum, count: a.first.count + b.first.count }
  const errors = [a.lastError, b.lastError].filter(error => error !== undefined).toSorted((x, y) => y.at - x.at)
  const { provider, model } = a
  const counts = { provider, model, calls: a.calls + b.calls, failures: a.failures + b.failures, first }
  return errors[0] ? { ...counts, lastError: errors[0] } : counts
}

/** Totals count of all workers, breakers of the running ones only. */
function statesOf(all: readonly WorkerMetrics[]): readonly ModelState[] {
  const sums = new Map<string, Counted>()
  for (const metrics of all)
    for (const model of reportIn(metrics)?.models ?? [])
      sums.set(keyOf(model), sumOf(sums.get(keyOf(model)) ?? emptyOf(model), model))
  const newest = Math.max(...all.map(({ generation = 0 }) => generation))
  const running = all.filter(({ ended, generation = 0 }) => !ended && generation === newest)
  const broken = running.flatMap(metrics => reportIn(metrics)?.breakers ?? [])
  for (const ref of broken) if (!sums.has(keyOf(ref))) sums.set(keyOf(ref), emptyOf(ref))
  return [...sums.values()]
    .map(sum =>
      stateOf(
        sum,
        broken.filter(ref => keyOf(ref) === keyOf(sum))
      )
    )
    .toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
}

function stateOf({ provider, model, calls, failures, first, lastError }: Counted, broken: Report['breakers']): ModelState {
  const open = broken.filter(({ state }) => state === 'open')
  const breaker = open.length > 0 ? 'open' : broken.length > 0 ? 'half_open' : 'closed'
  return {
    provider,
    model,
    breaker,
    openIn: open.length,
    ...(broken.length > 0 ? { retryAt: Math.min(...broken.map(({ retryAt }) => retryAt)) } : {}),
    calls,
    failures,
    ...(first.count > 0 ? { firstMs: { last: Math.round(first.last), mean: Math.round(first.sum / first.count) } } : {}),
    ...(lastError ? { lastError } : {}),
  }
}
