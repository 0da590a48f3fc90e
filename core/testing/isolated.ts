import { createRequire } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { type AnyService, type AnySlot, Host, type PluginEntry, readManifest } from '@svc/core'
import * as contracts from '@svc/core/contracts'
import { isolate } from '@svc/core/isolation'

const isToken = (value: unknown): value is AnyService | AnySlot =>
  typeof value === 'object' && value !== null && 'what' in value && (value.what === 'service' || value.what === 'slot')

const TOKENS = [Host, ...Object.values(contracts).filter(isToken)]

/** The package in this folder as a plugin in a process of its own: the kits run on it as they do on the plugin itself. */
export async function isolated(folder: URL, env: Readonly<Record<string, string>> = {}): Promise<PluginEntry> {
  const file = fileURLToPath(new URL('package.json', folder))
  const { name, manifest } = await readManifest(file)
  const module = pathToFileURL(createRequire(file).resolve(name)).href
  return { name, manifest, use: await isolate({ name, module }, { contracts: TOKENS, env: { ...own(), ...env } }) }
}

/** Most of the time such a process takes is compiling: where the tests keep what they have compiled, it finds that. */
function own(): Record<string, string> {
  const { PATH = '', NODE_COMPILE_CACHE: cache } = process.env
  return { PATH, ...(cache === undefined ? {} : { NODE_COMPILE_CACHE: cache }) }
}
