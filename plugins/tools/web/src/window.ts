/** Some characters of a page. */
export interface Window {
  readonly content: string
  readonly start: number
  readonly characters: number
  readonly next_start?: number
  readonly note?: string
}

/** How the text of a page was changed before. */
interface Done {
  /** It was cut at so many bytes. */
  readonly cutAt?: number | undefined
  /** Hidden characters that were taken out of it. */
  readonly hidden?: readonly string[]
}

/** Cuts `most` characters out of a text, from `start` on, never through a surrogate pair. */
export function windowOf(text: string, start: number, most: number, { cutAt, hidden = [] }: Done = {}): Window {
  const from = whole(text, Math.min(start, text.length))
  const end = whole(text, from + most) === from ? from + 2 : whole(text, from + most)
  const more = end < text.length
  const notes = [
    ...(text === '' ? ['The page is empty.'] : start >= text.length ? [`The page ends before character ${start}.`] : []),
    ...(more ? [`Characters ${from} to ${end} of ${text.length}; read on with start ${end}.`] : []),
    ...(cutAt === undefined ? [] : [`The page is longer than the ${cutAt} bytes that are read; the rest is cut.`]),
    ...(hidden.length === 0 ? [] : [`Hidden characters were taken out: ${hidden.slice(0, MOST_HIDDEN).join(', ')}.`]),
  ]
  const note = notes.length > 0 ? { note: notes.join(' ') } : {}
  return { content: text.slice(from, end), start: from, characters: text.length, ...(more && { next_start: end }), ...note }
}

/** Limit on the kinds of hidden characters that the note names. */
const MOST_HIDDEN = 10

/** The place itself, or the one before it where it lies within a character. */
const whole = (text: string, at: number) => {
  const splits = at > 0 && at < text.length && /[\ud800-\udbff]/.test(text[at - 1]!) && /[\udc00-\udfff]/.test(text[at]!)
  return splits ? at - 1 : at
}
