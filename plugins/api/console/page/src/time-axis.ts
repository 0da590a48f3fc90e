/** A line of an axis of time. */
export interface Tick {
  /** Milliseconds since the beginning. */
  readonly at: number
  /** The number with its unit, such as `250 ms`. */
  readonly text: string
}

const UNITS: readonly (readonly [name: string, ms: number, counts: readonly number[]])[] = [
  ['µs', 0.001, [1, 2, 5, 10, 20, 50, 100, 200, 500]],
  ['ms', 1, [1, 2, 5, 10, 20, 50, 100, 200, 500]],
  ['s', 1_000, [1, 2, 5, 10, 20, 30]],
  ['min', 60_000, [1, 2, 5, 10, 20, 30]],
  ['h', 3_600_000, [1, 2, 3, 6, 12]],
  ['d', 86_400_000, [1, 2, 5, 10, 20, 50, 100, 200, 500]],
]
const STEPS = UNITS.flatMap(([, ms, counts]) => counts.map(count => count * ms))
/** Shorter units are tenths and hundredths of each other. */
const LONGEST_DECIMAL_MS = 1_000

const numbers = new Intl.NumberFormat('en', { maximumFractionDigits: 3 })

/** The unit of all ticks: 0.5 s, 1 s, 1.5 s, but 30 s, 60 s, 90 s. */
function unitOf(total: number, step: number): readonly [name: string, ms: number] {
  const fits = (ms: number) => ms <= step || (ms <= total && ms <= LONGEST_DECIMAL_MS)
  const [name, ms] = UNITS.findLast(([, ms]) => fits(ms)) ?? UNITS[0]!
  return [name, ms]
}

/** At most so many steps of a round size, from 0 to the last one within `total` milliseconds. */
export function ticksOf(total: number, most: number): readonly Tick[] {
  if (!(total > 0) || most < 1) return [{ at: 0, text: '0' }]
  const step = STEPS.find(size => size * most >= total) ?? total / most
  const [name, ms] = unitOf(total, step)
  // a step that is not exact in binary can end a little behind the end
  const count = Math.floor(total / step + 1e-9)
  return Array.from({ length: count + 1 }, (_, at) => ({
    at: at * step,
    text: at === 0 ? '0' : `${numbers.format((at * step) / ms)} ${name}`,
  }))
}
