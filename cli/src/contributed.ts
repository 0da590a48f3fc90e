import { existsSync, readFileSync, statSync } from 'node:fs'
import { createRequire, findPackageJSON } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { PluginEntry } from '@svc/core'
import { OURS, placed } from './plugin-places.ts'
import { findSettings, here, type Place } from './settings.ts'
import { isOwn } from './summaries.ts'

/** A command that a plugin's manifest names. Nothing of the plugin has run. */
export interface Contributed {
  /** With `:` between its words. */
  readonly id: string
  readonly summary: string
  readonly plugin: string
  /** URL of its module. */
  readonly module: string
  /** What stands after its name, for help. */
  readonly usage?: string
  /** What it does and what its flags mean, for help. */
  readonly description?: string
  /** Command lines without the leading `svc`. */
  readonly examples?: readonly string[]
}

/**
 * The commands of the configured plugins, as their manifests have them. A plugin that cannot be found or read adds none: `svc config check` says why.
 * Reads package.json by hand, because help must not wait for the kernel to load.
 */
export async function contributedCommands(config?: string, place: Place = here()): Promise<Contributed[]> {
  const { plugins } = await findSettings(config === undefined ? {} : { config }, place)
  // the command of a plugin that runs behind a wall would be imported on this side of it
  const inside = plugins.filter(entry => entry.isolation !== 'process')
  const all = placed(inside, place.home).flatMap(commandsOf)
  return all.filter((one, at) => !isOwn(one.id.split(':')) && all.findIndex(other => other.id === one.id) === at)
}

/**
 * The commands of plugins that a command line may mean. Help and the version read no configuration but a file that is named: they have the commands of what
 * came with svc, what is installed, and what that file adds.
 */
export async function commandsFor(argv: readonly string[], file?: string): Promise<Contributed[]> {
  if (isOwn(argv) || argv[0] === '--version') return []
  return contributedCommands(file, { ...here(), onlyNamed: isHelp(argv) })
}

const isHelp = (argv: readonly string[]) => argv.length === 0 || argv.slice(0, [...argv, '--'].indexOf('--')).includes('--help')

/** The topics that commands of plugins make: the line of one names its commands, that of a single command is its own. */
export function contributedTopics(all: readonly Contributed[]): Record<string, { readonly description: string }> {
  const topics = Object.groupBy(
    all.filter(({ id }) => id.includes(':')),
    ({ id }) => id.slice(0, id.indexOf(':'))
  )
  return Object.fromEntries(
    Object.entries(topics).map(([topic, those = []]) => [topic, { description: topicLine(topic, those) }])
  )
}

function topicLine(topic: string, those: readonly Contributed[]): string {
  if (those.length === 1) return those[0]!.summary
  return `Commands: ${those.map(({ id }) => id.slice(topic.length + 1).replaceAll(':', ' ')).join(', ')}`
}

interface PackageJson {
  readonly name?: string
  readonly exports?: unknown
  readonly svc?: {
    readonly contributes?: {
      readonly commands?: Readonly<
        Record<
          string,
          {
            readonly summary?: unknown
            readonly module?: unknown
            readonly usage?: unknown
            readonly description?: unknown
            readonly examples?: unknown
          } | null
        >
      >
    }
  }
}

function commandsOf(entry: PluginEntry): Contributed[] {
  const file = manifestOf(entry)
  const pkg = file === undefined ? undefined : readPackage(file)
  if (file === undefined || pkg === undefined) return []
  const plugin = pkg.name ?? ''
  return Object.entries(pkg.svc?.contributes?.commands ?? {}).flatMap(([name, command]) => {
    if (typeof command?.summary !== 'string' || typeof command.module !== 'string') return []
    return [
      {
        id: name
          .trim()
          .split(/[\s:]+/)
          .join(':'),
        summary: command.summary,
        plugin,
        module: pathToFileURL(moduleOf(file, pkg, command.module)).href,
        ...(typeof command.usage === 'string' ? { usage: command.usage } : {}),
        ...(typeof command.description === 'string' ? { description: command.description } : {}),
        ...(Array.isArray(command.examples) ? { examples: command.examples.map(String) } : {}),
      },
    ]
  })
}

/** By the package's `exports` where they name it, so that one manifest serves sources and `dist`. */
function moduleOf(file: string, { name, exports }: PackageJson, module: string): string {
  const exported = typeof exports === 'object' && exports !== null && Object.hasOwn(exports, module)
  if (!exported || name === undefined) return join(dirname(file), module)
  try {
    return createRequire(file).resolve(join(name, module))
  } catch {
    return join(dirname(file), module) // says which file is missing when it runs
  }
}

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

function readPackage(file: string): PackageJson | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as PackageJson
  } catch {
    return undefined
  }
}
