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
  /** In one piece of memory: a part may be a single byte, and a million of those take hundreds of times their length. */
  let memory = Buffer.alloc(0)
  let kept = 0
  let size = 0
  let begin: string | undefined
  let end = Buffer.alloc(0)

  function keep(chunk: Buffer): void {
    if (kept + chunk.length > memory.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(kept + chunk.length, memory.length * 2))
      memory.copy(larger, 0, 0, kept)
      memory = larger
    }
    kept += chunk.copy(memory, kept)
  }
  function skip(chunk: Buffer): void {
    begin ??= memory.toString('latin1', 0, Math.min(kept, KEPT))
    end = Buffer.concat([end, memory.subarray(Math.max(0, kept - KEPT), kept), chunk]).subarray(-KEPT)
    clear()
    if (size > most * PATIENCE) reader.endless()
  }
  function clear(): void {
    memory = Buffer.alloc(0)
    kept = 0
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
      else reader.line(memory.toString('utf8', 0, kept))
      clear()
      size = 0
      begin = undefined
      end = Buffer.alloc(0)
    },
  }
}
