import type { Claim } from './claim.ts'
import type { News } from './news.ts'

export interface HandOverParts {
  readonly news: News
  readonly claim: Claim
  /** Whether nobody else owns the server yet. */
  readonly isOwned: () => boolean
}

/** A successor that has not taken the lease by then has no such server. */
const WANTED_MS = 1_000
/** One that has taken it and does not tell so is no longer waited for. */
const TOLD_MS = 10_000
/** So long the others have to look at the store once more: a look every quarter of a second, on a busy machine later. */
const SEEN_MS = 1_000

/**
 * Answers when all workers know the successor of this one. Who asks just when a worker ends cannot know whether it was heard, and so fails: a worker that owns
 * a server ends after that.
 */
export async function handOver({ news, claim, isOwned }: HandOverParts, signal: AbortSignal): Promise<void> {
  const begun = performance.now()
  for (let isWanted = false; isOwned() && !signal.aborted && performance.now() - begun < TOLD_MS; ) {
    await news.next(signal)
    if (isWanted || performance.now() - begun < WANTED_MS) continue
    const fence = await claim.take()
    if (fence) return claim.leave(fence)
    isWanted = true
  }
  for (const until = performance.now() + SEEN_MS; performance.now() < until && !signal.aborted; ) await news.next(signal)
}
