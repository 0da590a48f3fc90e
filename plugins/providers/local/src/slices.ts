/** The tokenizer is quadratic in a run without blanks: no slice is longer than this. */
const LONGEST = 256
/** Where a blank is looked for, so that words stay whole. */
const SHORTEST = 128

/** Cuts a text into slices the tokenizer can take: before a blank where there is one, never inside a surrogate pair. */
export function* slices(text: string): Generator<string, void> {
  let from = 0
  while (text.length - from > LONGEST) {
    const to = cutBefore(text, from)
    yield text.slice(from, to)
    from = to
  }
  yield text.slice(from)
}

function cutBefore(text: string, from: number): number {
  const end = from + LONGEST
  for (let at = end; at > from + SHORTEST; at--) if (text.charCodeAt(at) === 32) return at
  return isLow(text.charCodeAt(end)) && isHigh(text.charCodeAt(end - 1)) ? end - 1 : end
}

const isHigh = (unit: number) => unit >= 0xd800 && unit <= 0xdbff
const isLow = (unit: number) => unit >= 0xdc00 && unit <= 0xdfff
