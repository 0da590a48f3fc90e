import type { CallContext } from '@svc/core'
import type { WorkerMetrics, Peers } from '@svc/core/contracts'

/** How often each provider was asked, over all workers. */
export interface ProviderCounts {
  /** This worker asks this provider. */
  readonly asked: (provider: string) => void
  readonly read: (ctx: CallContext) => Promise<ReadonlyMap<string, number>>
  /** For a tap of `Peers.hooks.metrics`: adds those of this worker. */
  readonly own: (metrics: WorkerMetrics) => WorkerMetrics
  /** For a tap of `Peers.hooks.inherit`. */
  readonly inherit: (metrics: WorkerMetrics) => void
}

type Counts = readonly (readonly [provider: string, count: number])[]

const NAME = 'chat'

// what is told under this name is what `own` has put there, in this process or in one of its like
const partOf = (metrics: WorkerMetrics) => (metrics[NAME] ?? []) as unknown as Counts

export function createProviderCounts(peers: Peers | undefined): ProviderCounts {
  const counts = new Map<string, number>()
  return {
    asked: provider => add(counts, provider, 1),
    async read(ctx) {
      if (!peers) return counts
      const sum = new Map<string, number>()
      for (const worker of await peers.metrics(ctx)) addAll(sum, partOf(worker))
      return sum
    },
    own: metrics => ({ ...metrics, [NAME]: [...counts] }),
    inherit: metrics => addAll(counts, partOf(metrics)),
  }
}

const add = (counts: Map<string, number>, provider: string, count: number) =>
  void counts.set(provider, (counts.get(provider) ?? 0) + count)

function addAll(counts: Map<string, number>, more: Counts) {
  for (const [provider, count] of more) add(counts, provider, count)
}
