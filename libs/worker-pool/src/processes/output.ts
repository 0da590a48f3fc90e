import type { Readable } from 'node:stream'

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

const LIMIT_MS = 1_000

/** Waits for the end of a stream that is being read. A process that escaped can hold it open, so the stream is destroyed after a second. */
export async function drained(stream: Readable): Promise<void> {
  if (stream.closed) return
  const closed = Promise.withResolvers<void>()
  const timer = setTimeout(() => stream.destroy(), LIMIT_MS)
  stream.once('close', closed.resolve)
  await closed.promise
  clearTimeout(timer)
}

const PIECES = 256

export interface LastBytes {
  add(chunk: Buffer): void
  bytes(): Buffer
}

/** Keeps the last bytes of a stream. It joins the pieces only from time to time: a join for each piece would copy all kept bytes for a single new one. */
export function lastBytes(most: number): LastBytes {
  let pieces: Buffer[] = []
  let size = 0
  function bytes(): Buffer {
    const all = Buffer.concat(pieces)
    const last = Buffer.from(all.subarray(Math.max(0, all.length - most)))
    pieces = [last]
    size = last.length
    return last
  }
  return {
    bytes,
    add(chunk) {
      const last = Buffer.from(chunk.subarray(Math.max(0, chunk.length - most)))
      pieces.push(last)
      size += last.length
      if (pieces.length > PIECES || size > 2 * most) bytes()
    },
  }
}
