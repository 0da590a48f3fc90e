/** Receives one event. `event` is `message` if the stream names none. */
export type TakeEvent = (data: string, event: string, id: string | undefined, retry: number | undefined) => void

const LARGEST = 16 * 1024 * 1024

const LF = 10
const CR = 13
const BOM = '\uFEFF'
const LINE_END = Uint8Array.of(LF)

/**
 * Decodes an event stream (WHATWG HTML, 9.2) chunk by chunk. The returned function takes bytes and calls `take` for each complete event.
 * `limit`: maximum characters of an event. The function throws EVENT_TOO_LARGE, and any error of `take`.
 */
export function createEventDecoder(take: TakeEvent, limit = LARGEST): (bytes: Uint8Array) => void {
  const tail = createTail()
  const lines = createLines(take, limit)
  let first = true
  // True after a chunk that ends with \r: a \n at the start of the next chunk belongs to the same line end.
  let halfEnd = false
  return bytes => {
    const whole = tail.take(bytes)
    if (whole !== '') {
      let text = whole
      if (first) text = text.startsWith(BOM) ? text.slice(1) : text
      first = false
      if (text.includes('\r')) {
        const half = text.endsWith('\r')
        text = (halfEnd && text.startsWith('\n') ? text.slice(1) : text).replace(/\r\n?/g, '\n')
        halfEnd = half
      } else if (halfEnd) {
        text = text.startsWith('\n') ? text.slice(1) : text
        halfEnd = false
      }
      lines.take(text)
    }
    if (lines.size + tail.size > limit) throw tooLarge(limit)
  }
}

/** Keeps the bytes after the last line end. A line end never splits a character, so the bytes before it can be decoded at once. */
function createTail() {
  let kept: Uint8Array[] = []
  let size = 0
  return {
    get size() {
      return size
    },
    take(bytes: Uint8Array): string {
      const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
      const end = Math.max(chunk.lastIndexOf(LF), chunk.at(-1) === LF ? -1 : chunk.lastIndexOf(CR)) + 1
      if (end === 0) {
        kept.push(chunk)
        size += chunk.length
        return ''
      }
      const text = size === 0 ? chunk.toString('utf8', 0, end) : Buffer.concat([...kept, chunk.subarray(0, end)]).toString('utf8')
      kept = end < chunk.length ? [chunk.subarray(end)] : []
      size = chunk.length - end
      return text
    },
  }
}

/** Reads the lines of one stream. */
export interface LineDecoder {
  /** Throws EVENT_TOO_LARGE, and any error of the taker. */
  push(bytes: Uint8Array): void
  /** Takes the last line, which needs no line end. */
  end(): void
}

/** Decodes newline-delimited JSON chunk by chunk: calls `take` for each line that is not blank. `limit`: maximum characters of a line. */
export function createLineDecoder(take: (line: string) => void, limit = LARGEST): LineDecoder {
  const tail = createTail()
  let first = true
  const lines = (text: string) => {
    const whole = first && text.startsWith(BOM) ? text.slice(1) : text
    first = false
    for (const line of whole.split(/[\r\n]+/)) {
      if (line.length > limit) throw tooLarge(limit)
      if (line.trim() !== '') take(line)
    }
  }
  return {
    push(bytes) {
      const text = tail.take(bytes)
      if (text !== '') lines(text)
      if (tail.size > limit) throw tooLarge(limit)
    },
    end() {
      lines(tail.take(LINE_END))
    },
  }
}

/** Reads the lines of a response body as JSON. Throws a SyntaxError for a line that is not JSON. */
export async function* readLines(body: AsyncIterable<Uint8Array>, limit?: number): AsyncGenerator<unknown, void> {
  let done: string[] = []
  const decoder = createLineDecoder(line => done.push(line), limit)
  for await (const bytes of body) {
    done = []
    decoder.push(bytes)
    for (const line of done) yield JSON.parse(line) as unknown
  }
  done = []
  decoder.end()
  for (const line of done) yield JSON.parse(line) as unknown
}

/** Makes events from complete lines that end with \n. */
function createLines(take: TakeEvent, limit: number) {
  let data: string | undefined
  let event = 'message'
  let id: string | undefined
  let retry: number | undefined
  let size = 0
  const field = (name: string, value: string) => {
    if (name === 'data') data = data === undefined ? value : `${data}\n${value}`
    else if (name === 'event') event = value || 'message'
    else if (name === 'id' && !value.includes('\0')) id = value
    else if (name === 'retry' && /^\d+$/.test(value)) retry = Number(value)
  }
  const end = () => {
    const [whole, named, its, wait] = [data, event, id, retry]
    data = id = retry = undefined
    event = 'message'
    size = 0
    if (whole !== undefined) take(whole, named, its, wait)
  }
  return {
    get size() {
      return size
    },
    take(text: string) {
      let from = 0
      for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', from)) {
        if (at === from) end()
        else {
          size += at - from
          if (size > limit) throw tooLarge(limit)
          if (text.startsWith('data: ', from)) field('data', text.slice(from + 6, at))
          else takeLine(text.slice(from, at), field)
        }
        from = at + 1
      }
    },
  }
}

function takeLine(line: string, field: (name: string, value: string) => void): void {
  const colon = line.indexOf(':')
  if (colon === -1) field(line, '')
  else if (colon > 0) field(line.slice(0, colon), line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1))
}

const tooLarge = (limit: number) =>
  Object.assign(new Error(`an event has more than ${limit} characters`), { code: 'EVENT_TOO_LARGE' })

/** An event of a stream. `event` is `message` if the stream names none. */
export interface ServerEvent {
  readonly event: string
  readonly data: string
  readonly id?: string
  /** Milliseconds that the server asks to wait before the next connection. */
  readonly retry?: number
}

export interface EventParser {
  /** Takes bytes and returns the events that are complete. Throws EVENT_TOO_LARGE. */
  push(bytes: Uint8Array): ServerEvent[]
}

/** Parses an event stream chunk by chunk. `limit`: maximum characters of an event. */
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

/** Reads the events of a response body. It ignores lines after the last blank line. */
export async function* readEvents(body: AsyncIterable<Uint8Array>, limit?: number): AsyncGenerator<ServerEvent, void> {
  const parser = createEventParser(limit)
  for await (const bytes of body) yield* parser.push(bytes)
}

/** A comment that keeps a quiet stream open. */
export const HEARTBEAT = ':\n\n'

/** Formats an event. `data` must be one line, such as JSON. */
export function eventFrame(id: number, event: string, data: string): string {
  return `id: ${id}\nevent: ${event}\ndata: ${data}\n\n`
}

/** Formats an event without an id: a reader that reconnects names the event before it. */
export function plainFrame(event: string, data: string): string {
  return `event: ${event}\ndata: ${data}\n\n`
}

const RETRY_MS = 500

/** The `retry` field: a random delay from 0.5 to 1 s, so that clients do not reconnect all at once. An empty line must follow. */
export const retryField = (): string => `retry: ${RETRY_MS + Math.floor(Math.random() * RETRY_MS)}\n`
