import { asSvcError, type SvcError } from '../src/errors.ts'
import { configUnknownKey, configUnreadable } from './errors.ts'
import type { Plugin } from '../src/plugin.ts'
import type { Manifest } from '../loading/manifest.ts'

/** A tree of configuration values, as in files. */
export type ConfigTree = { [key: string]: unknown }

/** One source of configuration. `line` returns the line of a key in its file. */
export interface Layer {
  /** `defaults`, `environment`, `flags`, or the path of the file as shown to people. */
  readonly name: string
  readonly file?: string
  readonly value: ConfigTree
  line?(keys: readonly string[]): number | undefined
  /** For the environment: the variable that set a key. */
  variable?(keys: readonly string[]): string | undefined
}

/** A plugin to load: its package, folder or file, or the plugin itself. */
export interface PluginEntry {
  readonly use: string | URL | Plugin
  /** The name in errors and log lines. Required where `use` is a plugin. */
  readonly name?: string
  /** What an inline plugin can add. Absent: anything. */
  readonly manifest?: Manifest
  /** When it fails, the host keeps running. */
  readonly optional?: boolean
  readonly enabled?: boolean
  /** A file or folder URL from which `use` is resolved. */
  readonly from?: string
  /** Where its code runs: in the host process (the default) or in its own. */
  readonly isolation?: 'in-process' | 'process'
  /** Permissions in its own process, when they differ from its manifest. */
  readonly permissions?: Manifest['permissions']
  /** The accepted values of settings to which these permissions refer. Absent: all values are accepted. */
  readonly values?: { readonly [kind in 'network' | 'env' | 'read' | 'write']?: readonly string[] }
  /** The known declarations of its module, so that a start need not run it to learn them. */
  readonly declares?: unknown
  /** Help texts of its commands, recorded at installation, so that help need not run it. */
  readonly commands?: unknown
  /** The expected hash of its files, when it is verified. */
  readonly files?: string
}
export type PluginRef = string | URL | PluginEntry

/** The effective configuration: one tree, and the source of each value. */
export interface Config {
  readonly value: ConfigTree
  readonly plugins: readonly PluginEntry[]
  readonly layers: readonly Layer[]
  /** Errors in the configuration. A host refuses to start with them and reports them with all other problems. */
  readonly problems: readonly SvcError[]
  /** What a reader of the configuration should know, and what does not prevent a start. */
  readonly notes?: readonly SvcError[]
  /** The layer that set a key, highest priority first. */
  layerOf(keys: readonly string[]): Layer | undefined
  /** `svc.config.yaml:12`, `environment SVC_A__B`, `flags`. For an absent key, the place of the nearest key around it. */
  where(keys: readonly string[]): string | undefined
}

export const isTree = (value: unknown): value is ConfigTree =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * Merges layers, given in rising priority: trees merge, lists and values are replaced, `plugins` merges by name. Keys of layers
 * with higher priority come first.
 */
export function mergeConfig(layers: readonly Layer[], unread: readonly SvcError[] = []): Config {
  const value: ConfigTree = {}
  for (const layer of layers.toReversed()) fill(value, layer.value)
  delete value.plugins
  const layerOf = (keys: readonly string[]) => layers.findLast(layer => has(layer.value, keys))
  const { plugins, problems } = mergePlugins(layers)
  return { value, plugins, layers, problems: [...unread, ...problems], layerOf, where: keys => whereOf(keys, layerOf) }
}

function fill(target: ConfigTree, source: ConfigTree) {
  for (const [key, value] of Object.entries(source)) {
    if (!Object.hasOwn(target, key))
      Object.defineProperty(target, key, { value: copy(value), enumerable: true, writable: true, configurable: true })
    else if (isTree(target[key]) && isTree(value)) fill(target[key], value)
  }
}

const copy = (value: unknown): unknown => {
  if (!isTree(value)) return Array.isArray(value) ? [...value] : value
  const tree: ConfigTree = {}
  fill(tree, value)
  return tree
}

export function get(tree: unknown, keys: readonly string[]): unknown {
  return keys.reduce<unknown>(
    (at, key) => (typeof at === 'object' && at !== null && Object.hasOwn(at, key) ? (at as ConfigTree)[key] : undefined),
    tree
  )
}
const has = (tree: ConfigTree, keys: readonly string[]) => get(tree, keys) !== undefined

function whereOf(keys: readonly string[], layerOf: (keys: readonly string[]) => Layer | undefined): string | undefined {
  for (let depth = keys.length; depth > 0; depth--) {
    const layer = layerOf(keys.slice(0, depth))
    if (layer) return placeIn(layer, keys)
  }
  return undefined
}

function placeIn(layer: Layer, keys: readonly string[]): string {
  if (!layer.file) return [layer.name, layer.variable?.(keys)].filter(Boolean).join(' ')
  const line = layer.line?.(keys)
  return line === undefined ? `${layer.name}, key ${keys.join('.')}` : `${layer.name}:${line}`
}

function mergePlugins(layers: readonly Layer[]): Pick<Config, 'plugins' | 'problems'> {
  const merged = new Map<unknown, PluginEntry>()
  const problems: SvcError[] = []
  const placed = new Map<unknown, Pick<PluginEntry, 'use'>>()
  for (const layer of layers)
    for (const [at, ref] of listIn(layer, problems).entries()) {
      const full = readEntry(ref, () => placeIn(layer, ['plugins', String(at)]), problems)
      if (full === undefined) continue
      const entry = { ...(layer.file ? { from: layer.file } : {}), ...full }
      // Two inline plugins without a name are separate entries.
      const name = entry.name === undefined && isTree(entry.use) ? entry.use : nameOf(entry)
      // A reference by name alone means the plugin that a layer with lower priority registered under that name.
      const known = entry.use === name ? placed.get(name) : undefined
      if (entry.name !== undefined) placed.set(name, { use: entry.use })
      // A layer that lists a plugin enables it, whatever a layer with lower priority says.
      merged.set(name, { ...merged.get(name), enabled: true, ...entry, ...known })
    }
  return { plugins: [...merged.values()].filter(entry => entry.enabled !== false), problems }
}

function listIn(layer: Layer, problems: SvcError[]): readonly PluginRef[] {
  const list = layer.value.plugins ?? []
  if (Array.isArray(list)) return list as PluginRef[]
  const what = 'plugins must be a list of package names, paths and { use, optional, enabled, isolation }'
  problems.push(configUnreadable(what, placeIn(layer, ['plugins'])))
  return []
}

/** An entry with an unknown key is kept, so that the keys that its plugin owns do not seem unknown. */
function readEntry(ref: PluginRef, where: () => string, problems: SvcError[]): PluginEntry | undefined {
  try {
    return entryOf(ref, where)
  } catch (error) {
    problems.push(asSvcError(error, 'CONFIG_INVALID'))
    return isTree(ref) && 'use' in ref ? (withoutUnknownKeys(ref) as unknown as PluginEntry) : undefined
  }
}

/** Drops the invalid members, so that each problem is reported once. */
const withoutUnknownKeys = ({ isolation, ...entry }: ConfigTree): ConfigTree => ({
  ...Object.fromEntries(ENTRY_KEYS.filter(key => Object.hasOwn(entry, key)).map(key => [key, entry[key]])),
  ...(ISOLATIONS.includes(isolation) ? { isolation } : {}),
})

const ENTRY_KEYS = [
  'use',
  'name',
  'manifest',
  'optional',
  'enabled',
  'from',
  'isolation',
  'permissions',
  'values',
  'declares',
  'commands',
  'files',
]
const ISOLATIONS: readonly unknown[] = [undefined, 'in-process', 'process']

/** Returns the full form of a reference. */
export function entryOf(ref: PluginRef, where = () => 'plugins'): PluginEntry {
  if (typeof ref === 'string' || ref instanceof URL) return { use: ref }
  if (!isTree(ref) || !('use' in ref))
    throw configUnreadable('an entry of plugins must be a package name, a path, or { use: … }', where())
  const unknown = Object.keys(ref).find(key => !ENTRY_KEYS.includes(key))
  if (unknown !== undefined) throw configUnknownKey(`plugins.${unknown}`, ENTRY_KEYS, where())
  if (!ISOLATIONS.includes(ref.isolation))
    throw configUnreadable('isolation of an entry of plugins must be "in-process" or "process"', where())
  return ref
}

export const nameOf = (entry: PluginEntry): string =>
  entry.name ?? (typeof entry.use === 'string' || entry.use instanceof URL ? String(entry.use) : 'inline')

/** Wraps the configuration that a program passes as an object. */
export function configOf(value: ConfigTree): Config {
  return mergeConfig([{ name: 'given', value }])
}
