import { existsSync, statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename, dirname, extname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { withHostPackages } from './host-packages.ts'
import { type Config, type ConfigTree, isTree, type Layer, mergeConfig } from './config.ts'
import { shownPath } from './home.ts'
import { asSvcError, codeOf, messageOf, type SvcError } from '../src/svc-error.ts'
import { configAmbiguous, configUnreadable } from './errors.ts'
import { readLines } from './lines.ts'
import { noteImport } from './noted-imports.ts'

/** The files a folder may keep its configuration in: one of them. */
export const CONFIG_FILES = ['svc.config.ts', 'svc.config.mts', 'svc.config.js', 'svc.config.json', 'svc.config.yaml']

/** Where to look for configuration. */
export interface FindOptions {
  /** The svc home: its file weighs less than the project's. */
  home: string
  /** Where the search upward begins. */
  cwd: string
  /** Replaces the project's file. */
  file?: string
  env?: Readonly<Record<string, string | undefined>>
  flags?: ConfigTree
  defaults?: ConfigTree
  /** What weighs just more than the defaults, and what is wrong with it. */
  installed?: { readonly layer: Layer; readonly problems: readonly SvcError[] }
}

/**
 * Finds and merges configuration; growing weight: defaults, what is installed, the home's file, the project's (nearest upward, or `file`), environment, flags.
 * What cannot be read stands in `problems`, with file and line: a host refuses to start with it.
 */
export async function findConfig(options: FindOptions): Promise<Config> {
  const { home, cwd, file, env = {}, flags = {}, defaults = {}, installed } = options
  const reader = createReader(path => shownPath(path, cwd, home))
  const own = await reader.inFolder(home)
  const project = file ? await reader.read(resolve(cwd, file)) : await reader.upward(cwd, home)
  const files = [own, project?.file === own?.file ? undefined : project].filter(layer => layer !== undefined)
  const base = [{ name: 'defaults', value: defaults }, ...(installed ? [installed.layer] : [])]
  return mergeConfig(
    [...base, ...files, envLayer(env), { name: 'flags', value: flags }],
    [...(installed?.problems ?? []), ...reader.problems]
  )
}

/** How a file is named to a person. */
type Show = (file: string) => string

interface Reader {
  readonly problems: readonly SvcError[]
  read(file: string): Promise<Layer | undefined>
  /** The file of a folder; two of them in one would make one silently win, here another than there. */
  inFolder(folder: string): Promise<Layer | undefined>
  /** The nearest upward; the home's own file is read already. */
  upward(from: string, home: string): Promise<Layer | undefined>
}

function createReader(show: Show): Reader {
  const problems: SvcError[] = []
  const read = async (file: string) => {
    try {
      return await loadFile(file, show)
    } catch (error) {
      problems.push(asSvcError(error, 'CONFIG_UNREADABLE'))
      return undefined
    }
  }
  const inFolder = async (folder: string): Promise<Layer | undefined> => {
    const [first, ...others] = filesIn(folder)
    if (others.length > 0) problems.push(configAmbiguous([first!, ...others].map(show)))
    return first === undefined ? undefined : read(first)
  }
  const upward = async (from: string, home: string): Promise<Layer | undefined> => {
    if (filesIn(from).length > 0) return from === home ? undefined : inFolder(from)
    return dirname(from) === from ? undefined : upward(dirname(from), home)
  }
  return { problems, read, inFolder, upward }
}

const filesIn = (folder: string) => CONFIG_FILES.map(name => join(folder, name)).filter(file => existsSync(file))

async function loadFile(file: string, show: Show): Promise<Layer> {
  const loaders = loadersFor(show)
  if (!existsSync(file)) throw configUnreadable('this file does not exist', show(file))
  if (!(extname(file) in loaders))
    throw configUnreadable(`this is none of the forms ${Object.keys(loaders).join(', ')}`, show(file))
  // most folders hold nothing: cosmiconfig is loaded only for one that does
  const { cosmiconfig } = await import('cosmiconfig')
  const found = await cosmiconfig('svc', { searchStrategy: 'none', cache: false, loaders }).load(file)
  // an empty file is a configuration without keys
  return (found?.config as Layer | undefined) ?? { name: show(file), file, value: {} }
}

function loadersFor(show: Show) {
  const readModule = (file: string) => moduleLayer(file, show(file))
  const readText = (file: string, content: string) => textLayer(file, content, show(file))
  return {
    '.ts': readModule,
    '.mts': readModule,
    '.js': readModule,
    '.mjs': readModule,
    '.json': readText,
    '.yaml': readText,
    '.yml': readText,
  }
}

function textLayer(file: string, content: string, name: string): Layer {
  const lines = readLines(content)
  const [error] = lines.errors
  if (error) throw configUnreadable(error.message, `${name}:${error.line}`)
  return layerOf(file, name, lines.value ?? {}, keys => lines.line(keys))
}

async function moduleLayer(file: string, name: string): Promise<Layer> {
  try {
    // the module cache would answer with the first version for ever
    const url = `${pathToFileURL(file).href}?v=${versionOf(file)}`
    const { module, paths } = await noteImport<{ default?: unknown }>(url, () => withHostPackages(() => import(url)))
    return { ...layerOf(file, name, module.default), imports: paths }
  } catch (error) {
    if (codeOf(error)?.startsWith('CONFIG_')) throw error
    throw configUnreadable(messageOf(error), whereInStack(error, file, name))
  }
}

const versionOf = (file: string) => `${statSync(file).mtimeMs}-${statSync(file).size}`

function layerOf(file: string, name: string, value: unknown, line?: Layer['line']): Layer {
  if (!isTree(value)) throw configUnreadable('must hold (or export as default) an object of configuration', name)
  // by it an editor finds the schema of the file
  const { $schema: _schema, ...keys } = value
  return { name, file, value: keys, ...(line ? { line } : {}) }
}

function whereInStack(error: unknown, file: string, name: string): string {
  const place = (error as Error).stack?.split('\n').find(line => line.includes(basename(file)))
  const line = place?.match(/:(\d+)(?::\d+)?\)?$/)?.[1]
  return line ? `${name}:${line}` : name
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

/** A project's own text, with the line of each key: for other files that people write (profiles). Throws CONFIG_UNREADABLE. */
export async function readConfigFile(file: string): Promise<Layer> {
  return textLayer(file, await readFile(file, 'utf8'), shownPath(file))
}
