/** Looks within the limit. Looks are counted, not milliseconds: a machine that slept has not looked. */
const LOOKS = 5

interface HeartbeatState {
  misses: number
  waiting: boolean
}

/**
 * Asks what `alive` names for a sign of life, five times within `limitMs`, and calls `hangs` for one that has given none: the loop of its events is blocked.
 * Returns what ends it.
 */
export function watchHeartbeats<M extends object>(
  limitMs: number,
  alive: () => Iterable<M>,
  ask: (member: M) => Promise<unknown>,
  onHang: (member: M) => void
): () => void {
  const beats = new WeakMap<M, HeartbeatState>()
  const look = (member: M) => {
    const beat = beats.get(member) ?? { misses: 0, waiting: false }
    beats.set(member, beat)
    if (!beat.waiting) return send(member, beat)
    if (++beat.misses === LOOKS) onHang(member)
  }
  const send = (member: M, beat: HeartbeatState) => {
    beat.waiting = true
    const heard = () => Object.assign(beat, { misses: 0, waiting: false })
    // whoever is gone has no heart to watch
    ask(member).then(heard, heard)
  }
  const timer = setInterval(() => {
    for (const member of alive()) look(member)
  }, limitMs / LOOKS)
  timer.unref()
  return () => clearInterval(timer)
}
