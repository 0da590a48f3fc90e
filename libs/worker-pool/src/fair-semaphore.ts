import { workBusy, workClosed, workLate } from './errors.ts'

/** Who asks for a place: a `CallContext` is one. Without a principal it is one with all others that have none. */
export interface Asker {
  readonly signal: AbortSignal
  readonly principal?: { readonly id: string }
}

/** A right to one of so many places. */
export interface FairSemaphore extends Disposable {
  /**
   * Waits for a place. Principals take turns: who asks for many waits behind itself, not others behind it. Throws WORK_BUSY where too many wait or the wait
   * is too long, WORK_CLOSED, and what the signal aborted with.
   */
  take(asker: Asker): Promise<Disposable>
  /** Refuses who waits, and who comes. */
  [Symbol.dispose](): void
}

export interface FairSemaphoreOptions {
  readonly places: number
  /** How many may wait together, and of one principal. */
  readonly waiting: number
  readonly waitingEach: number
  /** Milliseconds that one may wait. */
  readonly waitMs: number
}

type Turn = PromiseWithResolvers<void>

export function createFairSemaphore({ places, waiting, waitingEach, waitMs }: FairSemaphoreOptions): FairSemaphore {
  // In the order in which the principals have their turn; a line is never empty.
  const lines = new Map<string, Set<Turn>>()
  let [free, all, closed] = [places, 0, false]

  function leave(id: string, turn: Turn): boolean {
    const line = lines.get(id)
    if (!line?.delete(turn)) return false
    all--
    if (line.size === 0) lines.delete(id)
    return true
  }
  async function wait({ signal, principal }: Asker): Promise<void> {
    const id = principal?.id ?? ''
    const own = lines.get(id)?.size ?? 0
    if (all >= waiting || own >= waitingEach) throw workBusy(own >= waitingEach ? own : all)
    const turn = Promise.withResolvers<void>()
    lines.set(id, (lines.get(id) ?? new Set()).add(turn))
    all++
    const give = (reason: unknown) => leave(id, turn) && turn.reject(reason)
    const onAbort = () => give(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    const timer = setTimeout(() => give(workLate(waitMs)), waitMs)
    await turn.promise.finally(() => {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
    })
  }
  function stand(): void {
    const [next] = lines
    if (!next) return void free++
    const [id, line] = next
    const [turn] = line
    leave(id, turn!)
    // to the end of the round
    if (lines.delete(id)) lines.set(id, line)
    turn!.resolve()
  }
  return {
    async take(asker) {
      asker.signal.throwIfAborted()
      if (closed) throw workClosed()
      if (free > 0) free--
      else await wait(asker)
      return { [Symbol.dispose]: stand }
    },
    [Symbol.dispose]() {
      closed = true
      for (const line of lines.values()) for (const turn of line) turn.reject(workClosed())
      lines.clear()
      all = 0
    },
  }
}
