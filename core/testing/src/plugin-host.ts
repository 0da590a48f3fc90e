import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import {
  type ConfigTree,
  type PackageInfo,
  type Plugin,
  type PluginRef,
  readManifest,
  type RunningHost,
  type SlotToken,
  svcError,
} from '@svc/core'
import { importModule, importPlugin, type Origin } from '@svc/core/internal'
import { testHost } from './host.ts'
import { generate, randomOf } from './made-up.ts'
import type { PluginKitOptions } from './plugin-samples.ts'
import { watchReach } from './reach.ts'

/** A host with the plugin, and the accesses of the plugin meanwhile. */
export interface PluginHost {
  readonly host: RunningHost
  readonly config: ConfigTree
  /** Variables and hosts that the plugin used without declaring them. */
  undeclared(): readonly string[]
  close(): Promise<void>
}

/** The name of a generated instance. */
export const ENTRY = 'sample'

const SETUP_MS = 5_000
const SILENT = { destination: { write() {} } }

/** Starts a strict host with the plugin and its needs. `more` lists plugins after it. */
export async function openPlugin(
  { info, ref, plugin }: PluginPackage,
  options: PluginKitOptions,
  { more = [], strict = true }: { readonly more?: NonNullable<PluginKitOptions['beside']>; readonly strict?: boolean } = {}
): Promise<PluginHost> {
  const { beside = [], give = [], env = {} } = options
  const environment = setVariables(env)
  const reach = watchReach(info, JSON.stringify([options.config, env]))
  const config = { host: { setup_timeout_ms: SETUP_MS }, ...configFor(plugin, options) }
  try {
    const host = await testHost([...beside, ref, ...more], {
      config,
      give,
      strict,
      log: SILENT,
      from: [new URL('package.json', folderUrl(info.folder)).href],
    })
    const close = async () => {
      await host.close().finally(() => {
        reach[Symbol.dispose]()
        environment[Symbol.dispose]()
      })
    }
    return { host, config, undeclared: () => reach.found(), close }
  } catch (error) {
    reach[Symbol.dispose]()
    environment[Symbol.dispose]()
    throw error
  }
}

/** One contribution of a plugin, with its own host for each case. */
export interface ItemUnderTest<T> {
  readonly name: string
  /** The data of the item from a closed host. Its methods must not be called. */
  readonly seen: T
  readonly options: PluginKitOptions
  readonly permissions: NonNullable<PluginPackage['info']['manifest']['permissions']>
  open(): Promise<{ readonly item: T; close(): Promise<void> }>
}

/** Opens nothing yet: each `open` starts a host and records accesses of the plugin in `reached`. */
export function itemUnderTest<T>(
  found: PluginPackage,
  options: PluginKitOptions,
  slot: SlotToken<T>,
  name: string,
  seen: T,
  reached: Set<string>
): ItemUnderTest<T> {
  return {
    name,
    seen,
    options,
    permissions: found.info.manifest.permissions ?? {},
    async open() {
      const { host, close, undeclared } = await openPlugin(found, options)
      const end = async () => {
        for (const item of undeclared()) reached.add(item)
        await close()
      }
      return { item: itemOf(host, slot, name), close: end }
    },
  }
}

function itemOf<T>(host: RunningHost, slot: SlotToken<T>, name: string): T {
  const item = host.slot(slot).get(name)
  if (item === undefined) throw new Error(`${slot.name} has no "${name}" any more`)
  return item
}

const folderUrl = (folder: string) =>
  new URL(`file://${folder.replaceAll('%', '%25').replaceAll('#', '%23').replaceAll('?', '%3f')}/`)

/** The configuration of its author, else a minimal one. */
function configFor(plugin: Plugin | undefined, { config }: PluginKitOptions): ConfigTree {
  if (config || !plugin) return config ?? {}
  const [section, entry] =
    plugin.instances === undefined ? [plugin.section, {}] : [`${plugin.instances}.${ENTRY}`, { type: plugin.type }]
  const needed = neededOf(plugin)
  if (section === undefined || (needed === undefined && plugin.instances === undefined)) return {}
  return section
    .split('.')
    .reduceRight<unknown>((inner, key) => ({ [key]: inner }), { ...entry, ...Object(needed) }) as ConfigTree
}

/** Generates values that the schema requires and has no default for. */
function neededOf({ config }: Plugin): unknown {
  const json = config?.json
  const { required = [], properties = {} } = Object(json) as { required?: string[]; properties?: object }
  if (required.length === 0) return undefined
  const only = Object.fromEntries(Object.entries(properties).filter(([key]) => required.includes(key)))
  return generate({ type: 'object', required, properties: only }, randomOf(1))
}

/** Sets environment variables until it is disposed. */
function setVariables(env: Readonly<Record<string, string>>): Disposable {
  const before = Object.keys(env).map(name => [name, process.env[name]] as const)
  Object.assign(process.env, env)
  return {
    [Symbol.dispose]() {
      for (const [name, value] of before)
        if (value === undefined) delete process.env[name]
        else process.env[name] = value
    },
  }
}

/** The folder of a plugin: its source if `exports` has one for development, else its build. */
export interface PluginPackage {
  readonly info: PackageInfo
  /** The reference for a host. */
  readonly ref: PluginRef
  /** Absent for code that is never imported. */
  readonly plugin: Plugin | undefined
  /** Imports a module of `exports`. */
  importModule(module: string): Promise<{ readonly COMMANDS?: unknown }>
}

interface PackageJson {
  readonly exports?: Readonly<Record<string, unknown>>
}

/** Reads a folder and imports its module. Throws MANIFEST_INVALID, MANIFEST_NEWER, PLUGIN_IMPORT_FAILED. */
export async function openPackage(place: URL | string): Promise<PluginPackage> {
  const folder = place instanceof URL || place.startsWith('file:') ? fileURLToPath(place) : place
  const file = join(folder, 'package.json')
  if (!existsSync(file))
    throw svcError('PLUGIN_UNKNOWN', `there is no package.json in ${basename(folder)}`, { hint: 'Name the folder of a plugin' })
  const info = await readManifest(file)
  const sources = sourcesOf(folder, JSON.parse(readFileSync(file, 'utf8')) as PackageJson)
  const origin = (module: string) => originOf(info, sources, module)
  const load = async (module: string) =>
    (await importModule(info.name, folder, origin(module))) as { readonly COMMANDS?: unknown }
  if (info.manifest.runtime !== undefined) return { info, ref: pathToFileURL(folder), plugin: undefined, importModule: load }
  const plugin = await importPlugin(info.name, folder, origin('.'))
  return { info, ref: { name: info.name, manifest: info.manifest, use: plugin }, plugin, importModule: load }
}

/** Maps keys of `exports` to the existing file of the condition `development`. */
function sourcesOf(folder: string, { exports }: PackageJson): ReadonlyMap<string, string> {
  const named = Object.entries(typeof exports === 'object' ? exports : {}).map(
    ([key, item]) => [key, (item as { development?: unknown } | null)?.development] as const
  )
  const files = named.flatMap(([key, file]) => (typeof file === 'string' ? [[key, join(folder, file)] as const] : []))
  return new Map(files.filter(([, file]) => existsSync(file)))
}

/** Locates a module of the package. Without a known file, `import` resolves the plugin by name. */
function originOf({ name, folder, main }: PackageInfo, sources: ReadonlyMap<string, string>, module: string): Origin {
  const file = sources.get(module) ?? (module === '.' ? main && join(folder, main) : fileOf(name, folder, module))
  const place = pathToFileURL(join(folder, 'package.json')).href
  return { name, place, ...(file ? { module: pathToFileURL(file).href } : {}) }
}

const fileOf = (name: string, folder: string, module: string) =>
  existsSync(join(folder, module))
    ? join(folder, module)
    : createRequire(join(folder, 'package.json')).resolve(join(name, module))
