import { definePlugin } from '@svc/core'
import { Chat, Checks, MetricSources, Peers } from '@svc/core/contracts'
import { createCache } from './cache.ts'
import { createCacheCheck } from './cache-check.ts'
import { createCacheCounts } from './cache-counts.ts'
import { CACHE_CONFIG } from './settings.ts'
import { createLruCache } from './lru-cache.ts'

/** Before the taps that decide who may be asked: what is known needs nobody. */
const FIRST = -10

export default definePlugin({
  section: 'chat.cache',
  config: CACHE_CONFIG,
  optional: { peers: Peers },
  setup(scope, { peers }) {
    const { enabled, shared, ...limits } = scope.config
    const shelf = createLruCache({ ttlMs: limits.ttl_s * 1000, entries: limits.max_entries, bytes: limits.max_bytes })
    const counts = createCacheCounts(() => shelf.size, peers)
    scope.tap(Peers.hooks.metrics, counts.own)
    scope.tap(Peers.hooks.inherit, counts.inherit)
    scope.add(Checks, 'cache', createCacheCheck(enabled, counts))
    if (!enabled) return
    const cache = createCache({ shelf, counts, shared })
    scope.tap(Chat.hooks.modelCall, cache.called, { stage: FIRST })
    scope.tap(Chat.hooks.modelDone, cache.done)
    scope.add(MetricSources, 'chat-cache', { read: async () => counts.families() })
  },
})
