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
