import type { Manifest, PluginRef } from '@svc/core'
import { sandboxed, isolated, noBubblewrap } from '@svc/testing'
import { pluginFolder } from './plugin-folder.ts'

export const packageOf = (name: string) => pluginFolder(name)
export const POLICY = ['sandbox-process', 'isolation'].map(packageOf)
const why = noBubblewrap()

/** Where these run, for titles: a plain process says why. */
export const WHERE = why === undefined ? 'in the sandbox' : `in a process of its own (NOT IN THE SANDBOX: ${why})`

/** A plugin of ours in a process of its own, in the sandbox where this machine has one, with what that needs; `permissions` where not those of its manifest. */
export const inSandbox = async (
  name: string,
  env: Readonly<Record<string, string>> = {},
  permissions?: Manifest['permissions']
): Promise<readonly PluginRef[]> => {
  if (why !== undefined) return [await isolated(packageOf(name), env)]
  Object.assign(process.env, env)
  return [...POLICY, await sandboxed(packageOf(name), POLICY, permissions)]
}
