import { schema } from '@svc/core'

/** The section `cache`. */
export interface CacheConfig {
  in: 'memory' | 'store'
  max_bytes: number
}

export const CONFIG = schema<CacheConfig>({
  type: 'object',
  additionalProperties: false,
  properties: {
    in: {
      enum: ['memory', 'store'],
      default: 'memory',
      description: 'Where entries are kept: in the memory of each worker, or in the store, which all workers share',
    },
    max_bytes: {
      type: 'integer',
      minimum: 1024,
      default: 268_435_456,
      description: 'Maximum bytes of all caches in the memory of a worker, or of each cache in the store',
    },
  },
})
