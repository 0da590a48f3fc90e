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
import { type QuarantinedName, Isolation } from '@svc/core/contracts'
import type { IsolatedRef, Prestarts } from '@svc/runtime/isolation'
import { onlyInProcess } from './errors.ts'
import { OURS } from './plugin-places.ts'

const isToken = (value: unknown): value is AnyService | AnySlot =>
  typeof value === 'object' && value !== null && 'what' in value && (value.what === 'service' || value.what === 'slot')

/** The tokens of the host: calls of an isolated plugin are checked against them. */
const TOKENS = [Host, ...Object.values(contracts).filter(isToken)]

/** Runs packages in their own processes through the service `Isolation`, except those in `excluded`. Throws NOT_ISOLABLE. */
export const isolateWith = (config: Config, excluded: readonly QuarantinedName[] = []): Isolate => {
  let shared: Prestarts | undefined
  return async ({ name, module, folder, manifest }, entry) => {
    const why = whyInProcess(manifest)
    if (why) throw onlyInProcess(name, why)
    const { files, values, permissions = manifest.permissions ?? {} } = entry
    const ref = { name, module, confinement: { folder, permissions, ...(values ? { values } : {}) } }
    const { isolate, Prestarts: Shared } = await import('@svc/runtime/isolation')
    const prestarts = (shared ??= new Shared())
    // it can be restarted long after the start of the server
    const verify = async () => (await import('@svc/plugin-manager/installed')).verifyFiles(name, folder, files!)
    const options = { contracts: TOKENS, excluded, prestarts, ...(files === undefined ? {} : { verify }) }
    const describe = () =>
      excluded.some(isolatedName => isolatedName.plugin === name) ? NOTHING : describeInSandbox(ref, config.value)
    return isolate(ref, options, entry.declares ?? (await describe()))
  }
}

/** A plugin that is kept out does not even run to be described. */
const NOTHING = { requires: {}, optional: {} }

/** Why a plugin can only run in the host's process; undefined if it can be isolated. */
export function whyInProcess({ kind, contributes = {} }: Manifest): string | undefined {
  if (kind === 'store') return `it is of kind "${kind}"`
  return Object.hasOwn(contributes, 'mounts') ? 'it adds mounts' : undefined
}

/** The plugins that isolate others. */
export const POLICY = ['@svc/plugin-sandbox-process', '@svc/plugin-isolation']

/**
 * Runs the module of a plugin once in the sandbox, to read its declarations for `declares` of its entry. Uses only the section
 * `isolation` of `tree`. Throws the error of the import, and ISOLATION_UNAVAILABLE.
 */
export async function describeInSandbox(ref: IsolatedRef, tree: ConfigTree): Promise<unknown> {
  await using describer = await openDescriber(tree)
  return await describer.describe(ref)
}

/** Describes several plugins as `describeInSandbox` does, also at a time. */
export async function openDescriber({ isolation = {} }: ConfigTree) {
  const { describeIsolated } = await import('@svc/runtime/isolation')
  const host = await startHost({ plugins: POLICY, from: [OURS], config: { isolation: isolation as ConfigTree } })
  return {
    describe: (ref: IsolatedRef): Promise<unknown> =>
      describeIsolated(ref, host.service(Isolation), {}, systemContext(AbortSignal.timeout(DESCRIBE_MS), 'describe')),
    [Symbol.asyncDispose]: () => host.close(),
  }
}

const DESCRIBE_MS = 60_000
