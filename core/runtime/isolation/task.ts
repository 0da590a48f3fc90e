import type { Readable } from 'node:stream'
import { codeOf, type CallContext } from '@svc/core'
import type { Isolation } from '@svc/core/contracts'
import type { Channel } from '../processes/channel.ts'
import { TaskRunner } from './contract.ts'
import { startProcess, unrestrictedIsolation } from './isolated-process.ts'
import { CLOSE_MS, type IsolatedRef, requestFor } from './isolated-ref.ts'

/** The export `run` of a task module. It is called in the process of the plugin, with the URL of the plugin's module. */
export type TaskRun = (module: string, input: unknown, channel: Channel, ctx: CallContext) => Promise<unknown>

/** A host module that runs next to the module of a plugin. */
export interface IsolatedTask {
  /** URL of the module, which exports `run`. */
  readonly program: string
  /** Plain data. */
  readonly input: unknown
  /** Folders with the host code of the task, besides the core. */
  readonly hostFolders: readonly string[]
  /** Offers services of the host to the task. */
  readonly offer?: (channel: Channel) => void
  /** The standard input of the process. Default: none. */
  readonly stdin?: Readable
  /** Reads its output. Default: the output is discarded. */
  readonly onOutput?: (stream: Readable, name: 'stdout' | 'stderr') => void
  /**
   * Maps the exit code of a process that ended itself, as with `process.exit`, to the result of the task. Without a result the
   * task fails with PLUGIN_GONE.
   */
  readonly onExit?: (code: number) => number | undefined
}

/**
 * Runs a task in its own process, confined by `isolation` to the permissions of the plugin, or else in an unrestricted process.
 * Throws errors of the task, PLUGIN_GONE when its process ends, and ISOLATION_UNAVAILABLE.
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
