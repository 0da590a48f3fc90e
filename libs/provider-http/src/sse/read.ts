import { createEventDecoder } from './decode.ts'

/** One event as it was read. `event` is `message` where none was named. */
export interface ServerEvent {
  readonly event: string
  readonly data: string
  readonly id?: string
  /** Milliseconds to wait before the next connection, as the server asks. */
  readonly retry?: number
}

export interface EventParser {
  /** Takes bytes as they come; answers the events that are whole now. Throws EVENT_TOO_LARGE. */
  push(bytes: Uint8Array): ServerEvent[]
}

/** Parses an event stream chunk by chunk. `limit`: characters that one event may have. */
export function createEventParser(limit?: number): EventParser {
  let done: ServerEvent[] = []
  const decode = createEventDecoder((data, event, id, retry) => {
    done.push({ event, data, ...(id === undefined ? {} : { id }), ...(retry === undefined ? {} : { retry }) })
  }, limit)
  return {
    push(bytes) {
      done = []
      decode(bytes)
      return done
    },
  }
}

/** Reads the events of a response's body. What comes after the last blank line is no event. */
export async function* readEvents(body: AsyncIterable<Uint8Array>, limit?: number): AsyncGenerator<ServerEvent, void> {
  const parser = createEventParser(limit)
  for await (const bytes of body) yield* parser.push(bytes)
}

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
