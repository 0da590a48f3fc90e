import { type SvcError, svcError } from '@svc/core'

export interface SemaphoreOptions {
  /** Maximum concurrent tasks. */
  readonly places: number
  /** Maximum concurrent tasks of one key. Default: `places`. */
  readonly placesEach?: number
  /** Maximum waiting tasks. Further ones are rejected. */
  readonly waiting: number
  /** Maximum waiting tasks of one key. Default: `waiting`. */
  readonly waitingEach?: number
  /** Maximum milliseconds that a task waits. Default: until its signal aborts. */
  readonly waitMs?: number
  /** Creates the error when too many tasks wait. Default: WORK_BUSY. */
  readonly busy?: (waiting: number) => Error
}

/**
 * Limits concurrent tasks, in total and for each key (a principal, a tool). Keys take turns: many tasks of one key wait behind each other, not in front of the
 * tasks of other keys.
 */
export interface Semaphore extends Disposable {
  /**
   * Takes a place. Dispose of it when the task has ended. Returns a promise if the task has to wait. Throws WORK_BUSY (or the error of `busy`) if too many
   * tasks wait, WORK_BUSY if the wait is too long, WORK_CLOSED, and the reason of the signal.
   */
  take(key: string, signal: AbortSignal): Disposable | Promise<Disposable>
  /** Rejects waiting and further tasks. */
  [Symbol.dispose](): void
}

export function createSemaphore(options: SemaphoreOptions): Semaphore {
  const { places, placesEach = places, waiting, waitingEach = waiting, waitMs, busy = workBusy } = options
  const taken = new Map<string, number>()
  const tasks = new WaitingTasks()
  let [running, isClosed] = [0, false]

  const isFree = (key: string) => running < places && (taken.get(key) ?? 0) < placesEach
  function enter(key: string): Disposable {
    running++
    taken.set(key, (taken.get(key) ?? 0) + 1)
    let isOver = false
    return {
      [Symbol.dispose]() {
        if (isOver) return
        isOver = true
        leave(key)
      },
    }
  }
  function leave(key: string): void {
    running--
    const left = taken.get(key)! - 1
    if (left > 0) taken.set(key, left)
    else taken.delete(key)
    const next = tasks.next(isFree)
    next?.turn.resolve(enter(next.key))
  }
  function wait(key: string, signal: AbortSignal): Promise<Disposable> {
    const own = tasks.sizeOf(key)
    if (tasks.size >= waiting || own >= waitingEach) throw busy(own >= waitingEach ? own : tasks.size)
    const turn = tasks.add(key)
    const giveUp = (reason: unknown) => tasks.remove(key, turn) && turn.reject(reason)
    const onAbort = () => giveUp(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    const timer = waitMs === undefined ? undefined : setTimeout(() => giveUp(workLate(waitMs)), waitMs)
    return turn.promise.finally(() => {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
    })
  }
  return {
    take(key, signal) {
      signal.throwIfAborted()
      if (isClosed) throw workClosed()
      return isFree(key) ? enter(key) : wait(key, signal)
    },
    [Symbol.dispose]() {
      isClosed = true
      tasks.rejectAll(workClosed())
    },
  }
}

type Turn = PromiseWithResolvers<Disposable>

/** The queues of waiting tasks, by key. */
class WaitingTasks {
  size = 0
  /** In the order of turns. A queue is never empty. */
  readonly #queues = new Map<string, Set<Turn>>()

  sizeOf(key: string): number {
    return this.#queues.get(key)?.size ?? 0
  }
  add(key: string): Turn {
    const turn = Promise.withResolvers<Disposable>()
    this.#queues.set(key, (this.#queues.get(key) ?? new Set()).add(turn))
    this.size++
    return turn
  }
  /** Returns false for a task that waits no longer. */
  remove(key: string, turn: Turn): boolean {
    const queue = this.#queues.get(key)
    if (!queue?.delete(turn)) return false
    this.size--
    if (queue.size === 0) this.#queues.delete(key)
    return true
  }
  /** Removes the next task whose key is free, and moves its key to the end of the round. */
  next(isFree: (key: string) => boolean): { readonly key: string; readonly turn: Turn } | undefined {
    for (const [key, queue] of this.#queues) {
      if (!isFree(key)) continue
      const [turn] = queue
      this.remove(key, turn!)
      if (this.#queues.delete(key)) this.#queues.set(key, queue)
      return { key, turn: turn! }
    }
    return undefined
  }
  rejectAll(reason: Error): void {
    for (const queue of this.#queues.values()) for (const turn of queue) turn.reject(reason)
    this.#queues.clear()
    this.size = 0
  }
}

const workBusy = (waiting: number): SvcError =>
  svcError('WORK_BUSY', `${waiting} tasks are already waiting`, { hint: 'Try again later' })

const workLate = (ms: number): SvcError =>
  svcError('WORK_BUSY', `the task was rejected after it had waited ${ms} ms for others`, {
    details: { ms },
    hint: 'Start fewer tasks at once, or try again later',
  })

export const workClosed = (): SvcError =>
  svcError('WORK_CLOSED', 'the worker pool was closed', { hint: 'Do not start work after the server starts to close' })
