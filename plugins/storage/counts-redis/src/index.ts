import { codeOf, definePlugin, type Log, schema } from '@svc/core'
import { type Counted, Counts, Redis, StoreCounts } from '@svc/core/contracts'
import { checkCount } from '@svc/storage-kit'
import { COUNT } from './script.ts'

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

function createCounts(redis: Redis): Counts {
  return {
    async count(key, windows, ctx) {
      checkCount(key, windows)
      const args = windows.flatMap(({ ms, limit }) => [ms, limit])
      return countedOf((await redis.run(COUNT, [`counts:${key}`], args, ctx)) as readonly number[])
    },
  }
}

function countedOf([counted, ...rest]: readonly number[]): Counted {
  const windows = Array.from({ length: rest.length / 3 }, (_, at) => {
    const [count = 0, endsAt = 0, leftMs = 0] = rest.slice(3 * at)
    return { count, endsAt, leftMs }
  })
  return { counted: counted === 1, windows }
}

const LOST = new Set(['STORE_UNAVAILABLE', 'STORE_UNSURE'])

/** All servers share the counts of the store, so a limit stays exact there. A hit of which Redis lost the answer counts in both. */
function withFallback(counts: Counts, store: Counts, log: Log): Counts {
  let isLost = false
  const report = (now: boolean, err?: unknown) => {
    if (now && !isLost) log.warn({ err }, 'counts in the store: Redis fails')
    if (!now && isLost) log.info({}, 'counts in Redis again')
    isLost = now
  }
  return {
    async count(key, windows, ctx) {
      try {
        const counted = await counts.count(key, windows, ctx)
        report(false)
        return counted
      } catch (error) {
        if (!LOST.has(codeOf(error) ?? '')) throw error
        report(true, error)
        return store.count(key, windows, ctx)
      }
    },
  }
}
