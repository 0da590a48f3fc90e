import { backoffDelay } from '@svc/core'

/** How a supervisor reacts to dying workers. */
export interface RestartPolicy {
  /** Delay of the second restart in a row in milliseconds, doubled from there up to 10 s. Default 200. */
  readonly firstMs?: number
  /** Milliseconds of service after which a worker does not count as part of a crash loop. Default 5,000. */
  readonly stableMs?: number
  /** Number of deaths in a row, per configured worker, that make a crash loop. Default 5. */
  readonly deaths?: number
}

/** How long a worker served before it died, and how many should run. */
export interface WorkerDeath {
  readonly ms: number
  /** Service times of the remaining workers. */
  readonly others: readonly number[]
  readonly workers: number
  /** A plugin is to blame: it is excluded before a crash loop can arise. */
  readonly isBlamed?: boolean
}

/** The reaction to a death. */
export interface RestartDecision {
  /** Milliseconds before the restart. */
  readonly delayMs: number
  /** Deaths in a row. */
  readonly deaths: number
  /** Whether this is a crash loop. */
  readonly isLoop: boolean
  /** Whether it is a crash loop and no remaining worker is stable, so the server gives up. */
  readonly isHopeless: boolean
}

/** Creates a restart policy: the successor of a stable worker starts at once, the next ones after 0.2 s, doubled up to 10 s. */
export function createRestartPolicy({
  firstMs = 200,
  stableMs = 5_000,
  deaths: most = 5,
}: RestartPolicy = {}): (served: WorkerDeath) => RestartDecision {
  let deaths = 0
  let inRow = 0
  return ({ ms, others, workers, isBlamed = false }) => {
    if (ms >= stableMs) deaths = inRow = 0
    inRow++
    if (!isBlamed) deaths++
    const delayMs = backoffDelay(inRow, firstMs)
    const isLoop = !isBlamed && deaths >= most * workers
    return { delayMs, deaths, isLoop, isHopeless: isLoop && !others.some(other => other >= stableMs) }
  }
}

const STABLE_MS = 60_000

/** Returns a function that is called at each death of a process and returns the delay before its restart. It starts anew after a stable minute. */
export function createBackoff(now: () => number = Date.now): () => number {
  let deaths = 0
  let last = Number.NEGATIVE_INFINITY
  return () => {
    deaths = now() - last > STABLE_MS ? 1 : deaths + 1
    last = now()
    return backoffDelay(deaths)
  }
}
