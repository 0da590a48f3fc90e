import type { FileHandle } from 'node:fs/promises'

/** Some lines of a file. */
export interface LineWindow {
  /** The bytes of the lines, with their ends. */
  readonly bytes: Buffer
  /** How many lines there are in it; the last may be cut. */
  readonly lines: number
  /** Lines before it that were passed over. */
  readonly passed: number
  /** Why it ends: at the end of the file, or because there were enough lines or bytes. */
  readonly ends: 'file' | 'lines' | 'bytes'
}

/** Which lines are wanted: from line `first` (1 is the first) at most `lines` lines and `bytes` bytes. */
export interface Wanted {
  readonly first: number
  readonly lines: number
  readonly bytes: number
  /** Bytes of the file when it was opened: what is written to it meanwhile is left out, or reading a growing file might never end. */
  readonly size: number
}

const CHUNK = 65_536
const NEWLINE = 10

/** Reads lines from an open file, never holding more than what is wanted. `look` sees the first chunk. */
export async function readLines(
  handle: FileHandle,
  wanted: Wanted,
  signal: AbortSignal,
  look: (head: Buffer) => void
): Promise<LineWindow> {
  const kept: Buffer[] = []
  let [passed, lines, size, position] = [0, 0, 0, 0]
  // Whether the next byte begins a line.
  let fresh = true
  const done = (ends: LineWindow['ends']): LineWindow => ({ bytes: Buffer.concat(kept), lines, passed, ends })
  for (;;) {
    signal.throwIfAborted()
    // Files of the system (/proc) say that they are empty, and are not.
    const most = wanted.size === 0 ? CHUNK : Math.min(CHUNK, wanted.size - position)
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(CHUNK), 0, most, position)
    const chunk = buffer.subarray(0, bytesRead)
    if (position === 0) look(chunk)
    if (bytesRead === 0) return done('file')
    position += bytesRead
    for (let at = 0; at < chunk.length; ) {
      if (fresh && passed === wanted.first - 1 && lines === wanted.lines) return done('lines')
      const newline = chunk.indexOf(NEWLINE, at)
      const end = newline === -1 ? chunk.length : newline + 1
      if (passed < wanted.first - 1) passed += newline === -1 ? 0 : 1
      else {
        const line = chunk.subarray(at, Math.min(end, at + wanted.bytes - size))
        if (line.length > 0) {
          kept.push(line)
          if (fresh) lines++
        }
        size += line.length
        if (line.length < end - at) return done('bytes')
      }
      fresh = newline !== -1
      at = end
    }
  }
}

/** Cuts before a character that is not whole at the end. */
export function wholeCharacters(bytes: Buffer): Buffer {
  let end = bytes.length
  for (let back = 1; back <= Math.min(4, bytes.length); back++) {
    const byte = bytes[bytes.length - back]!
    if ((byte & 0xc0) === 0x80) continue
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
    if (length > back) end = bytes.length - back
    break
  }
  return bytes.subarray(0, end)
}
