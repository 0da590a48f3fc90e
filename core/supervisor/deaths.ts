const FIRST_MS = 200
const LONGEST_MS = 10_000
/** Who has served so long was no part of a crash loop. */
export const STABLE_MS = 5_000
/** So many deaths in a row, for each worker that should run, are one. */
const LOOP = 5

/** What a death means. */
export interface Verdict {
  /** Milliseconds until the successor is brought up. */
  readonly delayMs: number
  /** Deaths in a row. */
  readonly deaths: number
  /** Enough of them for a crash loop. */
  readonly isLoop: boolean
}

/**
 * Judges the deaths of workers: the successor of one that was stable comes at once, that of the next ones after 0.2 s, doubled up to 10 s.
 * `servedMs` is how long the worker was ready, `workers` how many should run.
 */
export function createDeaths(): (servedMs: number, workers: number) => Verdict {
  let deaths = 0
  return (servedMs, workers) => {
    deaths = servedMs >= STABLE_MS ? 1 : deaths + 1
    const delayMs = deaths === 1 ? 0 : Math.min(LONGEST_MS, FIRST_MS * 2 ** (deaths - 2))
    return { delayMs, deaths, isLoop: deaths >= LOOP * workers }
  }
}
