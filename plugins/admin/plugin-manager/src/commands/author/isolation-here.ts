import { join } from 'node:path'
import { OURS, POLICY } from '@svc/cli/program'
import { messageOf, type PluginRef, readManifest, startHost, systemContext } from '@svc/core'
import { ProcessSandbox } from '@svc/core/contracts'
import { onlyInProcess } from '@svc/testing'
import { isolationMissing } from '../errors.ts'

/** How the commands for authors run a plugin. */
export type AuthorIsolation = 'process' | 'in-process'

/** The isolation of a plugin, and why it does not have its own process. */
export interface ChosenIsolation {
  readonly isolation: AuthorIsolation
  /** Absent if the author has asked for it. */
  readonly reason?: string
  /** The plugins that isolate others. */
  readonly sandbox: readonly PluginRef[]
}

const IN_PROCESS = { isolation: 'in-process', sandbox: [] } as const

/**
 * Chooses how to run the plugin in a folder: as `asked`, else in a process of its own if this machine and the plugin allow it.
 * Throws ISOLATION_UNAVAILABLE if a process was asked for and is not possible, MANIFEST_INVALID.
 */
export async function chooseIsolation(folder: string, asked: AuthorIsolation | undefined): Promise<ChosenIsolation> {
  if (asked === 'in-process') return IN_PROCESS
  const { name, manifest } = await readManifest(join(folder, 'package.json'))
  const unfit = onlyInProcess(manifest)
  const missing = unfit === undefined ? await sandboxMissing() : undefined
  const reason = unfit ?? missing?.reason
  if (reason === undefined) return { isolation: 'process', sandbox: POLICY.map(use => ({ use, from: OURS })) }
  if (asked === 'process') throw isolationMissing(name, reason, missing?.hint ?? 'Omit --isolation')
  return { ...IN_PROCESS, reason }
}

const PROBE_MS = 60_000

/** Why this machine cannot confine a plugin to its permissions. Undefined if it can. */
async function sandboxMissing(): Promise<{ readonly reason: string; readonly hint: string } | undefined> {
  try {
    await using host = await startHost({ plugins: POLICY.slice(0, 1), from: [OURS], config: {} })
    const ctx = systemContext(AbortSignal.timeout(PROBE_MS), 'probe')
    const { ready, memory, pids, reason, hint } = await host.service(ProcessSandbox).probe(ctx)
    if (ready && memory && pids) return undefined
    return { reason: reason ?? 'the process sandbox cannot enforce its limits here', hint: hint ?? 'Install bubblewrap' }
  } catch (error) {
    return { reason: `the process sandbox does not start: ${messageOf(error)}`, hint: 'Run `svc doctor`, which names the cause' }
  }
}
