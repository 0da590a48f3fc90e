import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { importFrom, type PackageInfo, type Plugin, type PluginRef, readManifest, svcError } from '@svc/core'
import { withHostPackages } from '../config/host-packages.ts'

/** A plugin's folder as the kit takes it: its source where its `exports` name one for development, else what is built. */
export interface PluginPackage {
  readonly info: PackageInfo
  /** As a host takes it. */
  readonly ref: PluginRef
  /** Absent where it is code that is never imported. */
  readonly plugin: Plugin | undefined
  /** The module of a command. */
  importModule(module: string): Promise<{ readonly default?: unknown }>
}

interface PackageJson {
  readonly exports?: Readonly<Record<string, unknown>>
}

/** Reads a folder and imports its module. Throws MANIFEST_INVALID, MANIFEST_NEWER, PLUGIN_IMPORT_FAILED. */
export async function openPackage(place: URL | string): Promise<PluginPackage> {
  const folder = place instanceof URL || place.startsWith('file:') ? fileURLToPath(place) : place
  const file = join(folder, 'package.json')
  if (!existsSync(file))
    throw svcError('PLUGIN_UNKNOWN', `there is no package.json in ${basename(folder)}`, { mend: 'name the folder of a plugin' })
  const info = await readManifest(file)
  const sources = sourcesOf(folder, JSON.parse(readFileSync(file, 'utf8')) as PackageJson)
  const importModule = (module: string) => importOf(info, folder, sources, module)
  if (info.manifest.runtime !== undefined) return { info, ref: pathToFileURL(folder), plugin: undefined, importModule }
  const { default: plugin } = await importModule('.')
  if (typeof (plugin as Plugin | undefined)?.setup !== 'function')
    throw svcError('PLUGIN_IMPORT_FAILED', 'its module loads, but exports no plugin as default', {
      plugin: info.name,
      mend: 'export default definePlugin({ … })',
    })
  const whole: Plugin = Object.assign({ requires: {}, optional: {} }, plugin as Plugin)
  return { info, ref: { name: info.name, manifest: info.manifest, use: whole }, plugin: whole, importModule }
}

/** Key of `exports` → the file that its condition `development` names and that is there. */
function sourcesOf(folder: string, { exports }: PackageJson): ReadonlyMap<string, string> {
  const named = Object.entries(typeof exports === 'object' ? exports : {}).map(
    ([key, one]) => [key, (one as { development?: unknown } | null)?.development] as const
  )
  const files = named.flatMap(([key, file]) => (typeof file === 'string' ? [[key, join(folder, file)] as const] : []))
  return new Map(files.filter(([, file]) => existsSync(file)))
}

async function importOf(info: PackageInfo, folder: string, sources: ReadonlyMap<string, string>, module: string) {
  const load = (file: string) => import(pathToFileURL(file).href) as Promise<unknown>
  const found = await withHostPackages(async () => {
    const source = sources.get(module)
    if (source !== undefined) return load(source)
    if (module !== '.') return load(fileOf(info, folder, module))
    return info.main ? load(join(folder, info.main)) : importFrom(info.name, pathToFileURL(join(folder, 'package.json')).href)
  })
  return found as { readonly default?: unknown }
}

const fileOf = (info: PackageInfo, folder: string, module: string) =>
  existsSync(join(folder, module))
    ? join(folder, module)
    : createRequire(join(folder, 'package.json')).resolve(join(info.name, module))
