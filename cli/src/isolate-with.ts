import {
  type AnyService,
  type AnySlot,
  type Config,
  type ConfigTree,
  Host,
  type Isolate,
  type Manifest,
  startHost,
  systemContext,
} from '@svc/core'
import * as contracts from '@svc/core/contracts'
import { type IsolatedName, Isolation } from '@svc/core/contracts'
import type { IsolatedRef } from '@svc/runtime/isolation'
import { onlyInProcess } from './errors.ts'
import { OURS } from './plugin-places.ts'

const isToken = (value: unknown): value is AnyService | AnySlot =>
  typeof value === 'object' && value !== null && 'what' in value && (value.what === 'service' || value.what === 'slot')

/** The host's own tokens: an isolated plugin is held to their form. */
const TOKENS = [Host, ...Object.values(contracts).filter(isToken)]

/** Runs packages in processes of their own, held by the service `Isolation`, but for those that are kept out. Throws NOT_ISOLABLE for what cannot. */
export const isolateWith =
  (config: Config, excluded: readonly IsolatedName[] = []): Isolate =>
  async ({ name, module, folder, manifest }, entry) => {
    const why = whyInProcess(manifest)
    if (why) throw onlyInProcess(name, why)
    const ref = { name, module, confinement: { folder, permissions: entry.permissions ?? manifest.permissions ?? {} } }
    const { isolate } = await import('@svc/runtime/isolation')
    const { files } = entry
    // it may be started again long after the start of the server
    const verify = async () => (await import('@svc/plugin-manager/installed')).verifyFiles(name, folder, files!)
    const options = { contracts: TOKENS, excluded, ...(files === undefined ? {} : { verify }) }
    const describe = () => (excluded.some(one => one.plugin === name) ? NOTHING : describeInSandbox(ref, config.value))
    return isolate(ref, options, entry.declares ?? (await describe()))
  }

/** What is kept out is not even run to learn what it declares. */
const NOTHING = { requires: {}, optional: {} }

/** Why a plugin can only run in the host's process, where that is so. */
export function whyInProcess({ kind, contributes = {} }: Manifest): string | undefined {
  if (kind === 'store') return `it is of kind "${kind}"`
  return Object.hasOwn(contributes, 'mounts') ? 'it adds mounts' : undefined
}

/** The plugins that hold isolated ones. */
export const POLICY = ['@svc/plugin-sandbox-process', '@svc/plugin-isolation']

/**
 * Runs the module of a plugin once, in the sandbox, to learn what it declares: plain data for `declares` of its entry. `tree`: the configuration, of which its
 * section `isolation` counts. Throws what importing it throws, and ISOLATION_UNAVAILABLE.
 */
export async function describeInSandbox(ref: IsolatedRef, { isolation = {} }: ConfigTree): Promise<unknown> {
  const { describeIsolated } = await import('@svc/runtime/isolation')
  const config = { isolation: isolation as ConfigTree }
  await using host = await startHost({ plugins: POLICY, from: [OURS], config })
  return await describeIsolated(ref, host.service(Isolation), {}, systemContext(AbortSignal.timeout(DESCRIBE_MS), 'describe'))
}

const DESCRIBE_MS = 60_000
