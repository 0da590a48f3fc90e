import { existsSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { asSvcError, type SvcError } from '../src/errors.ts'
import { type Config, type ConfigTree, isTree, type Layer, mergeConfig } from './config.ts'
import { configAmbiguous, configIgnored } from './errors.ts'
import { shownPath, userHome } from './home.ts'
import { type FileChecks, loadFile, type ShowPath, UNCHECKED } from './load-file.ts'

/** Options of the configuration search. */
export interface FindOptions {
  /** The svc home. Its file has lower priority than the project's. */
  home: string
  /** The folder where the upward search starts. */
  cwd: string
  /** Replaces the project's file. A file that the user names is accepted without a check of owner or content. */
  file?: string
  /** Reads no file other than `file`. */
  onlyNamed?: boolean
  env?: Readonly<Record<string, string | undefined>>
  flags?: ConfigTree
  defaults?: ConfigTree
  /** A layer just above the defaults, and its problems. */
  installed?: { readonly layer: Layer; readonly problems: readonly SvcError[] }
}

/**
 * Finds and merges configuration. Rising priority: defaults, installed plugins, the file of the home, the file of the project
 * (nearest upward, or `file`), environment, flags.
 * A file that was found must not be writable by other users. Code in a project file runs only after the user has allowed it
 * (`trustCode`), or with `SVC_TRUST_CONFIG=1` in `env`.
 * Errors are in `problems`, with file and line: a host refuses to start with them.
 */
export async function findConfig(options: FindOptions): Promise<Config> {
  const { home, cwd, onlyNamed, env = {}, flags = {}, defaults = {}, installed } = options
  const reader = createReader(path => shownPath(path, cwd, home))
  const own = onlyNamed ? undefined : await reader.inFolder(home, { owned: true })
  const project = await projectFile(reader, options)
  const files = [own, project?.file === own?.file ? undefined : project].filter(layer => layer !== undefined)
  const base = [{ name: 'defaults', value: defaults }, ...(installed ? [installed.layer] : [])]
  const config = mergeConfig(
    [...base, ...files, envLayer(env), { name: 'flags', value: flags }],
    [...(installed?.problems ?? []), ...reader.problems]
  )
  return { ...config, notes: notesBeside(options) }
}

/** Files beside the named one that svc would read without it. */
function notesBeside({ cwd, home, file }: FindOptions): SvcError[] {
  const named = file === undefined ? '' : resolve(cwd, file)
  const folder = dirname(named)
  if (!CONFIG_FILES.includes(basename(named)) || folder === home) return []
  return configFilesIn(folder)
    .filter(other => other !== named)
    .map(other => configIgnored(shownPath(other, cwd, home), shownPath(named, cwd, home)))
}

/** Reads the named file, else the nearest one upward. The file of the home is already read. */
async function projectFile(reader: Reader, { home, cwd, file, onlyNamed, env }: FindOptions): Promise<Layer | undefined> {
  if (file) return reader.read(resolve(cwd, file), UNCHECKED)
  const folder = onlyNamed ? undefined : nearestConfig(cwd)
  if (folder === undefined || folder === home) return undefined
  return reader.inFolder(folder, { owned: true, ...(trustsAll(env) ? {} : { allowedIn: home }) })
}

/** Whether the environment allows code in the project's configuration to run. */
export const trustsAll = (env: FindOptions['env']): boolean => env?.SVC_TRUST_CONFIG === '1'

interface Reader {
  readonly problems: readonly SvcError[]
  read(file: string, conditions: FileChecks): Promise<Layer | undefined>
  /** Reads the configuration file of a folder. Two files in one folder are an error, because one would silently win. */
  inFolder(folder: string, conditions: FileChecks): Promise<Layer | undefined>
}

function createReader(show: ShowPath): Reader {
  const problems: SvcError[] = []
  const read = async (file: string, conditions: FileChecks) => {
    try {
      return await loadFile(file, show, conditions)
    } catch (error) {
      problems.push(asSvcError(error, 'CONFIG_UNREADABLE'))
      return undefined
    }
  }
  const inFolder = async (folder: string, conditions: FileChecks): Promise<Layer | undefined> => {
    const [first, ...others] = configFilesIn(folder)
    if (others.length > 0) problems.push(configAmbiguous([first!, ...others].map(show)))
    return first === undefined ? undefined : read(first, conditions)
  }
  return { problems, read, inFolder }
}

/** Maps `SVC_SERVER__PORT=9000` to `server.port`. Only names with `__` count. The value is parsed as JSON, else taken as text. */
function envLayer(env: Readonly<Record<string, string | undefined>>): Layer {
  const value: ConfigTree = {}
  const variables = new Map<string, string>()
  for (const [name, text] of Object.entries(env)) {
    const match = /^SVC_([A-Z0-9].*)$/.exec(name)
    if (!match?.[1]?.includes('__') || text === undefined) continue
    const keys = match[1].toLowerCase().split('__')
    put(value, keys, parseValue(text))
    variables.set(keys.join('.'), name)
  }
  return { name: 'environment', value, variable: keys => nearVariable(variables, keys.join('.')) }
}

/** Returns the variable that set the key, a parent or a child of it. */
function nearVariable(variables: ReadonlyMap<string, string>, key: string): string | undefined {
  const near = (text: string) => `${key}.`.startsWith(`${text}.`) || text.startsWith(`${key}.`)
  return variables.get(key) ?? [...variables].find(([item]) => near(item))?.[1]
}

function parseValue(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Sets a value at `keys` in a tree. */
export function put(tree: ConfigTree, keys: readonly string[], value: unknown) {
  const [first, ...rest] = keys as [string, ...string[]]
  if (rest.length === 0)
    return void Object.defineProperty(tree, first, { value, enumerable: true, writable: true, configurable: true })
  if (!Object.hasOwn(tree, first) || !isTree(tree[first])) put(tree, [first], {})
  put(tree[first] as ConfigTree, rest, value)
}

/** Possible names of the configuration file of a folder. */
export const CONFIG_FILES = ['svc.config.ts', 'svc.config.mts', 'svc.config.js', 'svc.config.json', 'svc.config.yaml']

/**
 * The configuration files in a folder. A directory with such a name does not count: a sandbox creates one to prevent the
 * creation of a file.
 */
export const configFilesIn = (folder: string): string[] =>
  CONFIG_FILES.map(name => join(folder, name)).filter(file => statSync(file, { throwIfNoEntry: false })?.isDirectory() === false)

/**
 * Returns the nearest folder upward that has configuration (see `parse` in load-file.ts for why cosmiconfig does not search).
 * The search ends at the root of a repository, the user's home folder, or the root of a file system.
 */
export function nearestConfig(from: string): string | undefined {
  if (configFilesIn(from).length > 0) return from
  return isLast(from) ? undefined : nearestConfig(dirname(from))
}

const isLast = (folder: string): boolean =>
  dirname(folder) === folder ||
  isRepository(folder) ||
  realOf(folder) === realOf(userHome()) ||
  deviceOf(folder) !== deviceOf(dirname(folder))

/** An empty `.git` folder is not a repository, for git either: a sandbox creates one to prevent the creation of files in it. */
const isRepository = (folder: string) =>
  existsSync(join(folder, '.git', 'HEAD')) || statSync(join(folder, '.git'), { throwIfNoEntry: false })?.isFile() === true

const deviceOf = (folder: string) => statSync(folder, { throwIfNoEntry: false })?.dev

function realOf(folder: string): string {
  try {
    return realpathSync(folder)
  } catch {
    return folder
  }
}
