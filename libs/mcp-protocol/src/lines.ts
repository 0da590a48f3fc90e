import type { Readable, Writable } from 'node:stream'

/** Receives the lines of a stream. */
export interface LineReader {
  line(text: string): void
  /** A line exceeds the limit and is dropped. Reports its first and last characters. */
  tooLong(begin: string, end: string): void
  /** A line is many times longer than the limit and has not ended. */
  endless(): void
}

/** Characters to keep from each end of a line that is too long. They contain the id of the request. */
const EXCERPT = 512
/** A line that is this many times longer than the limit is endless. */
const ENDLESS_FACTOR = 16
const NEWLINE = 10

/** Reads lines of at most `most` bytes, and never buffers more than that. */
export function readLines(stream: Readable, most: number, reader: LineReader): void {
  const partial = createPartialLine(most, reader)
  stream.on('data', (chunk: Buffer) => {
    const last = chunk.lastIndexOf(NEWLINE)
    if (last < 0) return partial.add(chunk)
    let from = 0
    if (partial.isOpen()) {
      from = chunk.indexOf(NEWLINE) + 1
      partial.add(chunk.subarray(0, from - 1))
      partial.finish()
    }
    if (from <= last) for (const line of chunk.toString('utf8', from, last).split('\n')) whole(line, most, reader)
    if (last + 1 < chunk.length) partial.add(chunk.subarray(last + 1))
  })
}

function whole(line: string, most: number, reader: LineReader): void {
  if (line.length > most) reader.tooLong(line.slice(0, EXCERPT), line.slice(-EXCERPT))
  else if (line !== '') reader.line(line)
}

/** Buffers a line until its end arrives. */
function createPartialLine(most: number, reader: LineReader) {
  /** One buffer for all chunks: a million chunks of one byte would take hundreds of times their length. */
  let memory = Buffer.alloc(0)
  let length = 0
  let size = 0
  let begin: string | undefined
  let end = Buffer.alloc(0)

  function keep(chunk: Buffer): void {
    if (length + chunk.length > memory.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(length + chunk.length, memory.length * 2))
      memory.copy(larger, 0, 0, length)
      memory = larger
    }
    length += chunk.copy(memory, length)
  }
  function skip(chunk: Buffer): void {
    begin ??= memory.toString('latin1', 0, Math.min(length, EXCERPT))
    end = Buffer.concat([end, memory.subarray(Math.max(0, length - EXCERPT), length), chunk]).subarray(-EXCERPT)
    clear()
    if (size > most * ENDLESS_FACTOR) reader.endless()
  }
  function clear(): void {
    memory = Buffer.alloc(0)
    length = 0
  }
  return {
    isOpen: () => size > 0,
    add(chunk: Buffer): void {
      size += chunk.length
      if (size > most) skip(chunk)
      else keep(chunk)
    },
    finish(): void {
      if (begin !== undefined) reader.tooLong(begin, end.toString('latin1'))
      else reader.line(memory.toString('utf8', 0, length))
      clear()
      size = 0
      begin = undefined
      end = Buffer.alloc(0)
    },
  }
}

/** Reads a message of JSON-RPC. Some servers print banners and logs to the standard output: `undefined` for a line that is not a message. */
export function readMessage(line: string): object | undefined {
  if (!line.startsWith('{')) return undefined
  try {
    const message = JSON.parse(line) as { jsonrpc?: unknown }
    return message.jsonrpc === '2.0' ? message : undefined
  } catch {
    return undefined
  }
}

/** Limit on the messages in memory that the other side has not read. */
const MAX_UNREAD = 33_554_432

/**
 * Writes messages as lines of JSON. Collects those of one turn of the event loop into one write: a write costs more than a message.
 * Returns why a message cannot be sent.
 */
export function createLineWriter(stream: Writable): (message: object) => string | undefined {
  let waiting = ''
  const flush = () => {
    if (stream.writable) stream.write(waiting)
    waiting = ''
  }
  return message => {
    if (!stream.writable) return 'its process has ended'
    if (stream.writableLength > MAX_UNREAD) return 'it does not read its input'
    if (waiting === '') setImmediate(flush)
    waiting += `${JSON.stringify(message)}\n`
    return undefined
  }
}
