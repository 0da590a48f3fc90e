type Headers = Readonly<Record<string, string | readonly string[] | undefined>>

const LONGEST_MS = 24 * 3600 * 1000

/** Milliseconds that an answer asks to wait: `retry-after-ms`, or `Retry-After` in seconds or as a date; a day at most. */
export function retryAfterOf(headers: Headers, now = Date.now()): number | undefined {
  const ms = numberOf(headers['retry-after-ms'])
  if (ms !== undefined) return bounded(ms)
  const seconds = numberOf(headers['retry-after'])
  if (seconds !== undefined) return bounded(seconds * 1000)
  const date = Date.parse(textOf(headers['retry-after']))
  return Number.isNaN(date) ? undefined : bounded(date - now)
}

const textOf = (value: Headers[string]): string => (typeof value === 'string' ? value : (value?.[0] ?? ''))
const bounded = (ms: number) => Math.min(Math.max(Math.ceil(ms), 0), LONGEST_MS)

function numberOf(value: Headers[string]): number | undefined {
  const text = textOf(value).trim()
  return /^\d{1,12}(\.\d+)?$/.test(text) ? Number(text) : undefined
}
