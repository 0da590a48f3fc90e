import type { Use } from '@svc/core'
import type { Figures, MetricFamily, Peers } from '@svc/core/contracts'

/** What a worker tells of its cache. */
interface Told {
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
  read(use: Use): Promise<Told>
  /** This worker's, as metrics. */
  families(): MetricFamily[]
  /** For a tap of `Peers.hooks.figures`: adds those of this worker. */
  readonly own: (figures: Figures) => Figures
  /** For a tap of `Peers.hooks.inherit`. */
  readonly inherit: (figures: Figures) => void
}

const NAME = 'chat-cache'
const NOTHING: Told = { hits: 0, misses: 0, size: 0 }

// what is told under this name is what `own` has put there, in this process or in one of its like
const partOf = (figures: Figures) => (figures[NAME] ?? NOTHING) as unknown as Told

export function createCacheCounts(size: () => number, peers: Pick<Peers, 'figures'> | undefined): CacheCounts {
  const mine = { hits: 0, misses: 0 }
  // metrics has a heritage of its own: there only what this worker itself has counted is told
  const inherited = { hits: 0, misses: 0 }
  const total = (): Told => ({ hits: mine.hits + inherited.hits, misses: mine.misses + inherited.misses, size: size() })
  return {
    asked: isHit => void mine[isHit ? 'hits' : 'misses']++,
    async read(use) {
      if (!peers) return total()
      return (await peers.figures(use)).map(current).reduce(sum, NOTHING)
    },
    families: () => familiesOf({ ...mine, size: size() }),
    own: figures => ({ ...figures, [NAME]: { ...total() } }),
    inherit(figures) {
      const { hits, misses } = partOf(figures)
      inherited.hits += hits
      inherited.misses += misses
    },
  }
}

/** What a worker keeps dies with it. */
const current = (figures: Figures): Told => (figures.ended ? { ...partOf(figures), size: 0 } : partOf(figures))

const sum = (a: Told, b: Told): Told => ({ hits: a.hits + b.hits, misses: a.misses + b.misses, size: a.size + b.size })

const single = (name: string, help: string, type: 'counter' | 'gauge', value: number): MetricFamily => ({
  name,
  help,
  type,
  aggregator: 'sum',
  values: [{ labels: {}, value }],
})

const familiesOf = ({ hits, misses, size }: Told): MetricFamily[] => [
  single('svc_cache_hits_total', 'Calls of models that the cache has answered.', 'counter', hits),
  single('svc_cache_misses_total', 'Calls of models that the cache could not answer.', 'counter', misses),
  single('svc_cache_entries', 'Answers in the cache.', 'gauge', size),
]
