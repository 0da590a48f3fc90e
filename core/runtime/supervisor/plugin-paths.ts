import { existsSync, readdirSync, realpathSync, statSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { delimiter, dirname, extname, join, resolve, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import {
  type Config,
  CONFIG_FILES,
  definePlugin,
  foreignReason,
  get,
  modulesIn,
  packagesAround,
  pathsOfCode,
  type PluginEntry,
  shownPath,
  type SvcError,
  svcError,
  withImports,
} from '@svc/core'
import { ProtectedPaths } from '@svc/core/contracts'

// The files and folders with the code of svc, of its plugins and of its configuration.

/** A program and the configuration that it runs with. */
export interface Program {
  /** Its folder. */
  readonly folder: string
  /** The `from` of the plugins that come with it. */
  readonly from: string
  /** Each plugin has the place from which its name is resolved. */
  readonly config: Config
  readonly home: string
  /** The folder of the lock and the installed plugins. */
  readonly setHome: string
  readonly cwd: string
}

const CONFIG_NAMES = ['svc.config.ts', 'svc.config.mts', 'svc.config.js', 'svc.config.json', 'svc.config.yaml']

/** The paths that `--watch` watches: existing and possible configuration files, profiles, tool servers, linked plugins. */
export function watchedPaths({ config, home, cwd, from }: Program): string[] {
  const files = config.layers.flatMap(({ file }) => (file === undefined ? [] : [file]))
  const coming = [home, cwd].flatMap(folder => CONFIG_NAMES.map(name => join(folder, name)))
  const named = get(config.value, ['selection', 'profiles_file'])
  const profiles = typeof named === 'string' ? resolve(cwd, named) : join(home, 'profiles.yaml')
  const plugins = config.plugins.flatMap(entry => pluginPlace(entry, from))
  return [...new Set([...files, ...coming, profiles, join(home, 'mcp.yaml'), ...plugins])]
}

/**
 * The folder or file with the code of a plugin, even if it does not exist; undefined for inline plugins and unknown packages.
 */
function pathOfPlugin(entry: PluginEntry, ours: string): string | undefined {
  const { use } = entry
  if (typeof use === 'object' && !(use instanceof URL)) return undefined
  if (use instanceof URL || use.startsWith('file:')) return fileURLToPath(use)
  return localPath(use, entry) ?? packageFolder(use, entry, ours)
}

/** The folder or file of a plugin under development. Installed packages change only through npm. */
function pluginPlace(entry: PluginEntry, ours: string): string[] {
  const path = pathOfPlugin(entry, ours)
  if (path === undefined || !existsSync(path)) return []
  const real = realpathSync(path)
  return real.includes(`${sep}node_modules${sep}`) ? [] : [real]
}

const localPath = (use: string, { from }: PluginEntry) =>
  /^(\.{1,2}$|\.{0,2}\/|[A-Za-z]:\\)/.test(use) ? resolve(folderOf(from ?? process.cwd()), use) : undefined

/** `from` is the path of a file or the URL of a folder. */
const folderOf = (from: string) => (from.startsWith('file:') ? fileURLToPath(new URL('.', from)) : dirname(from))

function packageFolder(name: string, { from }: PluginEntry, ours: string): string | undefined {
  const places = [...(from === undefined ? [] : [from.startsWith('file:') ? from : pathToFileURL(from).href]), ours]
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

// --- protected from the tools of the server ---

/** Declares the paths of the configuration, the plugins and the packages of svc as protected. */
export const protectedPathsOf = (program: Program): PluginEntry => ({
  name: 'protected-paths',
  use: definePlugin({
    setup(scope) {
      const add = (name: string, owner: string, paths: readonly string[]) => scope.add(ProtectedPaths, name, { paths, owner })
      add('configuration', 'the configuration of svc', configurationPaths(program))
      add('plugins', 'the plugins of svc', pluginPaths(program))
      add('packages', 'svc itself', ownPackages(program.folder))
      add('programs', 'the programs that svc starts', programFolders(process.env, program.cwd))
    },
  }),
})

/** The configuration files in use, the ones that svc would read if they existed, and the code that they import. */
function configurationPaths({ config: { layers }, home, cwd, setHome }: Program): string[] {
  const files = layers.flatMap(({ file }) => (file === undefined ? [] : [resolve(cwd, file)]))
  const coming = [home, ...upward(cwd)].flatMap(folder => CONFIG_FILES.map(name => join(folder, name)))
  const code = pathsOfCode(files.filter(file => /^\.[cm]?[jt]s$/.test(extname(file))))
  return [...new Set([...files, ...coming, ...code, setHome])]
}

const upward = (folder: string): string[] => (dirname(folder) === folder ? [folder] : [folder, ...upward(dirname(folder))])

/** Folders and files of configured plugins; for a package also the first folder in which Node looks for its name. */
const pluginPaths = ({ config: { plugins }, from }: Program): string[] => [
  ...new Set(plugins.filter(item => item.from !== from).flatMap(item => pathsOfPlugin(item, from))),
]

function pathsOfPlugin(entry: PluginEntry, ours: string): string[] {
  const path = pathOfPlugin(entry, ours)
  if (path === undefined) return []
  const place = entry.from?.startsWith('file:') ? dirname(fileURLToPath(new URL('x', entry.from))) : entry.from
  const isPackage = typeof entry.use === 'string' && !/^(\.{0,2}\/|\.{1,2}$|file:)/.test(entry.use)
  const first = isPackage && place !== undefined && entry.from !== ours ? [join(place, 'node_modules')] : []
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
function ownPackages(own: string): string[] {
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

// --- not safe to load ---

/**
 * Returns a problem for each plugin in a folder or file of the project that another user can write: its code would run as this
 * user.
 */
export function foreignPlugins(plugins: readonly PluginEntry[], ours: string): SvcError[] {
  return plugins.flatMap(entry => {
    const path = projectPath(entry, ours)
    const [first] = path === undefined ? [] : modulesOf(path).flatMap(file => foreignReason(file) ?? [])
    return first === undefined ? [] : [pluginForeign(shownPath(path!), first)]
  })
}

/** The user who installs a package is responsible for its owner. */
function projectPath(entry: PluginEntry, ours: string): string | undefined {
  const isPath = entry.use instanceof URL || (typeof entry.use === 'string' && /^(\.{0,2}\/|\.{1,2}$|file:)/.test(entry.use))
  const path = isPath ? pathOfPlugin(entry, ours) : undefined
  return path === undefined || !existsSync(path) || packagesAround(path) !== undefined ? undefined : path
}

function modulesOf(path: string): string[] {
  if (!statSync(path).isDirectory()) return withImports(path)
  return [join(path, 'package.json'), ...modulesIn(path)].filter(file => existsSync(file))
}

const pluginForeign = (path: string, reason: string) =>
  svcError(
    'PLUGIN_FOREIGN',
    `svc does not load the plugin in ${path}, because another user can write one of its files: ${reason}`,
    {
      where: path,
      hint: 'If the plugin is yours, become the owner of the file, and remove the write permission of others (chown, chmod go-w)',
    }
  )
