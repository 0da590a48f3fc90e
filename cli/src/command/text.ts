type Side = 'left' | 'right'

/** A wider cell does not widen its column. */
const WIDEST = 60

/** Formats rows as aligned columns and trims trailing blanks. */
export function table(rows: readonly (readonly string[])[], sides: readonly Side[] = []): string {
  const widthOf = ({ length }: string) => (length > WIDEST ? 0 : length)
  const widths = rows.reduce<number[]>((most, row) => row.map((cell, at) => Math.max(most[at] ?? 0, widthOf(cell))), [])
  const pad = (cell: string, at: number) =>
    sides[at] === 'right' ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0)
  return rows.map(row => row.map(pad).join('  ').trimEnd()).join('\n')
}

/** A duration for a person: `0.4 ms`, `12 ms`, `1.2 s`. */
export function milliseconds(ms: number): string {
  if (ms >= 1000) return `${(ms / 1000).toFixed(1)} s`
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`
}

/** `1,234,567`; one decimal for numbers below 10. */
export const counted = (value: number): string => value.toLocaleString('en-US', { maximumFractionDigits: value < 10 ? 1 : 0 })

/** Shortens a text to `most` characters and marks the cut. */
export const clipped = (text: string, most: number): string => (text.length > most ? `${text.slice(0, most - 1)}…` : text)

/** Puts a name before a text, unless the text begins with it. */
export const named = (name: string, text: string) => (text.startsWith(`${name}: `) ? text : `${name}: ${text}`)

/** Foreign text in one line, without control characters. */
export const oneLine = (text: string): string => text.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ').trim()

/** Foreign text with control characters escaped. */
export const visible = (text: string): string =>
  text.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, char => (char === '\t' ? char : `\\u{${char.codePointAt(0)!.toString(16)}}`))

/** The same for several lines. */
export const visibleLines = (text: string): string => text.split('\n').map(visible).join('\n')

/** Splits a text into lines of at most `width` characters; longer words stay whole. */
export function wrapped(text: string, width: number): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last === undefined || last.length + 1 + word.length > width) lines.push(word)
    else lines[lines.length - 1] = `${last} ${word}`
  }
  return lines
}
