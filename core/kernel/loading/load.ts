import { existsSync, readFileSync, statSync } from 'node:fs'
import { createRequire, findPackageJSON, registerHooks, type ResolveFnOutput } from 'node:module'
import { basename, dirname, extname, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { nameOf, type PluginEntry } from '../config/config.ts'
import { withHostPackages } from '../config/host-packages.ts'
import { importFailed, noIsolation, noPlugin, noSuchPath, unknownPlugin } from './errors.ts'
import { API, type Manifest, type PackageInfo, readManifest } from './manifest.ts'
import type { Plugin } from '../src/plugin.ts'
import { runtimePlugin } from './runtime.ts'
import { syntaxErrorPlace } from './syntax.ts'

/** A plugin whose manifest is read. None of its code has run. */
export interface LocatedPlugin {
  readonly name: string
  readonly version: string
  readonly optional: boolean
  /** The manifest, or that of an embedder's own code, which can add anything. */
  readonly manifest: Manifest
  /** Its permissions: those that a person has accepted, else those of its manifest. */
  readonly permissions: NonNullable<Manifest['permissions']>
  /** False for the program's own code, which has no manifest to check against. */
  readonly declared: boolean
  /** The configured isolation. */
  readonly isolation?: string
  /** The folder of the package, if it is a package. */
  readonly folder?: string
  load(): Promise<Plugin>
}

/** Creates the plugin that runs a package's module, given by URL, in its own process. */
export type Isolate = (info: PackageInfo & { readonly module: string }, entry: PluginEntry) => Promise<Plugin>

/**
 * Finds the manifest of a plugin from the places `from` (file or folder URLs). Throws PLUGIN_UNKNOWN, MANIFEST_INVALID,
 * MANIFEST_NEWER, and NOT_ISOLABLE for code without a manifest that should run in its own process.
 */
export async function findPlugin(entry: PluginEntry, from: readonly string[], isolate?: Isolate): Promise<LocatedPlugin> {
  const { use } = entry
  if (typeof use === 'object' && !(use instanceof URL)) {
    if (entry.isolation === 'process') throw noIsolation(nameOf(entry), 'it is an object of the program')
    return inline(entry, use)
  }
  const places = [...(entry.from ? [asUrl(entry.from)] : []), ...from]
  const path = pathOf(use, places)
  if (path === undefined) return findPackage(entry, String(use), places, isolate)
  if (!existsSync(path)) throw noSuchPath(nameOf(entry), path)
  return statSync(path).isDirectory() ? fromFolder(entry, path, isolate) : fromFile(entry, path)
}

const OWN: Manifest = { api: API, kind: 'own' }

const inline = (entry: PluginEntry, plugin: Plugin): LocatedPlugin => ({
  name: nameOf(entry),
  version: '0.0.0',
  optional: entry.optional ?? false,
  manifest: entry.manifest ?? OWN,
  permissions: entry.permissions ?? entry.manifest?.permissions ?? {},
  declared: entry.manifest !== undefined,
  load: async () => plugin,
})

function pathOf(use: string | URL, places: readonly string[]): string | undefined {
  if (use instanceof URL || use.startsWith('file:')) return fileURLToPath(use)
  const isPath = /^(\.{1,2}$|\.{0,2}\/|[A-Za-z]:\\)/.test(use)
  return isPath ? resolve(fileURLToPath(new URL('.', places[0])), use) : undefined
}

const asUrl = (place: string) => (place.startsWith('file:') ? place : pathToFileURL(place).href)
const folderName = (place: string) => basename(dirname(fileURLToPath(new URL('x', place)))) || '/'

async function findPackage(
  entry: PluginEntry,
  name: string,
  places: readonly string[],
  isolate: Isolate | undefined
): Promise<LocatedPlugin> {
  for (const place of places) {
    const file = packageJsonOf(name, place)
    if (file) return found(entry, await readManifest(file), { name, place }, isolate)
  }
  throw unknownPlugin(name, [...new Set(places.map(folderName))])
}

function packageJsonOf(name: string, place: string): string | undefined {
  try {
    return findPackageJSON(name, place)
  } catch {
    return undefined
  }
}

async function fromFolder(entry: PluginEntry, folder: string, isolate: Isolate | undefined): Promise<LocatedPlugin> {
  const file = join(folder, 'package.json')
  if (!existsSync(file)) throw unknownPlugin(nameOf(entry), [basename(folder)])
  const info = await readManifest(file)
  // A package with "exports" can import itself by name, so its exports decide, with all conditions.
  const module = info.main ? pathToFileURL(join(folder, info.main)).href : undefined
  return found(entry, info, { name: info.name, place: pathToFileURL(file).href, ...(module ? { module } : {}) }, isolate)
}

/** A single module next to the configuration: the operator's own code, without a manifest. */
function fromFile(entry: PluginEntry, file: string): LocatedPlugin {
  const name = entry.name ?? basename(file, extname(file))
  if (entry.isolation === 'process') throw noIsolation(name, 'a single file has no manifest with permissions')
  return {
    ...inline({ ...entry, name }, undefined as never),
    folder: dirname(file),
    load: () => importPlugin(name, dirname(file), { name, place: '', module: pathToFileURL(file).href }),
  }
}

/** How to import a module: by a name from a place, or by its URL. */
export interface PluginOrigin {
  readonly name: string
  readonly place: string
  readonly module?: string
}

const found = (entry: PluginEntry, info: PackageInfo, origin: PluginOrigin, isolate: Isolate | undefined): LocatedPlugin => ({
  name: info.name,
  version: info.version,
  optional: entry.optional ?? false,
  manifest: info.manifest,
  permissions: entry.permissions ?? info.manifest.permissions ?? {},
  declared: true,
  ...(info.manifest.runtime === undefined && entry.isolation ? { isolation: entry.isolation } : {}),
  folder: info.folder,
  load: () => loadAs(entry, info, origin, isolate),
})

async function loadAs(
  entry: PluginEntry,
  info: PackageInfo,
  origin: PluginOrigin,
  isolate: Isolate | undefined
): Promise<Plugin> {
  const { name, place, module } = origin
  if (info.manifest.runtime !== undefined) return runtimePlugin(info, info.manifest.runtime)
  if (entry.isolation !== 'process') return importPlugin(info.name, info.folder, origin)
  if (!isolate) throw noIsolation(info.name, 'this program does not start processes for plugins')
  return isolate({ ...info, module: module ?? (await urlFrom(name, place)) }, entry)
}

/** Imports the module of a plugin. Throws PLUGIN_IMPORT_FAILED. */
export async function importPlugin(plugin: string, folder: string, origin: PluginOrigin): Promise<Plugin> {
  const { default: found } = (await importModule(plugin, folder, origin)) as { default?: Plugin }
  if (typeof found?.setup !== 'function') throw noPlugin(plugin)
  // An object that was not created by definePlugin works as well.
  return Object.assign({ requires: {}, optional: {} }, found)
}

/** Imports a module of a plugin's package. Throws PLUGIN_IMPORT_FAILED with the place of a syntax error. */
export async function importModule(plugin: string, folder: string, { name, place, module: url }: PluginOrigin): Promise<unknown> {
  try {
    const load = () => (url ? import(url) : importFrom(name, place))
    // svc's own packages depend on the host packages, so they need no search
    return await withHostPackages(load, plugin.startsWith('@svc/') ? {} : { place: pathToFileURL(join(folder, 'x')).href })
  } catch (error) {
    const entry = async () => url ?? (await urlFrom(name, place))
    throw importFailed(plugin, error, await syntaxErrorPlace(error, entry, folder))
  }
}

/**
 * Resolves `name` from `place`, if `import` and `require` resolve it to the same file. A resolve hook would slow down every
 * import of the plugin's own modules, so it is kept for packages whose exports differ.
 */
function entryOfPackage(name: string, place: string): string | undefined {
  try {
    const file = findPackageJSON(name, place)
    const { exports, main } = JSON.parse(readFileSync(file ?? '', 'utf8')) as PackageEntry
    if (/"(import|require|module-sync)":/.test(JSON.stringify(exports ?? main ?? ''))) return undefined
    // From within the package, `require` finds it without searching the folders above `place`.
    return pathToFileURL(createRequire(exports === undefined ? place : file!).resolve(name)).href
  } catch {
    return undefined
  }
}

interface PackageEntry {
  readonly exports?: unknown
  readonly main?: string
}

const SCHEME = 'svc-from:'

/** Imports `name` as a module at `place` would. `import()` has no option for the parent, so this uses a resolve hook. */
export async function importFrom(name: string, place: string): Promise<unknown> {
  const entry = entryOfPackage(name, place)
  return entry === undefined ? importAs('', name, place, item => item) : import(entry)
}

/** Resolves `name` from `place` as `import` would. No code of it runs. */
export async function urlFrom(name: string, place: string): Promise<string> {
  const entry = entryOfPackage(name, place)
  if (entry !== undefined) return entry
  let url = ''
  await importAs('url', name, place, item => {
    url = item.url
    return { url: `data:text/javascript,//${encodeURIComponent(item.url)}`, format: 'module', shortCircuit: true }
  })
  return url
}

/** Runs an import and passes the resolution of its first name through `change`. `mark` separates two kinds of it. */
async function importAs(
  mark: string,
  name: string,
  place: string,
  change: (resolveFnOutput: ResolveFnOutput) => ResolveFnOutput
): Promise<unknown> {
  // The specifier contains the place, so that the loader's cache does not return the package of another place.
  const asked = `${SCHEME}${mark}${encodeURIComponent(place)}#${name}`
  const hooks = registerHooks({
    resolve: (specifier, context, next) =>
      specifier === asked ? change(next(name, { ...context, parentURL: place })) : next(specifier, context),
  })
  try {
    return await import(asked)
  } finally {
    hooks.deregister()
  }
}
