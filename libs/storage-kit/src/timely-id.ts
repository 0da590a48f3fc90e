import { randomUUID } from 'node:crypto'

/**
 * A new id, as a UUID of version 7 (RFC 9562): its first 48 bits are the time in milliseconds, 74 are chance. What was made at one time lies together in the
 * indexes of a store; with ids by chance alone each new record is a page more to write.
 */
export function timelyId(): string {
  const time = Date.now().toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`
}
