import type { Check, ModelRef } from '@svc/core/contracts'
import type { Breakers } from './breakers.ts'

/** So many are told by name. */
const NAMED = 3
/** Nobody has asked for it since: it says nothing any more. */
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
