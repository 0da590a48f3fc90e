import { definePlugin, schema } from '@svc/core'
import { Cache, CacheAreas, Redis } from '@svc/core/contracts'
import { createCache } from '@svc/storage-kit/cache'
import { RedisEntries } from './entries.ts'

export interface CacheRedisConfig {
  max_bytes: number
}

/** Keeps values of plugins for a while, in Redis. */
export default definePlugin({
  section: 'redis.cache',
  config: schema<CacheRedisConfig>({
    type: 'object',
    additionalProperties: false,
    properties: {
      max_bytes: { type: 'integer', minimum: 1024, default: 268_435_456, description: 'Maximum bytes of each cache in Redis.' },
    },
  }),
  requires: { areas: CacheAreas, redis: Redis },
  provides: Cache,
  setup: ({ config, log }, { areas, redis }) =>
    createCache({ areas, entries: new RedisEntries({ redis, log }), maxBytes: config.max_bytes }),
})
