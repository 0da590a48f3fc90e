import { systemContext } from '@svc/core'
import type { ChoiceSource, ModelCall, ModelDone, ModelEvent, ModelFailure, ModelRef, Selected } from '@svc/core/contracts'
import { createBreakers, createOutcomes } from '../../src/model-health.ts'
import {
  createCandidates,
  createTurns,
  createPolicy,
  type PolicyConfig,
  POLICY_CONFIG,
  createCheck,
  createPolicyCounts,
} from '../../src/policy.ts'

export const A: ModelRef = { provider: 'a', model: 'm' }
export const B: ModelRef = { provider: 'b', model: 'm' }
export const C: ModelRef = { provider: 'c', model: 'm' }

export const DOWN: ModelFailure = { kind: 'overloaded', retryable: true }
const ANSWER: readonly ModelEvent[] = [{ type: 'finish', reason: 'stop' }]

/** A policy with a clock and a die in the test's hand, and what chat would tell it. */
export function policyBench(config: Partial<PolicyConfig> = {}) {
  const settings = { ...DEFAULTS, ...config }
  const hand = { now: 1_000, random: 0, gone: new Set<string>() }
  const breakers = createBreakers({
    failures: settings.breaker_failures,
    openMs: settings.breaker_open_ms,
    now: () => hand.now,
  })
  const turns = createTurns()
  const outcomes = createOutcomes(breakers)
  const counts = createPolicyCounts()
  const random = () => hand.random
  const providers = { has: (name: string) => !hand.gone.has(name) }
  const candidates = createCandidates({ breakers, turns, providers, random })
  const policy = createPolicy({ config: settings, breakers, candidates, outcomes, counts, random })
  return {
    hand,
    breakers,
    turns,
    /** A model is about to be asked. */
    call: (parts: CallDependencies = {}) => policy.called(callOf(parts)),
    /** A call has failed: what follows, as chat would ask and then tell. */
    async fail(failure: ModelFailure, parts: CallDependencies = {}) {
      const call = callOf(parts)
      const answer = await policy.failed({ ...call, failure, message: 'it failed' })
      outcomes.done(doneOf(call, { failure }))
      return answer
    },
    /** A call has ended as chat tells it. */
    end: (end: Partial<ModelDone>, parts: CallDependencies = {}) => outcomes.done(doneOf(callOf(parts), end)),
    answer: (parts: CallDependencies = {}) => outcomes.done(doneOf(callOf(parts), { events: ANSWER, firstMs: 1 })),
    state: (ref: ModelRef) => breakers.states().find(([item]) => item.provider === ref.provider && item.model === ref.model)?.[1],
    health: () => createCheck(breakers).probe(systemContext(new AbortController().signal, 'test')),
    /** What the metrics tell, as `name{labels} value`. */
    told: () =>
      counts
        .read(breakers.states())
        .flatMap(({ name, values }) => values.map(({ labels, value }) => `${name}{${Object.values(labels).join(' ')}} ${value}`)),
  }
}

const DEFAULTS = {} as PolicyConfig
POLICY_CONFIG.check(DEFAULTS)

export interface CallDependencies {
  /** Who is asked; default A. */
  readonly at?: ModelRef
  readonly turn?: string
  readonly fallback?: Selected['fallback']
  readonly source?: ChoiceSource
  /** What chose the provider; default: what chose the model. */
  readonly providerSource?: ChoiceSource
  readonly tried?: readonly ModelRef[]
  readonly attempt?: number
  readonly round?: number
}

function callOf({
  turn = 't',
  at = A,
  fallback = [],
  source = 'profile',
  providerSource = source,
  tried = [],
  attempt = 1,
  round = 1,
}: CallDependencies): ModelCall {
  const selected: Selected = {
    ...at,
    source: { provider: providerSource, model: source },
    profile: { name: 'p' },
    mode: 'build',
    fallback,
  }
  return { turn, selected, request: { model: at.model, messages: [] }, kind: 'chat', round, attempt, tried }
}

const doneOf = (call: ModelCall, end: Partial<ModelDone>): ModelDone => ({
  ...call,
  usage: { input: 0, output: 0 },
  durationMs: 1,
  firstMs: 0,
  ...end,
})
