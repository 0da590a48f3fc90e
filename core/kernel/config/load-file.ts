import { constants, existsSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { basename, extname } from 'node:path'
import { pathToFileURL } from 'node:url'
import { codeOf, messageOf } from '../src/errors.ts'
import { isTree, type Layer } from './config.ts'
import { configForeign, configNotTrusted, configUnreadable } from './errors.ts'
import { shownPath } from './home.ts'
import { withHostPackages } from './host-packages.ts'
import { CODE, withImports } from './imported.ts'
import { parseText } from './lines.ts'
import { configCode, foreignReason, isTrusted, reasonOf } from './trust.ts'

/** Formats a path for people. */
export type ShowPath = (file: string) => string

/** Checks of a file before it is read: none for a file that the user named, more for one that was found. */
export interface FileChecks {
  /** No other user can have written it. */
  readonly owned: boolean
  /** The svc home in which the user must have allowed the code. */
  readonly allowedIn?: string
}

/** For a file that the user named, as with `--config`. */
export const UNCHECKED: FileChecks = { owned: false }

const FORMS = ['.ts', '.mts', '.js', '.mjs', '.json', '.yaml', '.yml']

/** Reads a configuration file. Throws CONFIG_UNREADABLE, CONFIG_FOREIGN, CONFIG_NOT_TRUSTED. */
export async function loadFile(file: string, show: ShowPath, conditions: FileChecks): Promise<Layer> {
  if (!existsSync(file)) throw configUnreadable('the file does not exist', show(file))
  if (!FORMS.includes(extname(file))) throw configUnreadable(`the file must end in ${FORMS.join(', ')}`, show(file))
  if (!statSync(file).isFile()) throw configUnreadable('the path is not a file', show(file))
  const isCode = CODE.test(file)
  if (conditions.owned) refuseForeign(isCode ? [file, ...withImports(file)] : [file], show)
  if (!isCode) return textLayer(file, await textOf(file, show, conditions), show(file))
  if (conditions.allowedIn !== undefined && !isTrusted(conditions.allowedIn, configCode(file))) throw configNotTrusted(show(file))
  return moduleLayer(file, show(file))
}

function refuseForeign(files: readonly string[], show: ShowPath) {
  for (const file of files) {
    const reason = foreignReason(file)
    if (reason !== undefined) throw configForeign(reason, show(file))
  }
}

/** Checks and reads the same open file, even if another file takes its name meanwhile. */
async function textOf(file: string, show: ShowPath, { owned }: FileChecks): Promise<string> {
  await using handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK)
  const stats = await handle.stat()
  const reason = owned ? reasonOf(stats, 'it') : undefined
  if (reason !== undefined) throw configForeign(reason, show(file))
  if (!stats.isFile()) throw configUnreadable('the path is not a file', show(file))
  return await handle.readFile('utf8')
}

/** cosmiconfig's loaders read the value; the parser with lines locates each key. */
async function textLayer(file: string, content: string, name: string): Promise<Layer> {
  const lines = parseText(content)
  const [error] = lines.errors
  if (error) throw configUnreadable(error.message, `${name}:${error.line}`)
  // An empty file is a configuration without keys.
  const value = lines.value === null || lines.value === undefined ? {} : await parse(file, content, name)
  return layerOf(file, name, value, keys => lines.line(keys))
}

/**
 * Parses with the loaders that cosmiconfig exports. Its explorer (search, cache) cannot enforce the rules for configuration
 * that was found:
 * - Its constructor reads a "meta configuration" (`.config/config.*`, `package.json`) in the working directory and executes it
 *   when it is code. No option prevents that. Only an empty working directory would, but `process.chdir` affects every thread
 *   and every open call with a relative path, and fails in worker threads. The kernel also runs in programs of others.
 * - It follows `$import` in a file to other, unchecked files, code included. A file that was checked by name can be another
 *   file when it is read.
 * - It takes the first file of a folder where two are an error, does not stop at the root of a repository or of a file system,
 *   and its cache keeps outdated content.
 */
async function parse(file: string, content: string, name: string): Promise<unknown> {
  const { defaultLoaders } = await import('cosmiconfig')
  const loader = defaultLoaders[extname(file) === '.json' && isStrictJson(content) ? '.json' : '.yaml']
  try {
    return loader(file, content) as unknown
  } catch (error) {
    throw configUnreadable(messageOf(error).replace(/^YAML Error in [^\n]*:\n/, ''), name)
  }
}

/** Comments and trailing commas are YAML; JSON files have always accepted them. */
function isStrictJson(content: string): boolean {
  try {
    JSON.parse(content)
    return true
  } catch {
    return false
  }
}

async function moduleLayer(file: string, name: string): Promise<Layer> {
  try {
    // The module cache would return the first version for ever.
    const url = `${pathToFileURL(file).href}?v=${versionOf(file)}`
    const module = (await withHostPackages(() => import(url))) as { default?: unknown }
    return layerOf(file, name, module.default)
  } catch (error) {
    if (codeOf(error)?.startsWith('CONFIG_')) throw error
    throw configUnreadable(messageOf(error), whereInStack(error, file, name))
  }
}

const versionOf = (file: string) => `${statSync(file).mtimeMs}-${statSync(file).size}`

/**
 * Reads a text as `readConfigFile` reads a file of this name, without a file: with the same parser, so that both find the same
 * values. Throws CONFIG_UNREADABLE.
 */
export async function readConfigText(name: string, content: string): Promise<Layer> {
  try {
    return await textLayer(name, content, name)
  } catch (error) {
    // such as aliases that would expand to a huge value
    throw codeOf(error) === 'CONFIG_UNREADABLE' ? error : configUnreadable(messageOf(error), name)
  }
}

function layerOf(file: string, name: string, value: unknown, line?: Layer['line']): Layer {
  if (!isTree(value)) throw configUnreadable('the file must contain (or export as default) a configuration object', name)
  // Editors find the schema of the file by this key.
  const { $schema: _schema, ...keys } = value
  return { name, file, value: keys, ...(line ? { line } : {}) }
}

function whereInStack(error: unknown, file: string, name: string): string {
  const place = (error as Error).stack?.split('\n').find(line => line.includes(basename(file)))
  const line = place?.match(/:(\d+)(?::\d+)?\)?$/)?.[1]
  return line ? `${name}:${line}` : name
}

/**
 * Reads a text file of the project with the line of each key, for other files that people write (profiles). Throws
 * CONFIG_UNREADABLE.
 */
export async function readConfigFile(file: string): Promise<Layer> {
  return textLayer(file, await textOf(file, shownPath, UNCHECKED), shownPath(file))
}
