const FIRST_MS = 200
const LONGEST_MS = 10_000
const STABLE_MS = 60_000

/** How long to wait before what died is brought up again: not at all, then 0.2 s, doubled up to 10 s; a stable minute forgets. */
export function createBackoff(now: () => number = Date.now): () => number {
  let deaths = 0
  let last = Number.NEGATIVE_INFINITY
  return () => {
    deaths = now() - last > STABLE_MS ? 1 : deaths + 1
    last = now()
    return deaths === 1 ? 0 : Math.min(LONGEST_MS, FIRST_MS * 2 ** (deaths - 2))
  }
}
