import type { Check, ModelRef } from '@svc/core/contracts'
import type { Breakers } from './breakers.ts'

/** So many are told by name. */
const NAMED = 3

/** The check `models`: whether some are left alone in this worker because they failed. One whose time is over is well until it has been tried. */
export const createCheck = (breakers: Pick<Breakers, 'states' | 'waitMs'>): Check => ({
  async probe() {
    const alone = breakers.states().flatMap(([ref]) => {
      const waitMs = breakers.waitMs(ref)
      return waitMs > 0 ? [{ ...ref, retry_in_ms: Math.ceil(waitMs) }] : []
    })
    if (alone.length === 0) return { status: 'healthy' }
    return { status: 'degraded', reason: `left alone because they failed: ${namesOf(alone)}`, detail: { left_alone: alone } }
  },
})

function namesOf(refs: readonly ModelRef[]): string {
  const names = refs.slice(0, NAMED).map(({ provider, model }) => `${provider}/${model}`)
  return [...names, ...(refs.length > NAMED ? [`${refs.length - NAMED} more`] : [])].join(', ')
}
