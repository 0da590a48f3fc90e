/** One place in an order: `at` sorts by JavaScript's `<`, `position` is the sort key it was made of. */
export interface Place<T> {
  readonly at: string
  readonly position: string
  readonly item: T
}

/** Items in the order of their `at`; each change costs a search and a move within one short run. */
export interface Sorted<T> {
  add(place: Place<T>): void
  remove(at: string): void
  /** At most `limit` places with `low <= at < high`, from the low or from the high end. */
  slice(low: string, high: string | undefined, reverse: boolean, limit: number): Place<T>[]
}

const RUN = 512

/** Makes a sorted list of these places, given in any order. */
export function createSorted<T>(places: Place<T>[]): Sorted<T> {
  places.sort((a, b) => (a.at < b.at ? -1 : 1))
  const runs: Place<T>[][] = [places.slice(0, RUN)]
  for (let at = RUN; at < places.length; at += RUN) runs.push(places.slice(at, at + RUN))
  const runOf = (at: string) => search(runs.length - 1, i => runs[i]!.at(-1)!.at >= at)
  const within = (run: Place<T>[], at: string) => search(run.length, i => run[i]!.at >= at)

  return {
    add(place) {
      const r = runOf(place.at)
      const run = runs[r]!
      run.splice(within(run, place.at), 0, place)
      if (run.length > 2 * RUN) runs.splice(r + 1, 0, run.splice(RUN))
    },
    remove(at) {
      const r = runOf(at)
      const run = runs[r]!
      const i = within(run, at)
      if (run[i]?.at !== at) return
      run.splice(i, 1)
      if (run.length === 0 && runs.length > 1) runs.splice(r, 1)
    },
    slice(low, high, reverse, limit) {
      return reverse ? backward(runs, low, high, limit) : forward(runs, runOf(low), low, high, limit)
    },
  }
}

/** The first number in 0..end for which `ok` holds, `end` when it holds for none before. */
function search(end: number, ok: (i: number) => boolean): number {
  let [low, high] = [0, end]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (ok(middle)) high = middle
    else low = middle + 1
  }
  return low
}

function forward<T>(runs: Place<T>[][], first: number, low: string, high: string | undefined, limit: number): Place<T>[] {
  const out: Place<T>[] = []
  for (let r = first; r < runs.length; r++) {
    const run = runs[r]!
    for (let i = r === first ? search(run.length, at => run[at]!.at >= low) : 0; i < run.length; i++) {
      const place = run[i]!
      if (out.length === limit || (high !== undefined && place.at >= high)) return out
      out.push(place)
    }
  }
  return out
}

function backward<T>(runs: Place<T>[][], low: string, high: string | undefined, limit: number): Place<T>[] {
  const out: Place<T>[] = []
  const last = high === undefined ? runs.length - 1 : search(runs.length - 1, i => runs[i]!.at(-1)!.at >= high)
  for (let r = last; r >= 0; r--) {
    const run = runs[r]!
    const end = r === last && high !== undefined ? search(run.length, i => run[i]!.at >= high) : run.length
    for (let i = end - 1; i >= 0; i--) {
      const place = run[i]!
      if (out.length === limit || place.at < low) return out
      out.push(place)
    }
  }
  return out
}
