interface Price {
  readonly input: number
  readonly output: number
}

/** A space as wide as a digit. */
const FIGURE_SPACE = '\u2007'
const MOST_DIGITS = 6

const digitsOf = (value: number) => String(Number(value.toFixed(MOST_DIGITS))).split('.')[1]?.length ?? 0

/** Prices as texts of the same width, so that the points of a column stand below each other; a dash where there is none. */
export function pricesOf(prices: readonly (Price | null)[]): readonly string[] {
  const known = prices.flatMap(price => (price === null ? [] : [price.input, price.output]))
  const digits = Math.max(0, ...known.map(digitsOf))
  const format = new Intl.NumberFormat('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
  const width = Math.max(0, ...known.map(value => format.format(value).length))
  const text = (value: number) => format.format(value).padStart(width, FIGURE_SPACE)
  return prices.map(price => (price === null ? '–' : `${text(price.input)} / ${text(price.output)}`))
}
