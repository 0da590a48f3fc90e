import { type Use, within } from '@svc/core'
import type { ModelList, Provider } from '@svc/core/contracts'
import { modelsLate } from './errors.ts'

const LIST_MS = 5000

/** Milliseconds for which a told list holds: a busy server would ask for the same thousands of times a second. */
const FRESH_MS = 1_000
const fresh = new WeakMap<Provider, { readonly list: ModelList; readonly until: number }>()

/** The models that a provider tells in time, or has told just now. Throws MODEL_FAILED, and what the provider throws. */
export async function tellModels(name: string, provider: Provider, use: Use, ms: number = LIST_MS): Promise<ModelList> {
  const known = fresh.get(provider)
  if (known && performance.now() < known.until) return known.list
  const late = () => modelsLate(name, ms)
  const list = await within(ms, signal => provider.models({ ...use, signal }), { signal: use.signal, late })
  fresh.set(provider, { list, until: performance.now() + FRESH_MS })
  return list
}
