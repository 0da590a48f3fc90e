import type { Readable } from 'node:stream'

const LIMIT_MS = 1_000

/** When a stream that somebody reads is at its end. One that a process which nobody can find holds open is given up: what has come is all. */
export async function drained(stream: Readable): Promise<void> {
  if (stream.closed) return
  const closed = Promise.withResolvers<void>()
  const timer = setTimeout(() => stream.destroy(), LIMIT_MS)
  stream.once('close', closed.resolve)
  await closed.promise
  clearTimeout(timer)
}
