import type { Readable } from 'node:stream'
import { codeOf, type CallContext } from '@svc/core'
import type { Isolation } from '@svc/core/contracts'
import type { Channel } from '../processes/channel.ts'
import { TaskRunner } from './contract.ts'
import { startProcess, unrestrictedIsolation } from './isolated-process.ts'
import { CLOSE_MS, type IsolatedRef, requestFor } from './isolated-ref.ts'

/** What the module of a task exports as `run`: called in the process of the plugin with the URL of the plugin's module. */
export type TaskRun = (module: string, input: unknown, channel: Channel, ctx: CallContext) => Promise<unknown>

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
  /** Its process ended itself with this code, as `process.exit` does: what the task resolves with; with nothing it fails with PLUGIN_GONE. */
  readonly onExit?: (code: number) => number | undefined
}

/**
 * Runs a task in a process of its own, held by `isolation` to what the plugin may have; without it in a plain process. Throws what the task throws, PLUGIN_GONE
 * where its process ends, and ISOLATION_UNAVAILABLE.
 */
export async function runIsolated(
  ref: IsolatedRef,
  isolation: Isolation | undefined,
  task: IsolatedTask,
  ctx: CallContext
): Promise<unknown> {
  const { program, input, hostFolders, offer, stdin, onOutput, onExit } = task
  const { args, hostFolders: own, ...request } = requestFor(ref, {})
  const running = await startProcess(
    isolation ?? unrestrictedIsolation({}),
    { ...request, args: [...args, program], hostFolders: [...own, ...hostFolders] },
    ctx,
    { closeLimitMs: CLOSE_MS, ...(stdin ? { stdin } : {}), ...(onOutput ? { onOutput } : {}) }
  )
  try {
    offer?.(running.channel)
    return await running.channel.reach('task', TaskRunner).run(input, ctx)
  } catch (error) {
    if (codeOf(error) !== 'PLUGIN_GONE') throw error
    await running.end()
    const code = running.exitCode()
    const result = code === undefined ? undefined : onExit?.(code)
    if (result === undefined) throw error
    return result
  } finally {
    await running.end()
  }
}
