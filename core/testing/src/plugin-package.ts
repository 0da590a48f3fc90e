import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { type PackageInfo, type Plugin, type PluginRef, readManifest, svcError } from '@svc/core'
import { importModule, importPlugin, type Origin } from '@svc/core/internal'

/** A plugin's folder as the kit takes it: its source where its `exports` name one for development, else what is built. */
export interface PluginPackage {
  readonly info: PackageInfo
  /** As a host takes it. */
  readonly ref: PluginRef
  /** Absent where it is code that is never imported. */
  readonly plugin: Plugin | undefined
  /** A module that its `exports` name. */
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
    throw svcError('PLUGIN_UNKNOWN', `there is no package.json in ${basename(folder)}`, { hint: 'name the folder of a plugin' })
  const info = await readManifest(file)
  const sources = sourcesOf(folder, JSON.parse(readFileSync(file, 'utf8')) as PackageJson)
  const origin = (module: string) => originOf(info, sources, module)
  const load = async (module: string) =>
    (await importModule(info.name, folder, origin(module))) as { readonly COMMANDS?: unknown }
  if (info.manifest.runtime !== undefined) return { info, ref: pathToFileURL(folder), plugin: undefined, importModule: load }
  const plugin = await importPlugin(info.name, folder, origin('.'))
  return { info, ref: { name: info.name, manifest: info.manifest, use: plugin }, plugin, importModule: load }
}

/** Key of `exports` → the file that its condition `development` names and that is there. */
function sourcesOf(folder: string, { exports }: PackageJson): ReadonlyMap<string, string> {
  const named = Object.entries(typeof exports === 'object' ? exports : {}).map(
    ([key, one]) => [key, (one as { development?: unknown } | null)?.development] as const
  )
  const files = named.flatMap(([key, file]) => (typeof file === 'string' ? [[key, join(folder, file)] as const] : []))
  return new Map(files.filter(([, file]) => existsSync(file)))
}

/** Where a module of the package lies; `import` finds the plugin itself by its name where nothing else is said. */
function originOf({ name, folder, main }: PackageInfo, sources: ReadonlyMap<string, string>, module: string): Origin {
  const file = sources.get(module) ?? (module === '.' ? main && join(folder, main) : fileOf(name, folder, module))
  const place = pathToFileURL(join(folder, 'package.json')).href
  return { name, place, ...(file ? { module: pathToFileURL(file).href } : {}) }
}

const fileOf = (name: string, folder: string, module: string) =>
  existsSync(join(folder, module))
    ? join(folder, module)
    : createRequire(join(folder, 'package.json')).resolve(join(name, module))
