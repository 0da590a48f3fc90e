import { schema, type SlotView } from '@svc/core'
import type {
  FailureAnswer,
  ModelAnswer,
  ModelCall,
  ModelFailed,
  ModelRef,
  Provider,
  Selected,
  TurnDone,
  Check,
  ChoiceSource,
  MetricFamily,
  Sample,
} from '@svc/core/contracts'
import { LRUCache } from 'lru-cache'
import {
  type Breakers,
  plainRef,
  standsIn,
  callOf,
  canAnotherSucceed,
  type Outcomes,
  chainOf,
  has,
  isSame,
  type BreakerState,
  keyOf,
} from './model-health.ts'
import { createModelNames, type ModelNames } from '@svc/plugin-kit'

/** The section `chat.policy`. */
export interface PolicyConfig {
  /** Maximum calls of a model in a model step, with the first call. */
  attempts: number
  backoff_ms: number
  backoff_limit_ms: number
  wait_limit_ms: number
  breaker_failures: number
  breaker_open_ms: number
}

const count = (value: number, description: string, minimum: number, maximum: number) => ({
  type: 'integer',
  minimum,
  maximum,
  default: value,
  description,
})
const DAY_MS = 86_400_000

export const POLICY_CONFIG = schema<PolicyConfig>({
  type: 'object',
  additionalProperties: false,
  properties: {
    attempts: count(3, 'Maximum calls of a model in a model step; 1: no retry', 1, 20),
    backoff_ms: count(250, 'Upper limit of the first random wait, in milliseconds; doubles with each retry', 0, DAY_MS),
    backoff_limit_ms: count(4_000, 'Maximum of that limit, in milliseconds', 0, DAY_MS),
    wait_limit_ms: count(10_000, 'Longest Retry-After that a turn waits for, in milliseconds', 0, DAY_MS),
    breaker_failures: count(5, 'Consecutive failures that open the breaker of a model; 0: never', 0, 1_000),
    breaker_open_ms: count(30_000, 'Milliseconds until an open breaker lets one turn try the model', 1, DAY_MS),
  },
})

export interface PolicyDependencies {
  readonly config: Readonly<PolicyConfig>
  readonly breakers: Breakers
  readonly candidates: Candidates
  readonly outcomes: Pick<Outcomes, 'failed'>
  readonly counts: Pick<PolicyCounts, 'retried' | 'left' | 'refused'>
  /** Returns a number from 0 up to 1. */
  readonly random: () => number
}

/** A turn waits at most this long for a model with an open breaker; then it fails with `retryAfterMs`. */
const REST_MS = 1_000

/** Decides which model is called, and how to continue after a failure. */
export interface Policy {
  /** For a tap of `ModelCalls.hooks.modelCall`. */
  readonly called: (call: ModelCall) => ModelAnswer | undefined
  /** For a tap of `ModelCalls.hooks.modelFailed`. */
  readonly failed: (call: ModelFailed) => Promise<FailureAnswer | undefined>
}

export function createPolicy({ config, breakers, candidates, outcomes, counts, random }: PolicyDependencies): Policy {
  /** Milliseconds to wait before a retry; `undefined` for no retry. */
  const retryIn = ({ selected, failure, attempt }: ModelFailed, hasNext: boolean): number | undefined => {
    if (!failure.retryable || attempt >= config.attempts) return undefined
    const restMs = breakers.waitMs(selected)
    // does not wait for a model that timed out or has an open breaker while another model is available
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
      const next = canAnotherSucceed(call.failure) || standsIn(call) ? candidates.next(call) : undefined
      const waitMs = retryIn(call, next !== undefined)
      if (waitMs !== undefined) counts.retried(at)
      else if (next) counts.left(at)
      return waitMs === undefined ? next : { waitMs }
    },
  }
}

type WaitConfig = Pick<PolicyConfig, 'backoff_ms' | 'backoff_limit_ms' | 'wait_limit_ms'>

/**
 * Milliseconds to wait after call number `attempt`: exponential back-off with full jitter, `random` from 0 to 1.
 * Adds the jitter to the wait that the model requests (`afterMs`), so that rejected clients do not return together.
 * Returns `undefined` if that wait exceeds its limit.
 */
function waitAfter(config: Readonly<WaitConfig>, attempt: number, afterMs: number, random: number): number | undefined {
  if (afterMs > config.wait_limit_ms) return undefined
  const most = Math.min(config.backoff_limit_ms, config.backoff_ms * 2 ** (attempt - 1))
  return Math.round(afterMs + most * random)
}

/** The failure of a turn whose model has an open breaker and no fallback. */
const refusal = ({ provider, model }: ModelRef, waitMs: number): ModelAnswer => ({
  failure: { kind: 'overloaded', retryable: true, retryAfterMs: Math.max(1, Math.ceil(waitMs)) },
  message: `the model ${model} of provider "${provider}" has failed too often; its breaker is open`,
})

export interface CandidatesOptions {
  readonly breakers: Breakers
  readonly turns: Turns
  readonly providers: Pick<SlotView<Provider>, 'has'>
  /** Returns a number from 0 up to 1. */
  readonly random: () => number
}

/** Chooses other models for a turn. */
export interface Candidates {
  /** The model for the first call, drawn by the weights of the profile; `undefined` for the selected model. */
  drawn(call: ModelCall): ModelRef | undefined
  /** The next fallback model that is available and has not failed in this turn. */
  next(call: ModelCall): ModelRef | undefined
}

/** Chooses among models that have a provider and no open breaker. */
export function createCandidates({ breakers, turns, providers, random }: CandidatesOptions): Candidates {
  const isAvailable = (ref: ModelRef) => providers.has(ref.provider) && breakers.waitMs(ref) === 0
  return {
    drawn(call) {
      const own = turns.own(call.turn)
      // the drawn model causes a second `modelCall`
      if (!isToDraw(call) || (own && !isSame(own, call.selected))) return undefined
      turns.keep(call.turn, plainRef(call.selected))
      const found = draw(call.selected, isAvailable, random())
      return found && !isSame(found, call.selected) ? found : undefined
    },
    next({ turn, selected, tried }) {
      const own = turns.own(turn)
      const chain = own ? [...chainOf(selected), own] : chainOf(selected)
      return chain.find(ref => !isSame(ref, selected) && !has(tried, ref) && isAvailable(ref))
    },
  }
}

const isFree = (source: ChoiceSource) => source === 'profile' || source === 'default'

interface Share {
  readonly ref: ModelRef
  readonly weight: number
}

/**
 * Whether the model of this turn is to be drawn: only for the first call, if the profile has weights, and neither the
 * request nor the override names a provider or a model.
 */
function isToDraw({ selected: { source, fallback }, round, attempt, tried }: ModelCall): boolean {
  return (
    isFree(source.provider) &&
    isFree(source.model) &&
    round === 1 &&
    attempt === 1 &&
    tried.length === 0 &&
    fallback.some(isWeighted)
  )
}

/**
 * Draws a model by weight among the available models: the entries with a weight, and the selected model.
 * The selected model has the weight of its entry, or else 1. `random` is from 0 up to 1.
 */
function draw(selected: Selected, mayAsk: (ref: ModelRef) => boolean, random: number): ModelRef | undefined {
  const weighted = selected.fallback.filter(isWeighted).map((entry): Share => ({ ref: plainRef(entry), weight: entry.weight }))
  const isIn = weighted.some(({ ref }) => isSame(ref, selected))
  const shares = (isIn ? weighted : [{ ref: plainRef(selected), weight: 1 }, ...weighted]).filter(({ ref }) => mayAsk(ref))
  let left = random * shares.reduce((sum, { weight }) => sum + weight, 0)
  return (shares.find(({ weight }) => (left -= weight) < 0) ?? shares.at(-1))?.ref
}

type Entry = Selected['fallback'][number]
const isWeighted = (entry: Entry): entry is Entry & { readonly weight: number } => entry.weight !== undefined

/** The selected models of turns whose model was drawn, until the end of the turn. */
interface Turns {
  own(turn: string): ModelRef | undefined
  keep(turn: string, own: ModelRef): void
  /** For a tap of `Chat.hooks.end`. */
  readonly ended: (done: TurnDone) => void
}

/** Limits the memory for turns whose end is never reported. */
const MOST = 10_000

export function createTurns(): Turns {
  // `max` would allocate all entries at startup; `maxSize` grows with the content
  const turns = new LRUCache<string, ModelRef>({ maxSize: MOST, sizeCalculation: () => 1 })
  return {
    own: turn => turns.get(turn),
    keep: (turn, own) => void turns.set(turn, own),
    ended: ({ turn }) => void turns.delete(turn),
  }
}

/** Counts retries, fallbacks and refusals by provider and model. */
interface PolicyCounts {
  retried(ref: ModelRef): void
  /** Another model was called in place of this model. */
  left(ref: ModelRef): void
  /** An open breaker refused a call. */
  refused(ref: ModelRef): void
  read(states: readonly (readonly [ModelRef, BreakerState])[]): MetricFamily[]
}

export function createPolicyCounts(): PolicyCounts {
  const name = createModelNames()
  const [retries, fallbacks, refusals] = [createCounter(name), createCounter(name), createCounter(name)]
  return {
    retried: retries.add,
    left: fallbacks.add,
    refused: refusals.add,
    read: states => [
      counter('svc_model_retries_total', 'Retried model calls.', retries.samples()),
      counter('svc_model_fallbacks_total', 'Times that another model was called in place of this model.', fallbacks.samples()),
      counter('svc_model_refusals_total', 'Model calls that an open breaker refused.', refusals.samples()),
      breakerFamily(states.map(([ref, state]) => [name(ref), state] as const)),
    ],
  }
}

type Counted = [ref: ModelRef, count: number]

function createCounter(name: ModelNames) {
  const counts = new Map<string, Counted>()
  return {
    add: (ref: ModelRef) => addTo(counts, name(ref), 1),
    samples: () => [...counts.values()].map(([{ provider, model }, value]): Sample => ({ labels: { provider, model }, value })),
  }
}

function addTo(counts: Map<string, Counted>, ref: ModelRef, more: number, key = keyOf(ref)) {
  const found = counts.get(key)
  if (found) found[1] += more
  else counts.set(key, [ref, more])
}

const STATES: readonly BreakerState[] = ['closed', 'half_open', 'open']

/** One series for each state. The sum over all workers is the number of workers in this state. */
function breakerFamily(states: readonly (readonly [ModelRef, BreakerState])[]): MetricFamily {
  const values = STATES.flatMap(state => {
    const counts = new Map<string, Counted>()
    for (const [ref, its] of states) addTo(counts, ref, its === state ? 1 : 0)
    return [...counts.values()].map(([{ provider, model }, value]): Sample => ({ labels: { provider, model, state }, value }))
  })
  const help = 'Workers in which the breaker of a model is in this state; a model that has not failed has none.'
  return { name: 'svc_model_breaker', help, type: 'gauge', aggregator: 'sum', values }
}

const counter = (name: string, help: string, values: readonly Sample[]): MetricFamily => ({
  name,
  help,
  type: 'counter',
  aggregator: 'sum',
  values,
})

/** Maximum number of models in the text. */
const NAMED = 3
/** The check ignores a breaker that was due for a probe this long ago. */
const FORGOTTEN_MS = 600_000

/** The check `models`: `degraded` while a breaker of this worker is not closed. */
export const createCheck = (breakers: Pick<Breakers, 'broken'>): Check => ({
  async probe() {
    const broken = breakers.broken().filter(([, dueMs]) => dueMs > -FORGOTTEN_MS)
    if (broken.length === 0) return { status: 'healthy' }
    return { status: 'degraded', reason: `open breakers: ${textOf(broken)}` }
  },
})

function textOf(broken: readonly (readonly [ModelRef, number])[]): string {
  const names = broken
    .slice(0, NAMED)
    .map(
      ([{ provider, model }, dueMs]) =>
        `${provider}/${model} (${dueMs > 0 ? `for ${Math.ceil(dueMs / 1000)} s` : 'the next call tries it'})`
    )
  return [...names, ...(broken.length > NAMED ? [`${broken.length - NAMED} more`] : [])].join(', ')
}
