import type { Readable } from 'node:stream'
import { lastBytes } from './last-bytes.ts'

/** The kept output of a stream. */
export interface CapturedOutput {
  /** All of it; or its beginning and its end, with a note of the omitted bytes in between. */
  readonly text: string
  /** Bytes of the whole stream. */
  readonly bytes: number
  readonly truncated: boolean
}

/** Reads a stream to its end and keeps at most `most` bytes: half from its beginning, half from its end, where errors usually are. */
export function gather(stream: Readable, most: number, came: (bytes: number) => void): () => CapturedOutput {
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

/** Drops a partial character at the end. */
const ending = (bytes: Buffer) => new TextDecoder().decode(bytes, { stream: true })

/** Drops a partial character at the beginning. */
function beginning(bytes: Buffer): string {
  let at = 0
  while (at < 3 && isWithin(bytes[at])) at++
  return bytes.subarray(at).toString()
}
