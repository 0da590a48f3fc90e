import { headerInvalid } from './errors.ts'

type Headers = Readonly<Record<string, string>>

const SECOND = 1_000
/** A request waits for a run no longer, whatever it prefers. */
const MOST_WAIT_MS = 60_000

/**
 * Milliseconds that a request waits for a run: `Prefer: wait=N` (RFC 7240, seconds), `respond-async` not at all; undefined where it says neither.
 * What a preference says that nobody understands does not count.
 */
export function waitOf({ prefer = '' }: Headers): number | undefined {
  const [, seconds] = /(?:^|[,;])\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:$|[,;])/i.exec(prefer) ?? []
  if (seconds !== undefined) return Math.min(Number(seconds) * SECOND, MOST_WAIT_MS)
  return /(?:^|,)\s*respond-async\s*(?:$|[,;])/i.test(prefer) ? 0 : undefined
}

/** The key of a request that must not begin two runs. Throws INVALID_VALUE. */
export function keyOf({ 'idempotency-key': key }: Headers): string | undefined {
  if (key === undefined || /^[\x21-\x7e]{1,255}$/.test(key)) return key
  throw headerInvalid('Idempotency-Key', key, 'must be 1 to 255 visible characters')
}

/** The event after which a stream goes on: `Last-Event-ID`, else `?after`, else all of them. Throws INVALID_VALUE. */
export function afterOf({ 'last-event-id': last = '' }: Headers, after = '0'): number {
  const value = last === '' ? after : last
  if (/^\d{1,15}$/.test(value)) return Number(value)
  throw headerInvalid('Last-Event-ID', value, 'must be the id of an event')
}
