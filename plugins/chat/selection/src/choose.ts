import { codeOf, type SlotView, type CallContext, withTimeout } from '@svc/core'
import type {
  ChoiceSource,
  ModelAlias,
  ModelChoice,
  ModelInfo,
  ModelList,
  ModelRef,
  Profile,
  Provider,
} from '@svc/core/contracts'
import { modelNotFound, modelsLate, providerNotFound } from './errors.ts'

/** A wish for provider and model, and who wishes. */
export interface Wish {
  readonly provider?: string | undefined
  readonly model?: string | undefined
  readonly source: ChoiceSource
}

/** What there is to choose from. */
export interface ModelSources {
  readonly providers: SlotView<Provider>
  readonly aliases: SlotView<ModelAlias>
}

/** A choice, and what its provider tells of the model; absent where it is not listed. */
export interface Chosen extends ModelChoice {
  readonly info?: ModelInfo
}

/**
 * Which model answers: the first wish that names anything decides. A model alone: the current provider if it lists it, else the alias of this name, else the
 * only provider that lists it; a provider alone: the first of its models. Throws PROVIDER_NOT_FOUND, MODEL_NOT_FOUND, MODEL_FAILED.
 */
export async function choose(wishes: readonly Wish[], sources: ModelSources, ctx: CallContext): Promise<Chosen> {
  const [first, ...rest] = wishes.filter(wish => wish.provider !== undefined || wish.model !== undefined)
  if (!first) return firstOf(defaultProvider(sources.providers), 'default', sources, ctx)
  if (first.provider === undefined) return byModel(first.model!, first.source, rest, sources, ctx)
  if (first.model === undefined) return firstOf(first.provider, first.source, sources, ctx)
  return both({ provider: first.provider, model: first.model }, first.source, sources, ctx)
}

export const choiceOf = (
  { provider, model }: { provider?: string | undefined; model?: string | undefined },
  source: ChoiceSource
): Wish => ({ provider, model, source })
export const wishOf = (profile: Profile): Wish => choiceOf(profile, 'profile')

/** Fallback models, with aliases of their own provider replaced by real names. */
export function realOnes<T extends ModelRef>(
  refs: readonly T[],
  sources: ModelSources,
  ctx: CallContext
): readonly T[] | Promise<T[]> {
  const { aliases } = sources
  if (aliases.size === 0 || !refs.some(one => aliases.has(one.model))) return refs
  return Promise.all(
    refs.map(async one => {
      const alias = aliases.get(one.model)
      // one that is not configured may be by the time it is needed
      if (alias?.provider !== one.provider || !sources.providers.has(one.provider)) return one
      if (infoOf(await listOf(one.provider, sources, ctx), one.model)) return one
      return { ...one, model: alias.model }
    })
  )
}

/** The same; what cannot be had (its provider is not there, or cannot tell which model is its first) gives way to the first of these that can. */
export async function chooseAmong(
  wishes: readonly Wish[],
  fallback: readonly ModelRef[],
  sources: ModelSources,
  ctx: CallContext
): Promise<Chosen> {
  try {
    return await choose(wishes, sources, ctx)
  } catch (error) {
    ctx.signal.throwIfAborted()
    for (const one of fallback) {
      const next = await choose([choiceOf(one, 'profile')], sources, ctx).catch(() => undefined)
      if (next) return next
    }
    throw error
  }
}

function defaultProvider(providers: SlotView<Provider>): string {
  const [first] = providers.names()
  if (first === undefined) throw providerNotFound('', [])
  return first
}

/** The models of a provider. Throws PROVIDER_NOT_FOUND, MODEL_FAILED. */
async function modelsOf(name: string, { providers }: ModelSources, ctx: CallContext): Promise<ModelList> {
  const provider = providers.get(name)
  if (!provider) throw providerNotFound(name, providers.names())
  return tellModels(name, provider, ctx)
}

/** The same; `undefined` where the provider cannot tell them now. Throws PROVIDER_NOT_FOUND. */
async function listOf(name: string, sources: ModelSources, ctx: CallContext): Promise<ModelList | undefined> {
  try {
    return await modelsOf(name, sources, ctx)
  } catch (error) {
    if (codeOf(error) === 'PROVIDER_NOT_FOUND') throw error
    ctx.signal.throwIfAborted()
    return undefined
  }
}

const infoOf = (list: ModelList | undefined, model: string) => list?.models.find(one => one.id === model)

const idsOf = (list: ModelList | undefined) => list?.models.map(one => one.id) ?? []

const chosen = (
  { provider, model }: ModelRef,
  from: ChoiceSource,
  source: ChoiceSource,
  info: ModelInfo | undefined
): Chosen => ({ provider, model, source: { provider: from, model: source }, ...(info ? { info } : {}) })

async function firstOf(provider: string, source: ChoiceSource, sources: ModelSources, ctx: CallContext): Promise<Chosen> {
  const { models } = await modelsOf(provider, sources, ctx)
  const [first] = models
  if (!first) throw modelNotFound(provider, '', [])
  return chosen({ provider, model: first.id }, source, source === 'request' ? 'default' : source, first)
}

/** A real model of this provider wins over an alias of the same name. A provider that cannot tell its models now may have any: a call will show. */
async function both(ref: ModelRef, source: ChoiceSource, sources: ModelSources, ctx: CallContext): Promise<Chosen> {
  const list = await listOf(ref.provider, sources, ctx)
  const info = infoOf(list, ref.model)
  const alias = info ? undefined : sources.aliases.get(ref.model)
  if (!alias) return real(ref, source, list)
  if (alias.provider !== ref.provider) throw modelNotFound(ref.provider, ref.model, idsOf(list))
  return real(alias, source, list)
}

function real(ref: ModelRef, source: ChoiceSource, list: ModelList | undefined): Chosen {
  const info = infoOf(list, ref.model)
  if (list && !list.open && !info) throw modelNotFound(ref.provider, ref.model, idsOf(list))
  return chosen(ref, source, source, info)
}

async function byModel(
  model: string,
  source: ChoiceSource,
  rest: readonly Wish[],
  sources: ModelSources,
  ctx: CallContext
): Promise<Chosen> {
  const alias = sources.aliases.get(model)
  const current = await choose(rest, sources, ctx).catch((error: unknown) => {
    if (alias) return undefined
    throw error
  })
  const own = current && (await listOf(current.provider, sources, ctx))
  const info = infoOf(own, model)
  if (current && info) return chosen({ provider: current.provider, model }, current.source.provider, source, info)
  if (alias) return real(alias, source, await listOf(alias.provider, sources, ctx))
  return elsewhere(model, source, current!, own, sources, ctx)
}

async function elsewhere(
  model: string,
  source: ChoiceSource,
  current: Chosen,
  own: ModelList | undefined,
  sources: ModelSources,
  ctx: CallContext
): Promise<Chosen> {
  const names = sources.providers.names()
  const lists = await Promise.all(
    names.map(async name => ({ name, list: await modelsOf(name, sources, ctx).catch(() => undefined) }))
  )
  const has = lists.filter(one => infoOf(one.list, model))
  const [only] = has
  if (only && has.length === 1) return chosen({ provider: only.name, model }, source, source, infoOf(only.list, model))
  if (own?.open && has.length === 0)
    return chosen({ provider: current.provider, model }, current.source.provider, source, undefined)
  throw modelNotFound(
    null,
    model,
    lists.flatMap(one => idsOf(one.list))
  )
}

const LIST_MS = 5000

/** Milliseconds for which a model list counts as fresh, so a busy server does not request it for each turn. */
const FRESH_MS = 1_000
const fresh = new WeakMap<Provider, { readonly list: ModelList; readonly until: number }>()

/** The models of a provider, from its last list if that is fresh. Throws MODEL_FAILED, and what the provider throws. */
export async function tellModels(name: string, provider: Provider, ctx: CallContext, ms: number = LIST_MS): Promise<ModelList> {
  const known = fresh.get(provider)
  if (known && performance.now() < known.until) return known.list
  const late = () => modelsLate(name, ms)
  const list = await withTimeout(ms, signal => provider.models({ ...ctx, signal }), { signal: ctx.signal, late })
  fresh.set(provider, { list, until: performance.now() + FRESH_MS })
  return list
}
