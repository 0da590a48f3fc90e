import { existsSync, readFileSync, statSync } from 'node:fs'
import { createRequire, findPackageJSON, registerHooks } from 'node:module'
import { basename, dirname, extname, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { nameOf, type PluginEntry } from '../config/config.ts'
import { withHostPackages } from '../config/host-packages.ts'
import { importFailed, noPlugin, noSuchPath, unknownPlugin } from './errors.ts'
import { API, type Manifest, type PackageInfo, readManifest } from './manifest.ts'
import type { Plugin } from './plugin.ts'
import { runtimePlugin } from './runtime.ts'

/** A plugin that was found: its manifest is read, nothing of it has run. */
export interface Found {
  readonly name: string
  readonly version: string
  readonly optional: boolean
  /** `undefined`: it may add anything (an embedder's own code). */
  readonly manifest: Manifest
  /** False for the program's own code, which has no manifest to be held to. */
  readonly declared: boolean
  /** The package's folder, where it is one. */
  readonly folder?: string
  load(): Promise<Plugin>
}

/** Finds a plugin's manifest from the places `from` (file or folder URLs). Throws PLUGIN_UNKNOWN, MANIFEST_INVALID, MANIFEST_NEWER. */
export async function findPlugin(entry: PluginEntry, from: readonly string[]): Promise<Found> {
  const { use } = entry
  if (typeof use === 'object' && !(use instanceof URL)) return inline(entry, use)
  const places = [...(entry.from ? [asUrl(entry.from)] : []), ...from]
  const path = pathOf(use, places)
  if (path === undefined) return findPackage(entry, String(use), places)
  if (!existsSync(path)) throw noSuchPath(nameOf(entry), path)
  return statSync(path).isDirectory() ? fromFolder(entry, path) : fromFile(entry, path)
}

const OWN: Manifest = { api: API, kind: 'own' }

const inline = (entry: PluginEntry, plugin: Plugin): Found => ({
  name: nameOf(entry),
  version: '0.0.0',
  optional: entry.optional ?? false,
  manifest: entry.manifest ?? OWN,
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

async function findPackage(entry: PluginEntry, name: string, places: readonly string[]): Promise<Found> {
  for (const place of places) {
    const file = packageJsonOf(name, place)
    if (file) return found(entry, await readManifest(file), () => importFrom(name, place))
  }
  throw unknownPlugin(name, places.map(folderName))
}

function packageJsonOf(name: string, place: string): string | undefined {
  try {
    return findPackageJSON(name, place)
  } catch {
    return undefined
  }
}

async function fromFolder(entry: PluginEntry, folder: string): Promise<Found> {
  const file = join(folder, 'package.json')
  if (!existsSync(file)) throw unknownPlugin(nameOf(entry), [basename(folder)])
  const info = await readManifest(file)
  // a package with "exports" may import itself by name: so they decide, with all conditions
  const load = () =>
    info.main ? import(pathToFileURL(join(folder, info.main)).href) : importFrom(info.name, pathToFileURL(file).href)
  return found(entry, info, load)
}

/** A single module next to the configuration: the operator's own code, held to no manifest. */
function fromFile(entry: PluginEntry, file: string): Found {
  const name = entry.name ?? basename(file, extname(file))
  return {
    ...inline({ ...entry, name }, undefined as never),
    folder: dirname(file),
    load: () => importPlugin(name, pathToFileURL(file).href),
  }
}

const found = (entry: PluginEntry, info: PackageInfo, load: () => Promise<unknown>): Found => ({
  name: info.name,
  version: info.version,
  optional: entry.optional ?? false,
  manifest: info.manifest,
  declared: true,
  folder: info.folder,
  load: () => (info.manifest.runtime === undefined ? exported(info.name, load) : runtimePlugin(info, info.manifest.runtime)),
})

const importPlugin = (name: string, url: string) => exported(name, () => import(url))

async function exported(name: string, load: () => Promise<unknown>): Promise<Plugin> {
  let module: { default?: Plugin }
  try {
    module = (await withHostPackages(load)) as { default?: Plugin }
  } catch (error) {
    throw importFailed(name, error)
  }
  if (typeof module.default?.setup !== 'function') throw noPlugin(name)
  // an object that did not pass through definePlugin means the same
  return Object.assign({ requires: {}, optional: {} }, module.default)
}

/**
 * Where `import(name)` at `place` leads, if `require` leads to the same: its exports make no difference between the two. A resolve hook would slow down
 * every import of the plugin's own modules, so it is kept for packages that do.
 */
function entryOfPackage(name: string, place: string): string | undefined {
  try {
    const file = findPackageJSON(name, place)
    const { exports, main } = JSON.parse(readFileSync(file ?? '', 'utf8')) as PackageEntry
    if (/"(import|require|module-sync)":/.test(JSON.stringify(exports ?? main ?? ''))) return undefined
    return pathToFileURL(createRequire(place).resolve(name)).href
  } catch {
    return undefined
  }
}

interface PackageEntry {
  readonly exports?: unknown
  readonly main?: string
}

const SCHEME = 'svc-from:'

/** Imports `name` as a module at `place` would: Node offers no parent for `import()`, a resolve hook does. */
export async function importFrom(name: string, place: string): Promise<unknown> {
  const entry = entryOfPackage(name, place)
  if (entry !== undefined) return import(entry)
  // the place is part of the specifier, or the loader's cache would answer with another place's package
  const asked = `${SCHEME}${encodeURIComponent(place)}#${name}`
  const hooks = registerHooks({
    resolve: (specifier, context, next) =>
      specifier === asked ? next(name, { ...context, parentURL: place }) : next(specifier, context),
  })
  try {
    return await import(asked)
  } finally {
    hooks.deregister()
  }
}
