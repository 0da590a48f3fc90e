/** Returns the known name nearest to a mistyped one, if any (Levenshtein distance of at most a third of its length). */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  let best: string | undefined
  let least = Math.max(1, Math.floor(name.length / 3)) + 1
  for (const candidate of known) {
    // each missing or further letter is an edit
    if (Math.abs(candidate.length - name.length) >= least) continue
    const d = distance(name.toLowerCase(), candidate.toLowerCase())
    if (d < least) [best, least] = [candidate, d]
  }
  return best
}

/** Number of edits between two words. A swap of two neighbouring letters is one edit. */
function distance(a: string, b: string): number {
  let before: number[] = []
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      const swapped = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? (before[j - 2] ?? change) + 1 : change
      next.push(Math.min(change, swapped, row[j]! + 1, next[j - 1]! + 1))
    }
    ;[before, row] = [row, next]
  }
  return row[b.length]!
}

/** Formats the nearest known name as a hint. */
export const didYouMean = (name: string, known: Iterable<string>) => {
  const near = nearest(name, known)
  return near ? `did you mean "${near}"?` : undefined
}
