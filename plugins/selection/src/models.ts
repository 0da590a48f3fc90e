import { type Use, within } from '@svc/core'
import type { ModelList, Provider } from '@svc/core/contracts'
import { modelsLate } from './errors.ts'

const LIST_MS = 5000

/** The models that a provider tells in time. Throws MODEL_FAILED, and what the provider throws. */
export const tellModels = (name: string, provider: Provider, use: Use, ms: number = LIST_MS): Promise<ModelList> =>
  within(ms, signal => provider.models({ ...use, signal }), { signal: use.signal, late: () => modelsLate(name, ms) })
