import { type CallContext, definePlugin } from '@svc/core'
import { Cache, CacheAreas, Checks, MetricSources, ModelCalls, Peers } from '@svc/core/contracts'
import { AREA, createAnswerCache, createCacheCheck, createCacheCounts } from './cache.ts'
import { CACHE_CONFIG } from './config.ts'

/** Before the taps that choose a model: a cached reply needs none. */
const FIRST = -10

export default definePlugin({
  section: 'chat.cache',
  config: CACHE_CONFIG,
  requires: { cache: Cache },
  optional: { peers: Peers },
  setup(scope, { cache, peers }) {
    const { enabled, shared, ttl_s, max_entries: maxEntries, max_bytes: maxBytes } = scope.config
    const entries = async (ctx: CallContext) => {
      if (!enabled) return { size: 0, isShared: false }
      const { entries: size, scope: place } = await cache.stats(AREA, ctx)
      return { size, isShared: place !== 'process' }
    }
    const counts = createCacheCounts(entries, peers)
    scope.tap(Peers.hooks.metrics, counts.own)
    scope.tap(Peers.hooks.inherit, counts.inherit)
    scope.add(Checks, 'cache', createCacheCheck(enabled, counts))
    if (!enabled) return
    scope.add(CacheAreas, AREA, { description: 'Answers of models', ttlMs: ttl_s * 1000, maxEntries, maxBytes })
    const answers = createAnswerCache({ cache, counts, shared })
    scope.tap(ModelCalls.hooks.modelCall, answers.called, { stage: FIRST })
    scope.tap(ModelCalls.hooks.modelDone, answers.done)
    scope.add(MetricSources, 'chat-cache', { read: ctx => counts.families(ctx) })
  },
})

export type { CacheConfig } from './config.ts'
