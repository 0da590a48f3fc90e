import type { SlotView, Use } from '@svc/core'
import type { ChoiceSource, ModelChoice, ModelList, Profile, Provider } from '@svc/core/contracts'
import { modelNotFound, providerNotFound } from './errors.ts'
import { tellModels } from './models.ts'

/** A wish for provider and model, and who wishes. */
export interface Wish {
  readonly provider?: string | undefined
  readonly model?: string | undefined
  readonly source: ChoiceSource
}

/**
 * Which model answers: the first wish that names anything decides. A model alone: the current provider if it lists it, else the only provider that does;
 * a provider alone: the first of its models. Throws PROVIDER_NOT_FOUND, MODEL_NOT_FOUND, MODEL_FAILED.
 */
export async function choose(wishes: readonly Wish[], providers: SlotView<Provider>, use: Use): Promise<ModelChoice> {
  const [first, ...rest] = wishes.filter(wish => wish.provider !== undefined || wish.model !== undefined)
  if (!first) return firstOf(defaultProvider(providers), 'default', providers, use)
  if (first.provider === undefined) return byModel(first.model!, first.source, rest, providers, use)
  if (first.model === undefined) return firstOf(first.provider, first.source, providers, use)
  return both(first.provider, first.model, first.source, providers, use)
}

export const choiceOf = (
  { provider, model }: { provider?: string | undefined; model?: string | undefined },
  source: ChoiceSource
): Wish => ({ provider, model, source })
export const wishOf = (profile: Profile): Wish => choiceOf(profile, 'profile')

function defaultProvider(providers: SlotView<Provider>): string {
  const [first] = providers.names()
  if (first === undefined) throw providerNotFound('', [])
  return first
}

/** The models of a provider. Throws PROVIDER_NOT_FOUND, MODEL_FAILED. */
async function modelsOf(name: string, providers: SlotView<Provider>, use: Use): Promise<ModelList> {
  const provider = providers.get(name)
  if (!provider) throw providerNotFound(name, providers.names())
  return tellModels(name, provider, use)
}

async function firstOf(provider: string, source: ChoiceSource, providers: SlotView<Provider>, use: Use): Promise<ModelChoice> {
  const { models } = await modelsOf(provider, providers, use)
  const [first] = models
  if (!first) throw modelNotFound(provider, '', [])
  return { provider, model: first.id, source: { provider: source, model: source === 'request' ? 'default' : source } }
}

async function both(
  provider: string,
  model: string,
  source: ChoiceSource,
  providers: SlotView<Provider>,
  use: Use
): Promise<ModelChoice> {
  const { models, open } = await modelsOf(provider, providers, use)
  if (!open && !models.some(one => one.id === model))
    throw modelNotFound(
      provider,
      model,
      models.map(one => one.id)
    )
  return { provider, model, source: { provider: source, model: source } }
}

async function byModel(
  model: string,
  source: ChoiceSource,
  rest: readonly Wish[],
  providers: SlotView<Provider>,
  use: Use
): Promise<ModelChoice> {
  const current = await choose(rest, providers, use)
  const lists = await Promise.all(
    providers.names().map(async name => ({ name, list: await modelsOf(name, providers, use).catch(() => NONE) }))
  )
  const has = lists.filter(one => one.list.models.some(each => each.id === model)).map(one => one.name)
  const own = lists.find(one => one.name === current.provider)?.list
  if (has.includes(current.provider)) return chosen(current.provider, current.source.provider)
  if (has.length === 1) return chosen(has[0]!, source)
  if (own?.open && has.length === 0) return chosen(current.provider, current.source.provider)
  throw modelNotFound(
    null,
    model,
    lists.flatMap(one => one.list.models.map(each => each.id))
  )

  function chosen(provider: string, from: ChoiceSource): ModelChoice {
    return { provider, model, source: { provider: from, model: source } }
  }
}

const NONE: ModelList = { models: [], open: false }
