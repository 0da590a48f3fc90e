import { callFailed } from '@svc/mcp-protocol'

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
