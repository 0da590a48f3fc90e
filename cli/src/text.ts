type Side = 'left' | 'right'

/** Rows as aligned columns; trailing blanks are cut. */
export function table(rows: readonly (readonly string[])[], sides: readonly Side[] = []): string {
  const widths = rows.reduce<number[]>((most, row) => row.map((cell, at) => Math.max(most[at] ?? 0, cell.length)), [])
  const pad = (cell: string, at: number) =>
    sides[at] === 'right' ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0)
  return rows.map(row => row.map(pad).join('  ').trimEnd()).join('\n')
}

/** A time as a person reads it: `0.4 ms`, `12 ms`, `1.2 s`. */
export function milliseconds(ms: number): string {
  if (ms >= 1000) return `${(ms / 1000).toFixed(1)} s`
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`
}
