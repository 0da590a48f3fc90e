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
  MetricFamily,
  Sample,
} from '@svc/core/contracts'
import {
  type Breakers,
  plainRef,
  standsIn,
  callOf,
  mayDoBetter,
  type Outcomes,
  chainOf,
  has,
  isSame,
  type BreakerState,
  keyOf,
} from './breakers.ts'
import { createModelNames, type ModelNames } from '@svc/plugin-kit'

/** The section `chat.policy`. */
export interface PolicyConfig {
  /** Tries of one model in one round, the first included. */
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
    attempts: count(3, 'How often a model is asked at most before another is, or the turn fails; 1: no retry', 1, 20),
    backoff_ms: count(
      250,
      'Milliseconds of the first wait; doubled with each retry, of which a random part is waited',
      0,
      DAY_MS
    ),
    backoff_limit_ms: count(4_000, 'Milliseconds to which that grows', 0, DAY_MS),
    wait_limit_ms: count(10_000, 'Milliseconds a turn waits at most for a model that says when to come again', 0, DAY_MS),
    breaker_failures: count(5, 'Failures in a row after which a model is left alone; 0: never', 0, 1_000),
    breaker_open_ms: count(30_000, 'Milliseconds for which it is left alone; then one turn may try it', 1, DAY_MS),
  },
})

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

/** The failure of a turn whose model has an open breaker and no fallback. */
const refusal = ({ provider, model }: ModelRef, waitMs: number): ModelAnswer => ({
  failure: { kind: 'overloaded', retryable: true, retryAfterMs: Math.max(1, Math.ceil(waitMs)) },
  message: `the model ${model} of provider "${provider}" has failed too often and is left alone for a while`,
})

export interface CandidatesParts {
  readonly breakers: Breakers
  readonly turns: Turns
  readonly providers: Pick<SlotView<Provider>, 'has'>
  /** From 0 up to 1. */
  readonly random: () => number
}

/** Who else may answer a turn. */
export interface Candidates {
  /** Another model that is to answer from the start, by the weights of the profile. */
  drawn(call: ModelCall): ModelRef | undefined
  /** The next that may answer in place of this one: well, and not given up in this turn. */
  next(call: ModelCall): ModelRef | undefined
}

/** Chooses among models that are there and whose breakers let them be asked. */
export function createCandidates({ breakers, turns, providers, random }: CandidatesParts): Candidates {
  const isWell = (ref: ModelRef) => providers.has(ref.provider) && breakers.waitMs(ref) === 0
  return {
    drawn(call) {
      const own = turns.own(call.turn)
      // the one that was drawn comes by as a call of its own
      if (!isToDraw(call) || (own && !isSame(own, call.selected))) return undefined
      turns.keep(call.turn, plainRef(call.selected))
      const one = draw(call.selected, isWell, random())
      return one && !isSame(one, call.selected) ? one : undefined
    },
    next({ turn, selected, tried }) {
      const own = turns.own(turn)
      const chain = own ? [...chainOf(selected), own] : chainOf(selected)
      return chain.find(ref => !isSame(ref, selected) && !has(tried, ref) && isWell(ref))
    },
  }
}

interface Share {
  readonly ref: ModelRef
  readonly weight: number
}

/** Whether the model of this turn is to be drawn: only for the first call, if the request names no model and the profile has weights. */
function isToDraw({ selected: { source, fallback }, round, attempt, tried }: ModelCall): boolean {
  const isFree = source.model === 'profile' || source.model === 'default'
  return isFree && round === 1 && attempt === 1 && tried.length === 0 && fallback.some(isWeighted)
}

/**
 * Draws who answers, of those that may be asked: the entries with a weight, and the selected model with the weight of its entry, else 1. `random` is from 0 up to 1.
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

/** The models that turns would have had without the draw; forgotten at their end. */
interface Turns {
  own(turn: string): ModelRef | undefined
  keep(turn: string, own: ModelRef): void
  /** For a tap of `Chat.hooks.end`. */
  readonly ended: (done: TurnDone) => void
}

/** Limits the memory for turns whose end is never reported. */
const MOST = 10_000

/** Makes an empty one. */
export function createTurns(): Turns {
  const turns = new Map<string, ModelRef>()
  return {
    own: turn => turns.get(turn),
    keep(turn, own) {
      if (turns.size >= MOST) turns.delete(turns.keys().next().value ?? '')
      turns.set(turn, own)
    },
    ended: ({ turn }) => void turns.delete(turn),
  }
}

/** What was done about failures, by provider and model. */
interface PolicyCounts {
  retried(ref: ModelRef): void
  /** Another was asked in place of this one. */
  left(ref: ModelRef): void
  /** A call that an open breaker did not let through. */
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
      counter('svc_model_retries_total', 'Calls of models that were tried again.', retries.samples()),
      counter('svc_model_fallbacks_total', 'Times that another model was asked in place of this one.', fallbacks.samples()),
      counter('svc_model_refusals_total', 'Calls of models that an open breaker did not let through.', refusals.samples()),
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
  const one = counts.get(key)
  if (one) one[1] += more
  else counts.set(key, [ref, more])
}

const STATES: readonly BreakerState[] = ['closed', 'half_open', 'open']

/** One series a state: added up over workers, it tells in how many of them the breaker is in it. */
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

/** Limit of models in the text. */
const NAMED = 3
/** A breaker without a call for this time no longer counts. */
const FORGOTTEN_MS = 600_000

/** The check `models`: whether some are left alone in this worker because they failed, or have not been tried since. */
export const createCheck = (breakers: Pick<Breakers, 'broken'>): Check => ({
  async probe() {
    const alone = breakers.broken().filter(([, dueMs]) => dueMs > -FORGOTTEN_MS)
    if (alone.length === 0) return { status: 'healthy' }
    return { status: 'degraded', reason: `left alone because they failed: ${textOf(alone)}` }
  },
})

function textOf(alone: readonly (readonly [ModelRef, number])[]): string {
  const names = alone
    .slice(0, NAMED)
    .map(
      ([{ provider, model }, dueMs]) =>
        `${provider}/${model} (${dueMs > 0 ? `for ${Math.ceil(dueMs / 1000)} s` : 'the next call tries it'})`
    )
  return [...names, ...(alone.length > NAMED ? [`${alone.length - NAMED} more`] : [])].join(', ')
}
