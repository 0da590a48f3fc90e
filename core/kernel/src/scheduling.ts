/** What bounds a piece of work besides its time. */
export interface TimeoutOptions {
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
  { signal, late = () => new Error(`it did not end within ${ms} ms`) }: TimeoutOptions = {}
): Promise<T> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted()
    const ending = new AbortController()
    const over =
      <V>(settle: (value: V) => void) =>
      (value: V) => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', onAbort)
        settle(value)
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

/** Takes a step of one piece of work among many. The step must not throw. */
export type StepBatcher = (step: () => void) => void

/**
 * Steps that come within one turn of the loop are done together at its end; where the turn before had but one, nobody waits. Many at a time cost less: the
 * same step of another request finds its code in the processor's caches (a chat takes a third less so), and a write that finds its reader awake half of one
 * that must wake it. For where many wait at the same time: a body that is read, an upstream's answer, the end of a reply.
 */
export function createStepBatcher(): StepBatcher {
  let ready: (() => void)[] = []
  let [count, isBusy] = [0, false]
  const endTurn = () => {
    const steps = ready
    ;[ready, isBusy, count] = [[], count > 1, 0]
    for (const step of steps) step()
  }
  return step => {
    if (++count === 1) setImmediate(endTurn)
    if (isBusy) ready.push(step)
    else step()
  }
}
