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
      description: 'Whether answers of models are kept for whoever asks the very same',
    },
    ttl_s: { ...count(300, 'Seconds for which an answer counts'), maximum: 2_592_000 },
    max_entries: count(1_000, 'Answers that each worker keeps at most'),
    max_bytes: count(67_108_864, 'Bytes of answers that each worker keeps at most'),
    shared: {
      type: 'boolean',
      default: false,
      description: 'Whether what one principal was answered is answered to others too',
    },
  },
})
