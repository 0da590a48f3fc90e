import type { Check } from '@svc/core/contracts'
import type { CacheCounts } from './cache-counts.ts'

/** The check `cache`: it lies in memory, so it is well; its figures are all there is to tell. */
export function createCacheCheck(enabled: boolean, counts: Pick<CacheCounts, 'read'>): Check {
  return {
    probe: async () => ({ status: 'healthy' }),
    async status(ctx) {
      const { hits, misses, size } = await counts.read(ctx)
      const asked = hits + misses
      return { status: 'healthy', detail: { enabled, size, hit_rate: asked === 0 ? 0 : hits / asked } }
    },
  }
}
