import type { Readable } from 'node:stream'

/** What is read from a stream of lines. */
export interface LineReader {
  line(text: string): void
  /** A line was longer than it may be, and is left out: how it began and ended. */
  tooLong(begin: string, end: string): void
  /** A line does not end, however much of it is thrown away. */
  endless(): void
}

/** How much of a line that is too long is kept of its begin and its end: there stands whose answer it is. */
const KEPT = 512
/** So many times the longest line is thrown away before it is given up. */
const PATIENCE = 16
const NEWLINE = 10

/** Reads lines of at most `most` bytes; never keeps more than that. */
export function readLines(stream: Readable, most: number, reader: LineReader): void {
  const held = createHeld(most, reader)
  stream.on('data', (chunk: Buffer) => {
    const last = chunk.lastIndexOf(NEWLINE)
    if (last < 0) return held.add(chunk)
    let from = 0
    if (held.isOpen()) {
      from = chunk.indexOf(NEWLINE) + 1
      held.add(chunk.subarray(0, from - 1))
      held.finish()
    }
    if (from <= last) for (const line of chunk.toString('utf8', from, last).split('\n')) whole(line, most, reader)
    if (last + 1 < chunk.length) held.add(chunk.subarray(last + 1))
  })
}

function whole(line: string, most: number, reader: LineReader): void {
  if (line.length > most) reader.tooLong(line.slice(0, KEPT), line.slice(-KEPT))
  else if (line !== '') reader.line(line)
}

/** A line of which only a part has come. */
function createHeld(most: number, reader: LineReader) {
  let parts: Buffer[] = []
  let size = 0
  let begin: string | undefined
  let end = Buffer.alloc(0)

  function skip(chunk: Buffer): void {
    begin ??= Buffer.concat(parts).toString('latin1', 0, KEPT)
    end = Buffer.concat([end, parts.at(-1) ?? end, chunk]).subarray(-KEPT)
    parts = []
    if (size > most * PATIENCE) reader.endless()
  }
  return {
    isOpen: () => size > 0,
    add(chunk: Buffer): void {
      size += chunk.length
      if (size > most) skip(chunk)
      else parts.push(chunk)
    },
    finish(): void {
      if (begin !== undefined) reader.tooLong(begin, end.toString('latin1'))
      else reader.line(Buffer.concat(parts).toString())
      parts = []
      size = 0
      begin = undefined
      end = Buffer.alloc(0)
    },
  }
}
