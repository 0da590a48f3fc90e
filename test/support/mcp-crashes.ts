import { readdirSync, readFileSync } from 'node:fs'
import { createMcpClient } from '@svc/plugin-mcp-client/client'
import { hostileCommand } from './hostile.ts'

export interface Crashes {
  readonly calls: number
  /** Each n-th call of a process is its last. */
  readonly diesEach: number
  readonly atOnce: number
}

/** What became of many calls to a server that dies again and again. */
export interface CrashOutcome {
  readonly good: number
  /** Calls that were under way when it died. */
  readonly lost: number
  /** Calls that failed otherwise: there must be none. */
  readonly others: readonly string[]
  /** How often it was started. */
  readonly starts: number
  /** Its processes that are still there at the end. */
  readonly left: number
}

/** Calls a server that dies, and each time has started a process of its own. */
export async function callThroughCrashes({ calls, diesEach, atOnce }: Crashes): Promise<CrashOutcome> {
  const mark = `soak-${process.pid}-${Date.now()}`
  const outcome = { good: 0, lost: 0, others: [] as string[], starts: 0 }
  {
    await using client = createMcpClient({
      ...hostileCommand({ diesEach, grandchild: 'session' }),
      env: { SVC_SOAK: mark },
      quarantineAfter: Number.MAX_SAFE_INTEGER,
      backoff: () => 0,
    })
    client.onChange(change => change.type === 'connected' && outcome.starts++)
    let left = calls
    const some = async () => {
      while (left-- > 0) {
        const { error } = await client.callTool('echo', { text: 'x' })
        if (error === null) outcome.good++
        else if (error.class === 'connection_refused') outcome.lost++
        else outcome.others.push(`${error.class}: ${error.message}`)
      }
    }
    await Promise.all(Array.from({ length: atOnce }, some))
  }
  return { ...outcome, left: processesWith(`SVC_SOAK=${mark}`) }
}

/** Processes of this machine with this variable, those that have ended and were not waited for left out. */
export function processesWith(variable: string): number {
  const own = readdirSync('/proc').filter(name => /^\d+$/.test(name) && name !== String(process.pid))
  return own.filter(pid => contains(pid, variable)).length
}

function contains(pid: string, variable: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(variable)
  } catch {
    return false
  }
}
