/** What bounds a piece of work besides its time. */
export interface WithinOptions {
  /** Ends the wait as well: what it aborted with is thrown. */
  readonly signal?: AbortSignal
  /** The error that says it took too long. */
  readonly late?: () => Error
}

/**
 * Does `work` for at most so many milliseconds: its signal is aborted then, and whether or not it listens, the answer comes in time. Throws what `late` says,
 * and what `signal` aborted with.
 */
export async function within<T>(
  ms: number,
  work: (signal: AbortSignal) => T | Promise<T>,
  { signal, late = () => new Error(`it did not end within ${ms} ms`) }: WithinOptions = {}
): Promise<T> {
  signal?.throwIfAborted()
  const ending = new AbortController()
  const ended = Promise.withResolvers<never>()
  const end = (reason: unknown) => {
    ending.abort(reason)
    ended.reject(reason)
  }
  const onAbort = () => end(signal?.reason)
  const timer = setTimeout(() => end(late()), ms)
  signal?.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([work(ending.signal), ended.promise])
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', onAbort)
  }
}
