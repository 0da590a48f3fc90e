import type { MetricFamily, ModelRef, Sample } from '@svc/core/contracts'
import type { BreakerState } from './breaker.ts'
import { createModelNames, type ModelNames } from '@svc/plugin-kit'
import { keyOf } from './chain.ts'

/** What was done about failures, by provider and model. */
export interface PolicyCounts {
  retried(ref: ModelRef): void
  /** Another was asked in place of this one. */
  left(ref: ModelRef): void
  /** A call that an open breaker did not let through. */
  refused(ref: ModelRef): void
  read(states: readonly (readonly [ModelRef, BreakerState])[]): MetricFamily[]
}

export function createPolicyCounts(): PolicyCounts {
  const name = createModelNames()
  const [retries, fallbacks, refusals] = [createTally(name), createTally(name), createTally(name)]
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

function createTally(name: ModelNames) {
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
