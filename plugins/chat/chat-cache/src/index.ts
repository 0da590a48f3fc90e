import { definePlugin, schema } from '@svc/core'
import { ModelCalls, Checks, MetricSources, Peers } from '@svc/core/contracts'
import { createCacheCheck, createCacheCounts, createCache, createAnswerStore } from './cache.ts'

/** The section `chat.cache`. */
interface CacheConfig {
  enabled: boolean
  ttl_s: number
  max_entries: number
  max_bytes: number
  shared: boolean
}

const count = (value: number, description: string) => ({ type: 'integer', minimum: 1, default: value, description })

const CACHE_CONFIG = schema<CacheConfig>({
  type: 'object',
  additionalProperties: false,
  properties: {
    enabled: {
      type: 'boolean',
      default: false,
      description: 'Cache replies of models for identical requests',
    },
    ttl_s: { ...count(300, 'Lifetime of an answer in seconds'), maximum: 2_592_000 },
    max_entries: count(1_000, 'Maximum number of answers in each worker'),
    max_bytes: count(67_108_864, 'Maximum bytes of answers in each worker'),
    shared: {
      type: 'boolean',
      default: false,
      description: 'Share cached answers between principals',
    },
  },
})

/** Before the taps that choose a model: a cached reply needs none. */
const FIRST = -10

export default definePlugin({
  section: 'chat.cache',
  config: CACHE_CONFIG,
  optional: { peers: Peers },
  setup(scope, { peers }) {
    const { enabled, shared, ...limits } = scope.config
    const answers = createAnswerStore({ ttlMs: limits.ttl_s * 1000, entries: limits.max_entries, bytes: limits.max_bytes })
    const counts = createCacheCounts(() => answers.size, peers)
    scope.tap(Peers.hooks.metrics, counts.own)
    scope.tap(Peers.hooks.inherit, counts.inherit)
    scope.add(Checks, 'cache', createCacheCheck(enabled, counts))
    if (!enabled) return
    const cache = createCache({ answers, counts, shared })
    scope.tap(ModelCalls.hooks.modelCall, cache.called, { stage: FIRST })
    scope.tap(ModelCalls.hooks.modelDone, cache.done)
    scope.add(MetricSources, 'chat-cache', { read: async () => counts.families() })
  },
})
