import type { Use } from '@svc/core'
import type { Figures, Peers } from '@svc/core/contracts'

/** How often each provider was asked, over all workers. */
export interface ProviderCounts {
  /** This worker asks this provider. */
  readonly asked: (provider: string) => void
  readonly read: (use: Use) => Promise<ReadonlyMap<string, number>>
  /** For a tap of `Peers.hooks.figures`: adds those of this worker. */
  readonly own: (figures: Figures) => Figures
  /** For a tap of `Peers.hooks.inherit`. */
  readonly inherit: (figures: Figures) => void
}

type Counts = readonly (readonly [provider: string, count: number])[]

const NAME = 'chat'

// what is told under this name is what `own` has put there, in this process or in one of its like
const partOf = (figures: Figures) => (figures[NAME] ?? []) as unknown as Counts

export function createProviderCounts(peers: Peers | undefined): ProviderCounts {
  const counts = new Map<string, number>()
  return {
    asked: provider => add(counts, provider, 1),
    async read(use) {
      if (!peers) return counts
      const sum = new Map<string, number>()
      for (const worker of await peers.figures(use)) addAll(sum, partOf(worker))
      return sum
    },
    own: figures => ({ ...figures, [NAME]: [...counts] }),
    inherit: figures => addAll(counts, partOf(figures)),
  }
}

const add = (counts: Map<string, number>, provider: string, count: number) =>
  void counts.set(provider, (counts.get(provider) ?? 0) + count)

function addAll(counts: Map<string, number>, more: Counts) {
  for (const [provider, count] of more) add(counts, provider, count)
}
