import { existsSync, statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename, dirname, extname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { withHostPackages } from './host-packages.ts'
import { type Config, type ConfigTree, isTree, type Layer, mergeConfig } from './config.ts'
import { codeOf, configUnreadable, messageOf } from '../src/errors.ts'

/** The places a folder may keep its configuration in, first come, first taken. */
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
}

/**
 * Finds and merges configuration; growing weight: defaults, the home's file, the project's (nearest upward, or `file`), environment, flags.
 * Throws CONFIG_UNREADABLE with file and line.
 */
export async function findConfig(options: FindOptions): Promise<Config> {
  const { home, cwd, file, env = {}, flags = {}, defaults = {} } = options
  const own = await searchFolder(home)
  const project = file ? await loadFile(resolve(cwd, file)) : await searchUpward(cwd)
  const files = [own, project?.file === own?.file ? undefined : project].filter(layer => layer !== undefined)
  return mergeConfig([{ name: 'defaults', value: defaults }, ...files, envLayer(env), { name: 'flags', value: flags }])
}

async function searchUpward(from: string): Promise<Layer | undefined> {
  const found = await searchFolder(from)
  const parent = dirname(from)
  return found ?? (parent === from ? undefined : searchUpward(parent))
}

async function searchFolder(folder: string): Promise<Layer | undefined> {
  // most folders on the way up hold nothing: cosmiconfig is loaded only for one that does
  if (!CONFIG_FILES.some(name => existsSync(join(folder, name)))) return undefined
  const found = await (await explorer()).search(folder)
  return found ? layerIn(found) : undefined
}

async function loadFile(file: string): Promise<Layer> {
  if (!existsSync(file)) throw configUnreadable('this file does not exist', file)
  if (!(extname(file) in LOADERS)) throw configUnreadable(`this is none of the forms ${Object.keys(LOADERS).join(', ')}`, file)
  return layerIn((await (await explorer()).load(file)) ?? { filepath: file, config: undefined })
}

/** An empty file is a configuration without keys. */
const layerIn = ({ filepath, config }: { filepath: string; config: unknown }): Layer =>
  (config as Layer | undefined) ?? { name: basename(filepath), file: filepath, value: {} }

async function explorer() {
  const { cosmiconfig } = await import('cosmiconfig')
  const options = {
    searchPlaces: CONFIG_FILES,
    ignoreEmptySearchPlaces: false,
    searchStrategy: 'none',
    cache: false,
    loaders: LOADERS,
  } as const
  return cosmiconfig('svc', options)
}

const LOADERS = {
  '.ts': readModule,
  '.mts': readModule,
  '.js': readModule,
  '.mjs': readModule,
  '.json': readText,
  '.yaml': readText,
  '.yml': readText,
}

async function readText(file: string, content: string): Promise<Layer> {
  const { readLines } = await import('./lines.ts')
  const lines = readLines(content)
  const [error] = lines.errors
  if (error) throw configUnreadable(error.message, `${basename(file)}:${error.line}`)
  return layerOf(file, lines.value ?? {}, keys => lines.line(keys))
}

async function readModule(file: string): Promise<Layer> {
  try {
    // the module cache would answer with the first version for ever
    const url = `${pathToFileURL(file).href}?v=${versionOf(file)}`
    const module = (await withHostPackages(() => import(url))) as { default?: unknown }
    return layerOf(file, module.default)
  } catch (error) {
    if (codeOf(error)?.startsWith('CONFIG_')) throw error
    throw configUnreadable(messageOf(error), whereInStack(error, file))
  }
}

const versionOf = (file: string) => `${statSync(file).mtimeMs}-${statSync(file).size}`

function layerOf(file: string, value: unknown, line?: Layer['line']): Layer {
  if (!isTree(value)) throw configUnreadable('must hold (or export as default) an object of configuration', basename(file))
  return { name: basename(file), file, value, ...(line ? { line } : {}) }
}

function whereInStack(error: unknown, file: string): string {
  const place = (error as Error).stack?.split('\n').find(line => line.includes(basename(file)))
  const line = place?.match(/:(\d+)(?::\d+)?\)?$/)?.[1]
  return line ? `${basename(file)}:${line}` : basename(file)
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
  return readText(file, await readFile(file, 'utf8'))
}
