import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'
import {
  type AnyService,
  type AnySlot,
  Host,
  type Manifest,
  type PluginEntry,
  type PluginRef,
  readManifest,
  startHost,
} from '@svc/core'

import * as contracts from '@svc/core/contracts'
import { Isolation } from '@svc/core/contracts'
import { describeIsolated, isolate } from '@svc/runtime/isolation'

const isToken = (value: unknown): value is AnyService | AnySlot =>
  typeof value === 'object' && value !== null && 'what' in value && (value.what === 'service' || value.what === 'slot')

/** The tokens of the host: calls of an isolated plugin are checked against them. */
export const TOKENS = [Host, ...Object.values(contracts).filter(isToken)]

/** Runs the package in this folder as a plugin in its own, unrestricted process. Kits run on it as on the plugin itself. */
export async function isolated(folder: URL, env: Readonly<Record<string, string>> = {}): Promise<PluginEntry> {
  const { name, manifest, module } = await packageIn(folder)
  return { name, manifest, use: await isolate({ name, module }, { contracts: TOKENS, env: { ...own(), ...env } }) }
}

/**
 * The same, confined to its manifest by the service `Isolation` of `policy` (`@svc/plugin-sandbox-process`,
 * `@svc/plugin-isolation`). A host with this plugin needs these plugins, too. `permissions` replaces those of the manifest.
 */
export async function sandboxed(
  folder: URL,
  policy: readonly PluginRef[],
  permissions?: Manifest['permissions']
): Promise<PluginEntry> {
  const { name, manifest, module } = await packageIn(folder)
  const ref = {
    name,
    module,
    confinement: { folder: fileURLToPath(folder), permissions: permissions ?? manifest.permissions ?? {} },
  }
  await using host = await startHost({ plugins: policy, config: {} })
  const declares = await describeIsolated(ref, host.service(Isolation))
  return { name, manifest, use: await isolate(ref, { contracts: TOKENS }, declares) }
}

async function packageIn(folder: URL) {
  const file = fileURLToPath(new URL('package.json', folder))
  const { name, manifest } = await readManifest(file)
  return { name, manifest, module: pathToFileURL(createRequire(file).resolve(name)).href }
}

/** Such a process spends most of its time compiling, so it shares the compile cache of the tests. */
function own(): Record<string, string> {
  const { PATH = '', NODE_COMPILE_CACHE: cache } = process.env
  return { PATH, ...(cache === undefined ? {} : { NODE_COMPILE_CACHE: cache }) }
}

const TRIAL = ['--unshare-user', '--unshare-pid', '--ro-bind', '/', '/', '--proc', '/proc', 'true']
let found: { readonly why: string | undefined } | undefined

/**
 * Returns why this machine has no process sandbox, or `undefined` if it has one. Tests that need it skip themselves with this
 * reason.
 */
export function noBubblewrap(): string | undefined {
  found ??= { why: whyNot(spawnSync('bwrap', TRIAL)) }
  return found.why
}

const whyNot = ({ status, error }: ReturnType<typeof spawnSync>) =>
  status === 0 ? undefined : `bubblewrap ${error ? 'is not installed' : 'may make no namespaces'} on this machine`
