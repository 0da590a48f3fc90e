import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { isTree, type Manifest, readManifest } from '@svc/core'
import { nameOurs, notAPlugin } from './errors.ts'
import { isOurs, NAME, VERSION } from './lock.ts'

/** The checked parts of a plugin's package.json. */
export interface InstalledPackage {
  readonly name: string
  readonly version: string
  readonly description: string
  readonly manifest: Manifest
  /** Names of the install scripts that npm would run. */
  readonly installScripts: readonly string[]
  /** Whether it has dependencies, even only the core: then npm must resolve them. */
  readonly hasDependencies: boolean
  /** Describes its dependencies that are not packages of the registry. */
  readonly stray: readonly string[]
  /** The path of the module that svc imports. Undefined for another runtime, and if only Node can resolve it. */
  readonly entry: string | undefined
}

interface PackageJson extends DependencyLists {
  readonly name?: unknown
  readonly version?: unknown
  readonly description?: unknown
  readonly svc?: unknown
  readonly scripts?: Readonly<Record<string, unknown>>
  readonly main?: unknown
  readonly exports?: unknown
}

const INSTALL_SCRIPTS = ['preinstall', 'install', 'postinstall']

/**
 * Checks that a package.json is one of a plugin. `label`: the user's name for it; `hasGyp`: npm would build it. Throws
 * PLUGIN_NOT_A_PLUGIN, PLUGIN_NAME_OURS, MANIFEST_INVALID, MANIFEST_NEWER.
 */
export async function readPluginPackage(
  text: string | undefined,
  label: string,
  work: string,
  hasGyp: boolean
): Promise<InstalledPackage> {
  const { name, version, description, svc, scripts, main, exports, ...pkg } = jsonIn(text, label)
  if (typeof name !== 'string' || !NAME.test(name)) throw notAPlugin(label, 'its package.json has no name that npm accepts')
  if (isOurs(name)) throw nameOurs(name)
  if (typeof version !== 'string' || !VERSION.test(version)) throw notAPlugin(name, 'its package.json has no version like 1.0.0')
  if (svc === undefined) throw notAPlugin(name, 'its package.json has no "svc" part, so it is not a plugin')
  const own = INSTALL_SCRIPTS.filter(item => typeof scripts?.[item] === 'string')
  const manifest = await manifestIn(text!, work)
  return {
    name,
    version,
    description: typeof description === 'string' ? description : '',
    manifest,
    // npm's default for a package with a binding.gyp and without a script
    installScripts: hasGyp && !own.includes('install') && !own.includes('preinstall') ? [...own, 'binding.gyp'] : own,
    hasDependencies: Object.keys(dependencySpecs(pkg)).length > 0,
    stray: strayDependencies(pkg),
    entry: manifest.runtime === undefined ? entryOf(main, exports) : undefined,
  }
}

/** The module of a package, by the rules of Node for `import`. */
export function entryOf(main: unknown, exports: unknown): string | undefined {
  const target = exports === undefined ? (typeof main === 'string' ? main : 'index.js') : targetOf(exports)
  return target === undefined ? undefined : posix.normalize(target)
}

/** Of Node, for `import`. */
const CONDITIONS = 'node import module-sync node-addons default'.split(' ')

/** The target of `.` in `exports`: the first key that applies. */
function targetOf(exports: unknown): string | undefined {
  if (typeof exports === 'string') return exports
  if (!isTree(exports)) return undefined
  if (Object.hasOwn(exports, '.')) return targetOf(exports['.'])
  const keys = Object.keys(exports).filter(key => CONDITIONS.includes(key))
  return keys.map(key => targetOf(exports[key])).find(target => target !== undefined)
}

function jsonIn(text: string | undefined, label: string): PackageJson {
  if (text === undefined) throw notAPlugin(label, 'it has no package.json')
  try {
    return Object(JSON.parse(text)) as PackageJson
  } catch {
    throw notAPlugin(label, 'its package.json is not valid JSON')
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

/** The dependencies in a package.json that npm installs. */
export interface DependencyLists {
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
}

export const dependencySpecs = ({
  dependencies,
  optionalDependencies,
  peerDependencies,
}: DependencyLists): Record<string, string> => ({
  ...dependencies,
  ...optionalDependencies,
  ...peerDependencies,
})

/**
 * Describes each dependency that is not a package of the registry: a folder, a repository, an address. svc installs no plugin
 * with one.
 */
export const strayDependencies = (pkg: DependencyLists): string[] =>
  Object.entries(dependencySpecs(pkg)).flatMap(([name, spec]) => strayAddress(name, spec) ?? [])

/** The same for one dependency. A package of the registry under another name is allowed. */
export const strayAddress = (name: string, spec: unknown): string | undefined =>
  typeof spec === 'string' && !spec.startsWith('npm:') && /[:/\\]/.test(spec)
    ? `needs ${name} as ${spec}, which is not a package of the registry`
    : undefined
