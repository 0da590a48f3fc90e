import { existsSync, realpathSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { dirname, join, resolve, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { type Config, get, type PluginEntry } from '@svc/core'
import { OURS, placed } from './plugin-places.ts'

const CONFIG_NAMES = ['svc.config.ts', 'svc.config.mts', 'svc.config.js', 'svc.config.json', 'svc.config.yaml']

/** What a host was made of that may change under a person's hands: files of configuration (those that may yet come, too), profiles, tool servers, linked plugins. */
export function placesOf(config: Config, home: string, cwd: string = process.cwd()): string[] {
  const files = config.layers.flatMap(({ file }) => (file === undefined ? [] : [file]))
  const coming = [home, cwd].flatMap(folder => CONFIG_NAMES.map(name => join(folder, name)))
  const named = get(config.value, ['selection', 'profiles_file'])
  const profiles = typeof named === 'string' ? resolve(cwd, named) : join(home, 'profiles.yaml')
  return [
    ...new Set([...files, ...coming, profiles, join(home, 'mcp.yaml'), ...placed(config.plugins, home).flatMap(pluginPlace)]),
  ]
}

/** The folder or file that the code of a plugin is in, whether it is there or not; `undefined` for one that is part of the program, and for an unknown package. */
export function pathOfPlugin(entry: PluginEntry): string | undefined {
  const { use } = entry
  if (typeof use === 'object' && !(use instanceof URL)) return undefined
  if (use instanceof URL || use.startsWith('file:')) return fileURLToPath(use)
  return localPath(use, entry) ?? packageFolder(use, entry)
}

/** The folder or file of a plugin that somebody works on; what was installed changes only by `npm`. */
function pluginPlace(entry: PluginEntry): string[] {
  const path = pathOfPlugin(entry)
  if (path === undefined || !existsSync(path)) return []
  const real = realpathSync(path)
  return real.includes(`${sep}node_modules${sep}`) ? [] : [real]
}

const localPath = (use: string, { from }: PluginEntry) =>
  /^(\.{1,2}$|\.{0,2}\/|[A-Za-z]:\\)/.test(use) ? resolve(folderOf(from ?? process.cwd()), use) : undefined

/** Of a file's path, or a folder's URL. */
const folderOf = (from: string) => (from.startsWith('file:') ? fileURLToPath(new URL('.', from)) : dirname(from))

function packageFolder(name: string, { from }: PluginEntry): string | undefined {
  const places = [...(from === undefined ? [] : [from.startsWith('file:') ? from : pathToFileURL(from).href]), OURS]
  const files = places.map(place => manifestOf(name, place))
  const file = files.find(one => one !== undefined)
  return file === undefined ? undefined : dirname(file)
}

function manifestOf(name: string, place: string): string | undefined {
  try {
    return findPackageJSON(name, place)
  } catch {
    return undefined
  }
}
