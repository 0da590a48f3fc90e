/** What bounds a piece of work besides its time. */
export interface WithinOptions {
  /** Ends the wait as well: what it aborted with is thrown. */
  readonly signal?: AbortSignal
  /** The error that says it took too long. */
  readonly late?: () => Error
}

/** Work that has settled after so many turns of the microtask queue never costs a timer: it is on the path of every chat. */
const AT_ONCE = 3
const TURN = Promise.resolve()

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
  const working = Promise.resolve(work(ending.signal))
  if (await settlesAtOnce(working)) return working
  if (signal?.aborted) {
    ending.abort(signal.reason)
    throw signal.reason
  }
  const ended = Promise.withResolvers<never>()
  const end = (reason: unknown) => {
    ending.abort(reason)
    ended.reject(reason)
  }
  const onAbort = () => end(signal?.reason)
  const timer = setTimeout(() => end(late()), ms)
  signal?.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([working, ended.promise])
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', onAbort)
  }
}

async function settlesAtOnce(working: Promise<unknown>): Promise<boolean> {
  let settled = false
  const settle = () => void (settled = true)
  working.then(settle, settle)
  for (let turn = 0; turn < AT_ONCE && !settled; turn++) await TURN
  return settled
}
