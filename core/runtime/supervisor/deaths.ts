const LONGEST_MS = 10_000

/** How patient a supervisor is with workers that die. */
export interface Patience {
  /** Milliseconds until the second successor in a row is brought up, doubled from there up to 10 s. Default 200. */
  readonly firstMs?: number
  /** Milliseconds: who has served so long was no part of a crash loop. Default 5,000. */
  readonly stableMs?: number
  /** So many deaths in a row, for each worker that should run, are a crash loop. Default 5. */
  readonly deaths?: number
}

/** How long the workers had been ready when one died, and how many should run. */
export interface Served {
  readonly ms: number
  /** Of those that live on. */
  readonly others: readonly number[]
  readonly workers: number
  /** A plugin is blamed for it: it is kept out before that could be a crash loop. */
  readonly isBlamed?: boolean
}

/** What a death means. */
export interface Verdict {
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
export function createDeaths({ firstMs = 200, stableMs = 5_000, deaths: most = 5 }: Patience = {}): (served: Served) => Verdict {
  let deaths = 0
  let inRow = 0
  return ({ ms, others, workers, isBlamed = false }) => {
    if (ms >= stableMs) deaths = inRow = 0
    inRow++
    if (!isBlamed) deaths++
    const delayMs = inRow === 1 ? 0 : Math.min(LONGEST_MS, firstMs * 2 ** (inRow - 2))
    const isLoop = !isBlamed && deaths >= most * workers
    return { delayMs, deaths, isLoop, isHopeless: isLoop && !others.some(other => other >= stableMs) }
  }
}
