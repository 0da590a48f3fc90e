import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Manifest, readManifest } from '@svc/core'
import { nameOurs, notAPlugin } from './errors.ts'
import { isOurs, NAME, VERSION } from './lock.ts'

/** What is read of a plugin's package.json. */
export interface PluginPackage {
  readonly name: string
  readonly version: string
  readonly description: string
  readonly manifest: Manifest
  /** Names of the scripts that npm would run at its install. */
  readonly installScripts: readonly string[]
  /** It depends on something, be it the core alone: npm has to say whether all of it can be had. */
  readonly hasDependencies: boolean
  /** In words, each of these that is no package of the registry. */
  readonly stray: readonly string[]
}

interface PackageJson extends Wishes {
  readonly name?: unknown
  readonly version?: unknown
  readonly description?: unknown
  readonly svc?: unknown
  readonly scripts?: Readonly<Record<string, unknown>>
}

const INSTALL_SCRIPTS = ['preinstall', 'install', 'postinstall']

/** Checks what says that it is a plugin. `label`: what a person called it; `hasGyp`: npm would build it. Throws PLUGIN_NOT_A_PLUGIN, PLUGIN_NAME_OURS, MANIFEST_INVALID, MANIFEST_NEWER. */
export async function readPluginPackage(
  text: string | undefined,
  label: string,
  work: string,
  hasGyp: boolean
): Promise<PluginPackage> {
  const { name, version, description, svc, scripts, ...pkg } = jsonIn(text, label)
  if (typeof name !== 'string' || !NAME.test(name)) throw notAPlugin(label, 'its package.json has no name that npm takes')
  if (isOurs(name)) throw nameOurs(name)
  if (typeof version !== 'string' || !VERSION.test(version)) throw notAPlugin(name, 'its package.json has no version like 1.0.0')
  if (svc === undefined) throw notAPlugin(name, 'its package.json has no "svc" part, so it is no plugin')
  const own = INSTALL_SCRIPTS.filter(one => typeof scripts?.[one] === 'string')
  return {
    name,
    version,
    description: typeof description === 'string' ? description : '',
    manifest: await manifestIn(text!, work),
    // what npm does for a package with a binding.gyp and no script of its own
    installScripts: hasGyp && !own.includes('install') && !own.includes('preinstall') ? [...own, 'binding.gyp'] : own,
    hasDependencies: Object.keys(wishesOf(pkg)).length > 0,
    stray: strayDependencies(pkg),
  }
}

function jsonIn(text: string | undefined, label: string): PackageJson {
  if (text === undefined) throw notAPlugin(label, 'it has no package.json')
  try {
    return Object(JSON.parse(text)) as PackageJson
  } catch {
    throw notAPlugin(label, 'its package.json is no JSON')
  }
}

/** The core reads manifests from files. */
async function manifestIn(text: string, work: string): Promise<Manifest> {
  const folder = await mkdtemp(join(work, 'manifest-'))
  try {
    const file = join(folder, 'package.json')
    await writeFile(file, text)
    return (await readManifest(file)).manifest
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** What a package.json wants beside itself, as far as npm installs it. */
export interface Wishes {
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
}

export const wishesOf = ({ dependencies, optionalDependencies, peerDependencies }: Wishes): Record<string, string> => ({
  ...dependencies,
  ...optionalDependencies,
  ...peerDependencies,
})

/** In words, each dependency of a package.json that is no package of the registry: a folder, a repository, an address. Such a plugin is not installed. */
export const strayDependencies = (pkg: Wishes): string[] =>
  Object.entries(wishesOf(pkg)).flatMap(([name, spec]) => strayWish(name, spec) ?? [])

/** The same of one. A package of the registry under another name is none. */
export const strayWish = (name: string, spec: unknown): string | undefined =>
  typeof spec === 'string' && !spec.startsWith('npm:') && /[:/\\]/.test(spec)
    ? `needs ${name} as ${spec}, which is no package of the registry`
    : undefined
