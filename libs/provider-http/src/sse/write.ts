/** A comment that keeps a quiet stream open. */
export const HEARTBEAT = ':\n\n'

/** One event as it goes on the wire; `data` must be one line, as JSON is. */
export function eventFrame(id: number, event: string, data: string): string {
  return `id: ${id}\nevent: ${event}\ndata: ${data}\n\n`
}

/** The same without an id: a reader that comes back still names the event before. */
export function plainFrame(event: string, data: string): string {
  return `event: ${event}\ndata: ${data}\n\n`
}

const RETRY_MS = 500

/** The field that tells a reader when to come back: after half a second to a second, at random, so that not all come at once. An empty line must follow. */
export const retryField = (): string => `retry: ${RETRY_MS + Math.floor(Math.random() * RETRY_MS)}\n`
