import { LRUCache } from 'lru-cache'

const SECOND = 1_000
/** Limit of remembered kinds. */
const MOST_KINDS = 1_000

/** Limits each kind of log line to one a second. Returns the number of lines suppressed since the last one, or `undefined` to suppress this line. */
export function createLogThrottle(): (kind: string) => number | undefined {
  const last = new LRUCache<string, { readonly at: number; suppressed: number }>({ max: MOST_KINDS })
  return kind => {
    const now = performance.now()
    const previous = last.get(kind)
    if (previous && now - previous.at < SECOND) return void previous.suppressed++
    last.set(kind, { at: now, suppressed: 0 })
    return previous?.suppressed ?? 0
  }
}
