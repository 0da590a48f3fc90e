type Side = 'left' | 'right'

/** A cell that is longer moves what follows in its own row, and in no other. */
const WIDEST = 60

/** Rows as aligned columns; trailing blanks are cut. */
export function table(rows: readonly (readonly string[])[], sides: readonly Side[] = []): string {
  const widthOf = ({ length }: string) => (length > WIDEST ? 0 : length)
  const widths = rows.reduce<number[]>((most, row) => row.map((cell, at) => Math.max(most[at] ?? 0, widthOf(cell))), [])
  const pad = (cell: string, at: number) =>
    sides[at] === 'right' ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0)
  return rows.map(row => row.map(pad).join('  ').trimEnd()).join('\n')
}

/** A time as a person reads it: `0.4 ms`, `12 ms`, `1.2 s`. */
export function milliseconds(ms: number): string {
  if (ms >= 1000) return `${(ms / 1000).toFixed(1)} s`
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`
}

/** `1,234,567`; nothing after the point but for what is small. */
export const counted = (value: number): string => value.toLocaleString('en-US', { maximumFractionDigits: value < 10 ? 1 : 0 })

/** At most so many characters; what is cut off shows. */
export const clipped = (text: string, most: number): string => (text.length > most ? `${text.slice(0, most - 1)}…` : text)

/** A text under the name of who is meant, which many a text begins with already. */
export const named = (name: string, text: string) => (text.startsWith(`${name}: `) ? text : `${name}: ${text}`)

/** Text of others in one line, without what a terminal would obey or turn round. */
export const oneLine = (text: string): string => text.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ').trim()

/** Text of others as it is, but for what a terminal would obey or turn round: that is written out. */
export const visible = (text: string): string =>
  text.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, char => (char === '\t' ? char : `\\u{${char.codePointAt(0)!.toString(16)}}`))

/** The same of several lines. */
export const visibleLines = (text: string): string => text.split('\n').map(visible).join('\n')

/** Lines of at most so many characters; a word that is longer stays whole. */
export function wrapped(text: string, width: number): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last === undefined || last.length + 1 + word.length > width) lines.push(word)
    else lines[lines.length - 1] = `${last} ${word}`
  }
  return lines
}
