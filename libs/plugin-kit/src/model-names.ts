import type { ModelRef } from '@svc/core/contracts'

/** Returns the name of a model for metric labels. */
export type ModelNames = (ref: ModelRef) => ModelRef

/** Limit of distinct model names. */
const MODELS = 200

/** Names for labels of metrics: the first 200 models have their own, all others of a provider are `other`. Where a provider takes any name, callers invent them. */
export function createModelNames(): ModelNames {
  const known = new Set<string>()
  return ({ provider, model }) => {
    const key = `${provider}\n${model}`
    if (known.size < MODELS) known.add(key)
    return { provider, model: known.has(key) ? model : 'other' }
  }
}
