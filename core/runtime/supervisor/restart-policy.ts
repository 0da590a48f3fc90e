import { backoffDelay } from '@svc/core'

/** How patient a supervisor is with workers that die. */
export interface RestartPolicy {
  /** Milliseconds until the second successor in a row is brought up, doubled from there up to 10 s. Default 200. */
  readonly firstMs?: number
  /** Milliseconds: who has served so long was no part of a crash loop. Default 5,000. */
  readonly stableMs?: number
  /** So many deaths in a row, for each worker that should run, are a crash loop. Default 5. */
  readonly deaths?: number
}

/** How long the workers had been ready when one died, and how many should run. */
export interface WorkerDeath {
  readonly ms: number
  /** Of those that live on. */
  readonly others: readonly number[]
  readonly workers: number
  /** A plugin is blamed for it: it is kept out before that could be a crash loop. */
  readonly isBlamed?: boolean
}

/** What a death means. */
export interface RestartDecision {
  /** Milliseconds until the successor is brought up. */
  readonly delayMs: number
  /** Deaths in a row. */
  readonly deaths: number
  /** Enough of them for a crash loop. */
  readonly isLoop: boolean
  /** And nobody lives on who has served for long: there is nothing left to wait for. */
  readonly isHopeless: boolean
}

/** Judges the deaths of workers: the successor of one that was stable comes at once, that of the next ones after 0.2 s, doubled up to 10 s. */
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
