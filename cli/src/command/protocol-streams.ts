import { Writable } from 'node:stream'

/**
 * Reserves the standard output for the protocol that the command speaks. All other output goes to the standard error stream from
 * now on. When the reader has gone, the stream fails and the process continues, so that the command can end its work.
 */
export function takeOutput(): Writable {
  process.stdout.removeAllListeners('error').on('error', () => {})
  const write = process.stdout.write.bind(process.stdout)
  process.stdout.write = writeAside
  return new Writable({ write: (chunk: Buffer, _encoding, done) => void write(chunk, error => done(error)) })
}

type Done = (error?: Error | null) => void

function writeAside(chunk: string | Uint8Array, encoding?: BufferEncoding | Done, done?: Done): boolean {
  const after = typeof encoding === 'function' ? encoding : done
  if (chunk.length > 0)
    return typeof encoding === 'string' ? process.stderr.write(chunk, encoding, after) : process.stderr.write(chunk, after)
  // oclif writes nothing at the end of a command, and waits up to 10 s for a reader that has gone
  after?.()
  return true
}

/** Aborts at SIGTERM or SIGINT. `using ending = untilSignal()` */
export function untilSignal(): { readonly signal: AbortSignal } & Disposable {
  const controller = new AbortController()
  const end = () => controller.abort()
  const taken = ['SIGTERM', 'SIGINT'] as const
  for (const signal of taken) process.on(signal, end)
  return { signal: controller.signal, [Symbol.dispose]: () => taken.forEach(signal => process.off(signal, end)) }
}
