import { schema } from '@svc/core'

/** The section `chat.cache`. */
export interface CacheConfig {
  enabled: boolean
  ttl_s: number
  max_entries: number
  max_bytes: number
  shared: boolean
}

const count = (value: number, description: string) => ({ type: 'integer', minimum: 1, default: value, description })

export const CACHE_CONFIG = schema<CacheConfig>({
  type: 'object',
  additionalProperties: false,
  properties: {
    enabled: {
      type: 'boolean',
      default: false,
      description: 'Cache replies of models for identical requests',
    },
    ttl_s: { ...count(300, 'Lifetime of an answer in seconds'), maximum: 2_592_000 },
    max_entries: count(1_000, 'Maximum number of answers in each worker, or in the store'),
    max_bytes: count(67_108_864, 'Maximum bytes of answers in each worker, or in the store; see also cache.max_bytes'),
    shared: {
      type: 'boolean',
      default: false,
      description: 'Share cached answers between principals',
    },
  },
})
