import { randomUUID } from 'node:crypto'
import { callFailed } from '@svc/mcp-protocol'
import { questionClosed } from '../failures.ts'
import type { Clock } from '../timing.ts'

const MAX_WAITING = 1_000

/** Limits the concurrent calls of a server, and of each tool; further calls wait in order. */
export class ConcurrencyLimit {
  readonly #server: string
  readonly #max: number
  readonly #maxPerTool: number
  readonly #perTool = new Map<string, number>()
  readonly #waiting = new Set<{ readonly tool: string; enter(): void }>()
  #running = 0

  constructor(server: string, max: number, maxPerTool: number) {
    this.#server = server
    this.#max = max
    this.#maxPerTool = maxPerTool
  }

  /** Returns a function that ends the call, to be called once; a promise of it where the call has to wait. Throws the reason of an abort, and MCP_CALL_FAILED where too many calls wait. */
  enter(tool: string, signal: AbortSignal): (() => void) | Promise<() => void> {
    signal.throwIfAborted()
    if (this.#isFree(tool)) return this.#take(tool)
    if (this.#waiting.size < MAX_WAITING) return this.#wait(tool, signal)
    throw callFailed(this.#server, 'timeout', `${MAX_WAITING} calls wait for it already`, { delivered: 'no' })
  }

  #isFree(tool: string): boolean {
    return this.#running < this.#max && (this.#perTool.get(tool) ?? 0) < this.#maxPerTool
  }

  #take(tool: string): () => void {
    this.#running++
    this.#perTool.set(tool, (this.#perTool.get(tool) ?? 0) + 1)
    return () => this.#leave(tool)
  }

  #leave(tool: string): void {
    this.#running--
    const left = this.#perTool.get(tool)! - 1
    if (left === 0) this.#perTool.delete(tool)
    else this.#perTool.set(tool, left)
    for (const waiter of this.#waiting) {
      if (this.#running === this.#max) return
      if (this.#isFree(waiter.tool)) waiter.enter()
    }
  }

  #wait(tool: string, signal: AbortSignal): Promise<() => void> {
    const { promise, resolve, reject } = Promise.withResolvers<() => void>()
    const end = () => {
      this.#waiting.delete(waiter)
      signal.removeEventListener('abort', onAbort)
    }
    const onAbort = () => {
      end()
      reject(signal.reason as Error)
    }
    const waiter = {
      tool,
      enter: () => {
        end()
        resolve(this.#take(tool))
      },
    }
    this.#waiting.add(waiter)
    signal.addEventListener('abort', onAbort, { once: true })
    return promise
  }
}

/** Only the same caller may resume a call, with the same tool. */
interface ParkedKey {
  readonly tool: string
  readonly owner: string | undefined
}

/** Calls that wait until a person has answered the server's question (before 2026, where the call stays open meanwhile). */
export class ParkedCalls<T> {
  readonly #server: string
  readonly #max: number
  readonly #ms: number
  readonly #clock: Clock
  readonly #all = new Map<string, ParkedKey & { readonly call: T; readonly cancel: () => void }>()

  constructor(server: string, max: number, ms: number, clock: Clock) {
    this.#server = server
    this.#max = max
    this.#ms = ms
    this.#clock = clock
  }

  get size(): number {
    return this.#all.size
  }

  /** Adds a call and returns the state that resumes it. Calls `late` where no answer comes in time. */
  add(call: T, key: ParkedKey, late: () => void): string {
    if (this.#all.size >= this.#max) throw callFailed(this.#server, 'cancelled', `${this.#max} calls wait for an answer already`)
    const state = randomUUID()
    const cancel = this.#clock.after(this.#ms, () => {
      this.#all.delete(state)
      late()
    })
    this.#all.set(state, { ...key, call, cancel })
    return state
  }

  /** Removes and returns the call. Throws MCP_CALL_FAILED where it is gone, or belongs to another caller. */
  take(state: string, { tool, owner }: ParkedKey): T {
    const parked = this.#all.get(state)
    if (parked === undefined || parked.tool !== tool || parked.owner !== owner) throw questionClosed(this.#server)
    this.#remove(state)
    return parked.call
  }

  /** Drops all calls: their connection is gone. */
  clear(): void {
    for (const state of this.#all.keys()) this.#remove(state)
  }

  #remove(state: string): void {
    this.#all.get(state)?.cancel()
    this.#all.delete(state)
  }
}
