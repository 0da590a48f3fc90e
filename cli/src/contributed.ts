import { existsSync, readFileSync, statSync } from 'node:fs'
import { createRequire, findPackageJSON } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { Manifest, PluginEntry } from '@svc/core'
import { COMMANDS_MODULE, commandsOf } from '@svc/core/config'
import type { CommandFacts } from './command-manifest.ts'
import { DEFAULTS, EMBEDDED_STORE, POSTGRES_STORE, selectorOf, WITH_COMMANDS } from './curated.ts'
import { OURS, placed } from './plugin-places.ts'
import { type CommandPlace, here } from './command-place.ts'
import { findSettings } from './settings.ts'
import { COMPLETION, isOwn, MANAGER, reservedFor } from './summaries.ts'

/** The commands of one plugin, from its package.json. No code of the plugin has run. */
export interface CommandSource {
  readonly plugin: string
  readonly version: string
  readonly folder: string
  /** The ids, with `:` between the words. */
  readonly ids: readonly string[]
  /** Help texts of the topics. */
  readonly topics: Readonly<Record<string, string>>
  /** Path of the module that exports the classes. */
  readonly target: string
  readonly entry: PluginEntry
  /** Permissions of its process; absent if it runs in the process of svc. */
  readonly permissions?: NonNullable<Manifest['permissions']>
  /** The setting that selects the plugin. Its commands are only in help and completion until then. */
  readonly selector?: string
  /** The facts from the build or installation of the plugin, if any. */
  readonly facts: () => CommandFacts | undefined
}

/**
 * Returns the commands of the configured plugins, from their manifests. Skips plugins that cannot be read; `svc config check`
 * reports them. Reads package.json directly, so that help does not load the kernel.
 */
export async function commandSources(config?: string, place: CommandPlace = here()): Promise<CommandSource[]> {
  const { plugins } = await findSettings(config === undefined ? {} : { config }, place)
  const manager = managerSources()
  const taken = new Set<string>(manager.flatMap(managerSource => managerSource.ids))
  const entries = placed(plugins, place.home).filter(mayHaveCommands)
  const others = entries.flatMap(entry => {
    const source = sourceOf(entry, id => mayTake(entry, id) && !taken.has(id))
    for (const id of source?.ids ?? []) taken.add(id)
    return source ?? []
  })
  return [...manager, ...others, ...unselectedSources(entries, taken)]
}

/** Who looks for a way from the embedded store to PostgreSQL finds its commands in help. */
function unselectedSources(entries: readonly PluginEntry[], taken: ReadonlySet<string>): CommandSource[] {
  const selector = selectorOf(POSTGRES_STORE)
  if (selector === undefined || !entries.some(({ use, from }) => from === OURS && use === EMBEDDED_STORE)) return []
  const source = sourceOf({ use: POSTGRES_STORE, from: OURS }, id => !taken.has(id))
  return source ? [Object.assign(source, { topics: {}, selector })] : []
}

/** The plugin is a part of svc. Its commands work also with a configuration that does not load it. */
const managerSources = (): CommandSource[] => [sourceOf({ use: MANAGER, from: OURS }) ?? []].flat()

const CURATED: ReadonlySet<unknown> = new Set(DEFAULTS.plugins as readonly string[])

/** A reserved word is only for the plugin that came with svc, not for another plugin of that name. */
function mayTake({ use, from }: PluginEntry, id: string): boolean {
  const owner = reservedFor(id.split(':'))
  return owner === undefined || (from === OURS && use === owner)
}

/** Finds a plugin that comes with svc, is not loaded, and has this command, or this topic if no known command has it. */
export function curatedOwner([first = '', second = '']: readonly string[], known: readonly string[]): string | undefined {
  const isTopic = !known.some(id => id.startsWith(`${first}:`))
  const isMeant = (id: string) => id === first || id === `${first}:${second}` || (isTopic && id.startsWith(`${first}:`))
  return WITH_COMMANDS.find(use => sourceOf({ use, from: OURS })?.ids.some(id => !known.includes(id) && isMeant(id)))
}

const mayHaveCommands = ({ use, from }: PluginEntry) =>
  from !== OURS || !CURATED.has(use) || WITH_COMMANDS.includes(use as string)

/**
 * Returns the commands that a command line can mean. Help, completion and the version read only the configuration file that the
 * command line names.
 */
export async function sourcesFor(argv: readonly string[], file?: string): Promise<CommandSource[]> {
  const isCompletion = argv[0] === COMPLETION
  if (argv[0] === '--version') return []
  if (isOwn(argv) && !isCompletion) return reservedFor(argv) === MANAGER ? managerSources() : []
  return commandSources(file, { ...here(), onlyNamed: isHelp(argv) || isCompletion })
}

const isHelp = (argv: readonly string[]) => argv.length === 0 || argv.slice(0, [...argv, '--'].indexOf('--')).includes('--help')

interface PackageJson {
  readonly name?: string
  readonly version?: string
  readonly description?: string
  readonly exports?: unknown
  readonly svc?: Pick<Manifest, 'contributes' | 'topics' | 'permissions'>
}

function sourceOf(entry: PluginEntry, mayHave?: (id: string) => boolean): CommandSource | undefined {
  const file = manifestOf(entry)
  return file === undefined ? undefined : sourceIn(dirname(file), entry, mayHave)
}

/** Loading and installation reject all other ids. */
const ID = /^[A-Za-z0-9][\w-]*(:[A-Za-z0-9][\w-]*)*$/

/** Returns the commands of the plugin in a folder that pass `mayHave`; undefined if there are none or their module does not exist. */
export function sourceIn(
  folder: string,
  entry: PluginEntry,
  mayHave: (id: string) => boolean = () => true
): CommandSource | undefined {
  const file = join(folder, 'package.json')
  const pkg = readJson<PackageJson>(file)
  const ids = commandsOf(pkg?.svc ?? {})
    .map(words => words.replaceAll(' ', ':'))
    .filter(id => ID.test(id) && mayHave(id))
  if (ids.length === 0) return undefined
  let found: string | undefined
  const target = () => (found ??= targetOf(file, pkg!))
  // those that come with svc have one, and help is faster without a look at each
  if (entry.from !== OURS && target() === undefined) return undefined
  const { name = '', version = '0.0.0', description = '', svc = {} } = pkg!
  const topics = new Set(ids.flatMap(id => (id.includes(':') ? [id.slice(0, id.indexOf(':'))] : [])))
  return {
    plugin: name,
    version,
    folder,
    ids,
    topics: Object.fromEntries([...topics].map(topic => [topic, svc.topics?.[topic] ?? description])),
    get target() {
      return target() ?? join(folder, COMMANDS_MODULE)
    },
    entry,
    ...(entry.isolation === 'process' ? { permissions: entry.permissions ?? svc.permissions ?? {} } : {}),
    facts: () => (entry.commands as CommandFacts | undefined) ?? builtFacts(name, target()),
  }
}

/** Resolves through the `exports` of the package, so one manifest serves sources and `dist`. */
function targetOf(file: string, { name = '' }: PackageJson): string | undefined {
  try {
    return createRequire(file).resolve(join(name, COMMANDS_MODULE))
  } catch {
    // svc config check reports this
    return undefined
  }
}

/** The facts that the build of a plugin of svc wrote. */
const builtFacts = (name: string, target = '') =>
  name.startsWith('@svc/') && target.endsWith('.js') ? readJson<CommandFacts>(join(dirname(target), 'commands.json')) : undefined

function manifestOf({ use, from }: PluginEntry): string | undefined {
  if (typeof use !== 'string' && !(use instanceof URL)) return undefined
  const name = String(use)
  const near = [...(from === undefined ? [] : [from.startsWith('file:') ? from : pathToFileURL(from).href]), OURS]
  if (!/^(\.{0,2}\/|file:)/.test(name)) return firstOf(near, place => findPackageJSON(name, place))
  const folder = fileURLToPath(new URL(name, near[0]))
  return existsSync(folder) && statSync(folder).isDirectory() ? join(folder, 'package.json') : undefined
}

function firstOf(places: readonly string[], find: (place: string) => string | undefined): string | undefined {
  for (const place of places) {
    try {
      const found = find(place)
      if (found !== undefined) return found
    } catch {
      continue
    }
  }
  return undefined
}

function readJson<T>(file: string): T | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as T
  } catch {
    return undefined
  }
}
