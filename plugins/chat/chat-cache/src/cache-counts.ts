import type { CallContext } from '@svc/core'
import type { Check, MetricFamily, Peers, WorkerMetrics } from '@svc/core/contracts'

/** What a worker tells of its cache. */
interface CacheStats {
  readonly hits: number
  readonly misses: number
  /** Answers that it keeps now. */
  readonly size: number
}

/** How often an answer was there, over all workers. */
export interface CacheCounts {
  /** A call came by; the answer was there or not. */
  asked(isHit: boolean): void
  /** The figures of all workers. */
  read(ctx: CallContext): Promise<CacheStats>
  /** This worker's, as metrics. */
  families(): MetricFamily[]
  /** For a tap of `Peers.hooks.metrics`: adds those of this worker. */
  readonly own: (metrics: WorkerMetrics) => WorkerMetrics
  /** For a tap of `Peers.hooks.inherit`. */
  readonly inherit: (metrics: WorkerMetrics) => void
}

const NAME = 'chat-cache'
const NOTHING: CacheStats = { hits: 0, misses: 0, size: 0 }

// `own` of this process, or of another worker, has written the value under this name
const partOf = (metrics: WorkerMetrics) => (metrics[NAME] ?? NOTHING) as unknown as CacheStats

export function createCacheCounts(size: () => number, peers: Pick<Peers, 'metrics'> | undefined): CacheCounts {
  const mine = { hits: 0, misses: 0 }
  // the metrics plugin inherits counters itself, so report only the counts of this worker
  const inherited = { hits: 0, misses: 0 }
  const total = (): CacheStats => ({ hits: mine.hits + inherited.hits, misses: mine.misses + inherited.misses, size: size() })
  return {
    asked: isHit => void mine[isHit ? 'hits' : 'misses']++,
    async read(ctx) {
      if (!peers) return total()
      return (await peers.metrics(ctx)).map(current).reduce(sum, NOTHING)
    },
    families: () => familiesOf({ ...mine, size: size() }),
    own: metrics => ({ ...metrics, [NAME]: { ...total() } }),
    inherit(metrics) {
      const { hits, misses } = partOf(metrics)
      inherited.hits += hits
      inherited.misses += misses
    },
  }
}

/** What a worker keeps dies with it. */
const current = (metrics: WorkerMetrics): CacheStats => (metrics.ended ? { ...partOf(metrics), size: 0 } : partOf(metrics))

const sum = (a: CacheStats, b: CacheStats): CacheStats => ({
  hits: a.hits + b.hits,
  misses: a.misses + b.misses,
  size: a.size + b.size,
})

const single = (name: string, help: string, type: 'counter' | 'gauge', value: number): MetricFamily => ({
  name,
  help,
  type,
  aggregator: 'sum',
  values: [{ labels: {}, value }],
})

const familiesOf = ({ hits, misses, size }: CacheStats): MetricFamily[] => [
  single('svc_cache_hits_total', 'Calls of models that the cache has answered.', 'counter', hits),
  single('svc_cache_misses_total', 'Calls of models that the cache could not answer.', 'counter', misses),
  single('svc_cache_entries', 'Answers in the cache.', 'gauge', size),
]

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
