import type { Readable } from 'node:stream'
import { lastBytes } from './last-bytes.ts'

/** Keeps the last bytes of a stream, which it reads to its end; answers them as text. */
export function tailOf(stream: Readable, most: number): () => string {
  const kept = lastBytes(most)
  stream.on('data', (chunk: Buffer) => kept.add(chunk))
  return () => kept.bytes().toString().trim()
}
