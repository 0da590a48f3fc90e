import { existsSync, realpathSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { asSvcError, type SvcError } from '../src/svc-error.ts'
import { type Config, type ConfigTree, isTree, type Layer, mergeConfig } from './config.ts'
import { configAmbiguous } from './errors.ts'
import { shownPath, userHome } from './home.ts'
import { type FileChecks, loadFile, type ShowPath, UNCHECKED } from './load-file.ts'

/** Where to look for configuration. */
export interface FindOptions {
  /** The svc home: its file weighs less than the project's. */
  home: string
  /** Where the search upward begins. */
  cwd: string
  /** Replaces the project's file. What the user names is taken as it is: neither owner nor content is checked. */
  file?: string
  /** No other file than `file` is read. */
  onlyNamed?: boolean
  env?: Readonly<Record<string, string | undefined>>
  flags?: ConfigTree
  defaults?: ConfigTree
  /** What weighs just more than the defaults, and what is wrong with it. */
  installed?: { readonly layer: Layer; readonly problems: readonly SvcError[] }
}

/**
 * Finds and merges configuration; growing weight: defaults, what is installed, the home's file, the project's (nearest upward, or `file`), environment, flags.
 * A file that was found must not be writable by other users; code in a project's file runs only where the user has allowed it (`trustCode`), or with
 * `SVC_TRUST_CONFIG=1` in `env`.
 * What cannot be read stands in `problems`, with file and line: a host refuses to start with it.
 */
export async function findConfig(options: FindOptions): Promise<Config> {
  const { home, cwd, onlyNamed, env = {}, flags = {}, defaults = {}, installed } = options
  const reader = createReader(path => shownPath(path, cwd, home))
  const own = onlyNamed ? undefined : await reader.inFolder(home, { owned: true })
  const project = await projectFile(reader, options)
  const files = [own, project?.file === own?.file ? undefined : project].filter(layer => layer !== undefined)
  const base = [{ name: 'defaults', value: defaults }, ...(installed ? [installed.layer] : [])]
  return mergeConfig(
    [...base, ...files, envLayer(env), { name: 'flags', value: flags }],
    [...(installed?.problems ?? []), ...reader.problems]
  )
}

/** The file that is named, else the nearest upward; the home's own file is read already. */
async function projectFile(reader: Reader, { home, cwd, file, onlyNamed, env }: FindOptions): Promise<Layer | undefined> {
  if (file) return reader.read(resolve(cwd, file), UNCHECKED)
  const folder = onlyNamed ? undefined : nearestConfig(cwd)
  if (folder === undefined || folder === home) return undefined
  return reader.inFolder(folder, { owned: true, ...(trustsAll(env) ? {} : { allowedIn: home }) })
}

/** Whether the environment says that code in the project's configuration may run. */
export const trustsAll = (env: FindOptions['env']): boolean => env?.SVC_TRUST_CONFIG === '1'

interface Reader {
  readonly problems: readonly SvcError[]
  read(file: string, conditions: FileChecks): Promise<Layer | undefined>
  /** The file of a folder; two of them in one would make one silently win, here another than there. */
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

/** `SVC_SERVER__PORT=9000` is `server.port`; only names with `__` count. The value is JSON if it parses, else text. */
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

/** The variable that set a key, something around it or below it. */
function nearVariable(variables: ReadonlyMap<string, string>, key: string): string | undefined {
  const near = (one: string) => `${key}.`.startsWith(`${one}.`) || one.startsWith(`${key}.`)
  return variables.get(key) ?? [...variables].find(([one]) => near(one))?.[1]
}

function parseValue(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Sets `keys` in a tree. */
export function put(tree: ConfigTree, keys: readonly string[], value: unknown) {
  const [first, ...rest] = keys as [string, ...string[]]
  if (rest.length === 0)
    return void Object.defineProperty(tree, first, { value, enumerable: true, writable: true, configurable: true })
  if (!Object.hasOwn(tree, first) || !isTree(tree[first])) put(tree, [first], {})
  put(tree[first] as ConfigTree, rest, value)
}

/** The files a folder may keep its configuration in: one of them. */
export const CONFIG_FILES = ['svc.config.ts', 'svc.config.mts', 'svc.config.js', 'svc.config.json', 'svc.config.yaml']

/** Those of them that a folder has. A folder of that name is none: a sandbox puts one where no file may be made. */
export const configFilesIn = (folder: string): string[] =>
  CONFIG_FILES.map(name => join(folder, name)).filter(file => statSync(file, { throwIfNoEntry: false })?.isDirectory() === false)

/** The nearest folder upward that has configuration (load-file.ts says why cosmiconfig does not search). The search ends with the root of a repository, the user's home folder, or the root of a file system. */
export function nearestConfig(from: string): string | undefined {
  if (configFilesIn(from).length > 0) return from
  return isLast(from) ? undefined : nearestConfig(dirname(from))
}

const isLast = (folder: string): boolean =>
  dirname(folder) === folder ||
  isRepository(folder) ||
  realOf(folder) === realOf(userHome()) ||
  deviceOf(folder) !== deviceOf(dirname(folder))

/** An empty `.git` is none, for git as well: a sandbox puts one where nothing may be made. */
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
