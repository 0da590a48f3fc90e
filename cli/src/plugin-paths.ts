import { existsSync, readdirSync, realpathSync, statSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { delimiter, dirname, extname, join, resolve, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { type Config, CONFIG_FILES, definePlugin, get, modulesIn, packagesAround, pathsOfCode, type PluginEntry } from '@svc/core'
import { ProtectedPaths } from '@svc/core/contracts'
import { OURS, placed } from './plugin-places.ts'
import { setHome } from './command-place.ts'

const CONFIG_NAMES = ['svc.config.ts', 'svc.config.mts', 'svc.config.js', 'svc.config.json', 'svc.config.yaml']

/** The paths that `--watch` watches: existing and possible configuration files, profiles, tool servers, linked plugins. */
export function placesOf(config: Config, home: string, cwd: string = process.cwd()): string[] {
  const files = config.layers.flatMap(({ file }) => (file === undefined ? [] : [file]))
  const coming = [home, cwd].flatMap(folder => CONFIG_NAMES.map(name => join(folder, name)))
  const named = get(config.value, ['selection', 'profiles_file'])
  const profiles = typeof named === 'string' ? resolve(cwd, named) : join(home, 'profiles.yaml')
  return [
    ...new Set([...files, ...coming, profiles, join(home, 'mcp.yaml'), ...placed(config.plugins, home).flatMap(pluginPlace)]),
  ]
}

/**
 * The folder or file with the code of a plugin, even if it does not exist; undefined for inline plugins and unknown packages.
 */
export function pathOfPlugin(entry: PluginEntry): string | undefined {
  const { use } = entry
  if (typeof use === 'object' && !(use instanceof URL)) return undefined
  if (use instanceof URL || use.startsWith('file:')) return fileURLToPath(use)
  return localPath(use, entry) ?? packageFolder(use, entry)
}

/** The folder or file of a plugin under development. Installed packages change only through npm. */
function pluginPlace(entry: PluginEntry): string[] {
  const path = pathOfPlugin(entry)
  if (path === undefined || !existsSync(path)) return []
  const real = realpathSync(path)
  return real.includes(`${sep}node_modules${sep}`) ? [] : [real]
}

const localPath = (use: string, { from }: PluginEntry) =>
  /^(\.{1,2}$|\.{0,2}\/|[A-Za-z]:\\)/.test(use) ? resolve(folderOf(from ?? process.cwd()), use) : undefined

/** `from` is the path of a file or the URL of a folder. */
const folderOf = (from: string) => (from.startsWith('file:') ? fileURLToPath(new URL('.', from)) : dirname(from))

function packageFolder(name: string, { from }: PluginEntry): string | undefined {
  const places = [...(from === undefined ? [] : [from.startsWith('file:') ? from : pathToFileURL(from).href]), OURS]
  const files = places.map(place => manifestOf(name, place))
  const file = files.find(item => item !== undefined)
  return file === undefined ? undefined : dirname(file)
}

function manifestOf(name: string, place: string): string | undefined {
  try {
    return findPackageJSON(name, place)
  } catch {
    return undefined
  }
}

/** Declares the paths of the configuration, the plugins and the packages of svc as protected. */
export const protectedPathsOf = (config: Config, home: string, cwd: string = process.cwd()): PluginEntry => ({
  name: 'protected-paths',
  use: definePlugin({
    setup(scope) {
      const add = (name: string, owner: string, paths: readonly string[]) => scope.add(ProtectedPaths, name, { paths, owner })
      add('configuration', 'the configuration of svc', configurationPaths(config, home, cwd))
      add('plugins', 'the plugins of svc', pluginPaths(config, home))
      add('packages', 'svc itself', ownPackages())
      add('programs', 'the programs that svc starts', programFolders(process.env, cwd))
    },
  }),
})

/** The configuration files in use, the ones that svc would read if they existed, and the code that they import. */
function configurationPaths({ layers }: Config, home: string, cwd: string): string[] {
  const files = layers.flatMap(({ file }) => (file === undefined ? [] : [resolve(cwd, file)]))
  const coming = [home, ...upward(cwd)].flatMap(folder => CONFIG_FILES.map(name => join(folder, name)))
  const code = pathsOfCode(files.filter(file => /^\.[cm]?[jt]s$/.test(extname(file))))
  return [...new Set([...files, ...coming, ...code, setHome({ home, env: process.env })])]
}

const upward = (folder: string): string[] => (dirname(folder) === folder ? [folder] : [folder, ...upward(dirname(folder))])

/** Folders and files of configured plugins; for a package also the first folder in which Node looks for its name. */
function pluginPaths(config: Config, home: string): string[] {
  return [
    ...new Set(
      placed(config.plugins, home)
        .filter(item => item.from !== OURS)
        .flatMap(pathsOfPlugin)
    ),
  ]
}

function pathsOfPlugin(entry: PluginEntry): string[] {
  const path = pathOfPlugin(entry)
  if (path === undefined) return []
  const place = entry.from?.startsWith('file:') ? dirname(fileURLToPath(new URL('x', entry.from))) : entry.from
  const isPackage = typeof entry.use === 'string' && !/^(\.{0,2}\/|\.{1,2}$|file:)/.test(entry.use)
  const first = isPackage && place !== undefined && entry.from !== OURS ? [join(place, 'node_modules')] : []
  const both = [...new Set([path, existsSync(path) ? realpathSync(path) : path])]
  return [...first, ...both.flatMap(item => packagesAround(item) ?? [item, ...importsOfPlugin(item)])]
}

/**
 * The imports of a plugin in a folder or file of the project, and the folders of their packages. Plugins of svc are in svc's
 * own packages.
 */
function importsOfPlugin(path: string): string[] {
  if (!existsSync(path)) return []
  return pathsOfCode(statSync(path).isDirectory() ? [join(path, 'package.json'), ...modulesIn(path)] : [path])
}

/** The `node_modules` that contains svc. In a checkout: the folders of the linked packages, and the files that start it. */
function ownPackages(): string[] {
  const own = dirname(dirname(fileURLToPath(import.meta.url)))
  const installed = packagesAround(own)
  if (installed !== undefined) return [installed]
  const top = upward(own).find(folder => existsSync(join(folder, 'node_modules', '@svc')))
  if (top === undefined) return [own]
  const scope = join(top, 'node_modules', '@svc')
  const linked = readdirSync(scope)
    .map(name => join(scope, name))
    .filter(existsSync) // a package of another branch leaves its link behind
    .map(path => realpathSync(path))
  const start = ['node_modules', 'package.json', 'package-lock.json', '.npmrc', 'scripts'].map(name => join(top, name))
  return [own, ...start, ...linked.filter(folder => folder.startsWith(top + sep))]
}

/**
 * The folders of git, npm and the sandbox. npm adds `node_modules/.bin` of the project and of each folder above it to PATH. A
 * PATH entry above the working folder cannot be protected, because it contains the project.
 */
const programFolders = ({ PATH = '' }: NodeJS.ProcessEnv, cwd: string): string[] =>
  PATH.split(delimiter)
    .map(folder => resolve(cwd, folder))
    .filter(folder => !upward(cwd).includes(folder))
