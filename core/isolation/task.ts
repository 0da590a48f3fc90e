import type { Readable } from 'node:stream'
import type { Isolation } from '../contracts/isolation.ts'
import type { Channel } from '../processes/channel.ts'
import type { Use } from '../src/token.ts'
import { Task } from './contract.ts'
import { startProcess } from './isolated-process.ts'
import { CLOSE_MS, type IsolatedRef, requestFor } from './isolated-ref.ts'
import { plainIsolation } from './plain.ts'

/** What the module of a task exports as `run`: called in the process of the plugin with the URL of the plugin's module. */
export type TaskRun = (module: string, input: unknown, channel: Channel, use: Use) => Promise<unknown>

/** A module of the host that runs beside a module of a plugin. */
export interface IsolatedTask {
  /** URL of the module, which exports `run`. */
  readonly program: string
  /** Plain data. */
  readonly input: unknown
  /** Folders of the host's own code that it is made of, besides the core. */
  readonly hostFolders: readonly string[]
  /** Lets the far side reach what it needs of the host. */
  readonly offer?: (channel: Channel) => void
  /** What the process reads as its standard input; without it nothing. */
  readonly stdin?: Readable
  /** Reads what it prints; without it nothing does. */
  readonly onOutput?: (stream: Readable, name: 'stdout' | 'stderr') => void
}

/**
 * Runs a task in a process of its own, held by `isolation` to what the plugin may have; without it in a plain process. Throws what the task throws, PLUGIN_GONE
 * where its process ends, and ISOLATION_UNAVAILABLE.
 */
export async function runIsolated(
  ref: IsolatedRef,
  isolation: Isolation | undefined,
  task: IsolatedTask,
  use: Use
): Promise<unknown> {
  const { program, input, hostFolders, offer, stdin, onOutput } = task
  const { args, hostFolders: own, ...request } = requestFor(ref, {})
  const running = await startProcess(
    isolation ?? plainIsolation({}),
    { ...request, args: [...args, program], hostFolders: [...own, ...hostFolders] },
    use,
    { closeLimitMs: CLOSE_MS, ...(stdin ? { stdin } : {}), ...(onOutput ? { onOutput } : {}) }
  )
  try {
    offer?.(running.channel)
    return await running.channel.reach('task', Task).run(input, use)
  } finally {
    await running.end()
  }
}
