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

const LARGEST = 16 * 1024 * 1024
const LINE_END = /\r\n|\n|\r/g

/** Parses an event stream (WHATWG HTML, 9.2) chunk by chunk. `limit`: characters that one event may have. */
export function createEventParser(limit = LARGEST): EventParser {
  const decoder = new TextDecoder()
  let event = emptyEvent()
  let line = ''
  let size = 0
  let halfEnd = false
  const endLine = (done: ServerEvent[]) => {
    if (line !== '') takeField(event, line)
    else {
      if (event.data.length > 0) done.push(finished(event))
      event = emptyEvent()
      size = 0
    }
    line = ''
  }
  const grow = (text: string) => {
    line += text
    size += text.length
    if (size > limit) throw tooLarge(limit)
  }
  return {
    push(bytes) {
      const done: ServerEvent[] = []
      const text = decoder.decode(bytes, { stream: true })
      if (text === '') return done
      // the \r before has ended its line already
      let from = halfEnd && text.startsWith('\n') ? 1 : 0
      const ends = new RegExp(LINE_END)
      ends.lastIndex = from
      for (let end = ends.exec(text); end; end = ends.exec(text)) {
        grow(text.slice(from, end.index))
        endLine(done)
        from = ends.lastIndex
      }
      grow(text.slice(from))
      halfEnd = text.endsWith('\r')
      return done
    },
  }
}

/** Reads the events of a response's body. What comes after the last blank line is no event. */
export async function* readEvents(body: AsyncIterable<Uint8Array>, limit?: number): AsyncGenerator<ServerEvent, void> {
  const parser = createEventParser(limit)
  for await (const bytes of body) yield* parser.push(bytes)
}

interface Building {
  event: string
  data: string[]
  id?: string
  retry?: number
}
const emptyEvent = (): Building => ({ event: 'message', data: [] })

const finished = ({ data, ...event }: Building): ServerEvent => ({ ...event, data: data.join('\n') })

function takeField(event: Building, line: string) {
  const colon = line.indexOf(':')
  const name = colon === -1 ? line : line.slice(0, colon)
  const value = colon === -1 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
  if (name === 'data') event.data.push(value)
  else if (name === 'event') event.event = value || 'message'
  else if (name === 'id' && !value.includes('\0')) event.id = value
  else if (name === 'retry' && /^\d+$/.test(value)) event.retry = Number(value)
}

const tooLarge = (limit: number) =>
  Object.assign(new Error(`an event has more than ${limit} characters`), { code: 'EVENT_TOO_LARGE' })
