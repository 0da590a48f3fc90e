import { availableParallelism } from 'node:os'

/** Programs that run at a time: each uses about one core. */
const MOST = Math.max(2, Math.min(6, availableParallelism()))

/**
 * Runs `work` for each item, a few at a time, and returns the results in the order of the items. After a failure it aborts the
 * signal of the others and waits for their end, then throws the first error.
 */
export async function mapAtOnce<T, R>(
  items: readonly T[],
  work: (item: T, at: number, signal: AbortSignal) => Promise<R>,
  signal?: AbortSignal
): Promise<R[]> {
  const failed = new AbortController()
  const ending = signal ? AbortSignal.any([signal, failed.signal]) : failed.signal
  const results: R[] = []
  const open = items.entries()
  const worker = async () => {
    for (const [at, item] of open) {
      if (ending.aborted) return
      try {
        results[at] = await work(item, at, ending)
      } catch (error) {
        failed.abort(error)
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(MOST, items.length) }, worker))
  ending.throwIfAborted()
  return results
}
