const SECOND = 1_000
/** Limit of remembered kinds; the oldest is dropped first. */
const MOST_KINDS = 1_000

/** Says of a kind of line whether it is due: once a second at most. Answers the number of those left out since, `undefined` where it is not due. */
export function createLogThrottle(): (kind: string) => number | undefined {
  const last = new Map<string, { readonly at: number; left: number }>()
  return kind => {
    const now = performance.now()
    const one = last.get(kind)
    if (one && now - one.at < SECOND) return void one.left++
    last.delete(kind)
    if (last.size >= MOST_KINDS) last.delete(last.keys().next().value!)
    last.set(kind, { at: now, left: 0 })
    return one?.left ?? 0
  }
}
