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
export function withTimeout<T>(
  ms: number,
  work: (signal: AbortSignal) => T | Promise<T>,
  { signal, late = () => new Error(`it did not end within ${ms} ms`) }: WithinOptions = {}
): Promise<T> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted()
    const ending = new AbortController()
    const over =
      <V>(tell: (value: V) => void) =>
      (value: V) => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', onAbort)
        tell(value)
      }
    const end = over((reason: unknown) => {
      reject(reason)
      ending.abort(reason)
    })
    const onAbort = () => end(signal?.reason)
    const timer = setTimeout(() => end(late()), ms)
    signal?.addEventListener('abort', onAbort, { once: true })
    const working = async () => await work(ending.signal) // what it throws at once is a rejection too
    working().then(over(resolve), over(reject))
  })
}
