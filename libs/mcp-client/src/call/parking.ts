import { randomUUID } from 'node:crypto'
import { callFailed } from '@svc/mcp-protocol'
import type { Clock } from '../options.ts'

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
