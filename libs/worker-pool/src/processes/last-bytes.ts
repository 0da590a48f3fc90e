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
