import type { Check, MetricFamily, ModelRef, Sample } from '@svc/core/contracts'
import { createModelNames, type ModelNames } from '@svc/plugin-kit'
import { type Breakers, type BreakerState, keyOf } from './breakers.ts'

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
