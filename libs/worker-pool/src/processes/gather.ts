import type { Readable } from 'node:stream'
import { lastBytes } from './last-bytes.ts'

/** What was kept of a stream. */
export interface Kept {
  /** Its beginning and its end where it was longer than may be kept, with a note of how much is left out between. */
  readonly text: string
  /** Bytes that came. */
  readonly bytes: number
  readonly truncated: boolean
}

/** Reads a stream to its end and keeps at most so many bytes of it: half from its beginning, half from its end, where errors stand. */
export function gather(stream: Readable, most: number, came: (bytes: number) => void): () => Kept {
  const room = Math.ceil(most / 2)
  const [head, tail] = [lastBytes(room), lastBytes(most - room)]
  let [bytes, headSize] = [0, 0]
  stream.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    const first = chunk.subarray(0, room - headSize)
    headSize += first.length
    if (first.length > 0) head.add(first)
    if (first.length < chunk.length) tail.add(chunk.subarray(first.length))
    came(chunk.length)
  })
  return () => {
    const [begun, end] = [head.bytes(), tail.bytes()]
    const left = bytes - headSize - end.length
    if (left === 0) return { text: Buffer.concat([begun, end]).toString(), bytes, truncated: false }
    return { text: `${ending(begun)}\n[… ${left} bytes are left out here …]\n${beginning(end)}`, bytes, truncated: true }
  }
}

const isWithin = (byte: number | undefined) => byte !== undefined && (byte & 0xc0) === 0x80

/** Without the half of a character that a cut leaves at the end. */
const ending = (bytes: Buffer) => new TextDecoder().decode(bytes, { stream: true })

/** Without the half of a character that a cut leaves at the beginning. */
function beginning(bytes: Buffer): string {
  let at = 0
  while (at < 3 && isWithin(bytes[at])) at++
  return bytes.subarray(at).toString()
}
