import { definePlugin, schema } from '@svc/core'
import { Counts, Redis, StoreCounts } from '@svc/core/contracts'
import { createCounts, withFallback } from './counts.ts'

export interface CountsRedisConfig {
  fallback: 'none' | 'store'
}

/** Counts of limits in Redis, exact for all servers of a cluster. */
export default definePlugin({
  section: 'redis.counts',
  config: schema<CountsRedisConfig>({
    type: 'object',
    additionalProperties: false,
    properties: {
      fallback: {
        enum: ['none', 'store'],
        default: 'none',
        description:
          'While Redis cannot be reached: `none` refuses requests that must be counted (503); `store` counts them in the store, where each window begins anew.',
      },
    },
  }),
  requires: { redis: Redis },
  optional: { store: StoreCounts },
  provides: Counts,
  setup: ({ config, log }, { redis, store }) =>
    config.fallback === 'store' && store ? withFallback(createCounts(redis), store, log) : createCounts(redis),
})
