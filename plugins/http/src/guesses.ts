import { networkOf } from '@svc/address'
import type { Use } from '@svc/core'
import type { Store } from '@svc/core/contracts'
import { createTally } from './tally.ts'

/** So many refused credentials a minute has an address; credentials that are good pass all the same. */
export const GUESSES = 10
export const MINUTE = 60_000
const GUESSERS = 10_000

/** Counts refused credentials by the network they come from. */
export interface Guesses {
  /** Counts one more; answers the whole seconds to wait where it is one too many. */
  add(address: string, use: Use): Promise<number | undefined>
}

/** Counted in the store, for all workers and all servers that share it; where there is none, or it cannot count just now, in this process. */
export function createGuesses(store: Pick<Store, 'count'> | undefined): Guesses {
  const tally = createTally(MINUTE, GUESSERS)
  const here = (key: string) => (tally.add(key) > GUESSES ? tally.secondsLeft(key) : undefined)
  return {
    async add(address, use) {
      const key = networkOf(address)
      // whoever goes on guessing costs the store nothing: this worker has seen enough of it
      const known = here(key)
      if (known !== undefined || !store) return known
      const told = await store.count(`guess ${key}`, [{ ms: MINUTE, limit: GUESSES }], use).catch(() => undefined)
      if (!told || told.counted) return undefined
      return Math.max(1, Math.ceil((told.windows[0]!.endsAt - Date.now()) / 1000))
    },
  }
}
