const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** How lengths of time are written, as a pattern of JSON Schema. */
export const DURATION_PATTERN = String.raw`^\d+(\.\d+)?(ms|s|m|h|d)$`
const DURATION = new RegExp(DURATION_PATTERN)

/** Milliseconds of a length of time: `250ms`, `1.5s`, `5m`, `2h`, `7d`; undefined where it is none. */
export function durationMs(text: string): number | undefined {
  const [, , unit] = DURATION.exec(text) ?? []
  return unit === undefined ? undefined : Number.parseFloat(text) * UNITS[unit]!
}
