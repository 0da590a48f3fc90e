import type { ModelCall, ModelRef, Selected } from '@svc/core/contracts'

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
