import type { Readable } from 'node:stream'

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
