import { randomUUID } from 'node:crypto'
import { callFailed } from '@svc/mcp'
import type { Clock } from '../timing.ts'

/** Lets so many calls through at once, and so many of one tool; the others wait, first come first served. */
export interface Places {
  /** Answers what gives the place back, to be called once; a promise of it where it must be waited for. Throws what the signal aborted with, and MCP_CALL_FAILED where too many wait already. */
  enter(tool: string, signal: AbortSignal): (() => void) | Promise<() => void>
}

const MOST_WAITING = 1_000

interface Waiter {
  readonly tool: string
  enter(): void
}

export function createPlaces(server: string, most: number, mostPerTool: number): Places {
  const perTool = new Map<string, number>()
  const waiting = new Set<Waiter>()
  let taken = 0

  const fits = (tool: string) => taken < most && (perTool.get(tool) ?? 0) < mostPerTool

  function take(tool: string): () => void {
    taken++
    perTool.set(tool, (perTool.get(tool) ?? 0) + 1)
    return () => leave(tool)
  }
  function leave(tool: string): void {
    taken--
    const left = perTool.get(tool)! - 1
    if (left === 0) perTool.delete(tool)
    else perTool.set(tool, left)
    for (const waiter of waiting) {
      if (taken === most) return
      if (fits(waiter.tool)) waiter.enter()
    }
  }
  function wait(tool: string, signal: AbortSignal): Promise<() => void> {
    const { promise, resolve, reject } = Promise.withResolvers<() => void>()
    const waiter: Waiter = {
      tool,
      enter() {
        end()
        resolve(take(tool))
      },
    }
    const onAbort = () => {
      end()
      reject(signal.reason as Error)
    }
    const end = () => {
      waiting.delete(waiter)
      signal.removeEventListener('abort', onAbort)
    }
    waiting.add(waiter)
    signal.addEventListener('abort', onAbort, { once: true })
    return promise
  }
  return {
    enter(tool, signal) {
      signal.throwIfAborted()
      if (fits(tool)) return take(tool)
      if (waiting.size < MOST_WAITING) return wait(tool, signal)
      throw callFailed(server, 'timeout', `${MOST_WAITING} calls wait for it already`, { delivered: 'no' })
    },
  }
}

/** Calls that wait until somebody has answered what their server asks (before 2026, where the call itself stays open meanwhile). */
export interface Parking<T> {
  /** Keeps a call; answers the state by which it is found again. `late` is called where nobody comes in time. */
  add(call: T, key: Key, late: () => void): string
  /** Takes the call out. Throws MCP_CALL_FAILED where it is gone, or somebody else's. */
  take(state: string, key: Key): T
  /** Drops all: their connection is gone. */
  clear(): void
  readonly size: number
}

/** A call is resumed by who began it, with the same tool. */
interface Key {
  readonly tool: string
  readonly owner: string | undefined
}

interface Parked<T> extends Key {
  readonly call: T
  readonly stop: () => void
}

export function createParking<T>(server: string, most: number, ms: number, clock: Clock): Parking<T> {
  const all = new Map<string, Parked<T>>()
  const forget = (state: string) => {
    all.get(state)?.stop()
    all.delete(state)
  }
  return {
    add(call, key, late) {
      if (all.size >= most) throw callFailed(server, 'cancelled', `${most} calls wait for an answer already`)
      const state = randomUUID()
      const stop = clock.after(ms, () => {
        all.delete(state)
        late()
      })
      all.set(state, { ...key, call, stop })
      return state
    },
    take(state, { tool, owner }) {
      const found = all.get(state)
      if (found === undefined || found.tool !== tool || found.owner !== owner)
        throw callFailed(server, 'cancelled', 'its question is no longer open', { delivered: 'no' })
      forget(state)
      return found.call
    },
    clear() {
      for (const state of all.keys()) forget(state)
    },
    get size() {
      return all.size
    },
  }
}
