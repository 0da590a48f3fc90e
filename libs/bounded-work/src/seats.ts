import { workBusy, workClosed } from './errors.ts'

/** A right to one of so many places. */
export interface Seats {
  /** Waits for a place; the first that asked is the first that sits. Throws WORK_BUSY, WORK_CLOSED, and what the signal aborted with. */
  take(signal: AbortSignal): Promise<Disposable>
  close(): void
}

export function createSeats(places: number, mostWaiting: number): Seats {
  const waiting = new Set<PromiseWithResolvers<void>>()
  let free = places
  let closed = false

  async function wait(signal: AbortSignal): Promise<void> {
    if (waiting.size >= mostWaiting) throw workBusy(waiting.size)
    const turn = Promise.withResolvers<void>()
    const onAbort = () => waiting.delete(turn) && turn.reject(signal.reason)
    waiting.add(turn)
    signal.addEventListener('abort', onAbort, { once: true })
    await turn.promise.finally(() => signal.removeEventListener('abort', onAbort))
  }
  function stand(): void {
    const [next] = waiting
    if (!next) return void free++
    waiting.delete(next)
    next.resolve()
  }
  return {
    async take(signal) {
      signal.throwIfAborted()
      if (closed) throw workClosed()
      if (free > 0) free--
      else await wait(signal)
      return { [Symbol.dispose]: stand }
    },
    close() {
      closed = true
      for (const turn of waiting) turn.reject(workClosed())
      waiting.clear()
    },
  }
}
