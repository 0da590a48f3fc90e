import type { CountState, CountWindow } from '@svc/core/contracts'

/** A window of a client that is full, and until when. */
export interface Refusal {
  readonly window: CountWindow
  readonly endsAt: number
  /** How the first window, the one that is shown, stood then. */
  readonly first: CountState
}

/** The clients known to have nothing left: they need not be counted again before their window ends. */
export interface Refusals {
  find(key: string, now: number): Refusal | undefined
  keep(key: string, refusal: Refusal): void
}

/** Remembers at most so many; who was refused first is forgotten first, which costs no more than asking the store again. */
export function createRefusals(most: number): Refusals {
  const known = new Map<string, Refusal>()
  return {
    find(key, now) {
      const refusal = known.get(key)
      if (!refusal || isOpen(refusal, now)) return refusal
      known.delete(key)
      return undefined
    },
    keep(key, refusal) {
      known.delete(key)
      if (known.size >= most) known.delete(known.keys().next().value!)
      known.set(key, refusal)
    },
  }
}

/** A window further off than its own length is one whose clock was set back since. */
const isOpen = ({ window, endsAt }: Refusal, now: number) => now < endsAt && endsAt - now <= window.ms

/** The full window of several, if there is one: of two, that which ends last, for until then nothing is left. */
export function refusalOf(windows: readonly CountWindow[], states: readonly CountState[]): Refusal | undefined {
  return windows
    .map((window, at) => ({ window, ...states[at]!, first: states[0]! }))
    .filter(({ window, count }) => count >= window.limit)
    .reduce<Refusal | undefined>((last, one) => (last && last.endsAt >= one.endsAt ? last : one), undefined)
}
