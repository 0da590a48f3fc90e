import { existsSync, readFileSync, statSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { PluginEntry } from '@svc/core'
import { findSettings, here, type Place, pluginPlaces } from './settings.ts'
import { isOwn } from './summaries.ts'

/** A command that a plugin's manifest names. Nothing of the plugin has run. */
export interface Contributed {
  /** With `:` between its words. */
  readonly id: string
  readonly summary: string
  readonly plugin: string
  /** URL of its module. */
  readonly module: string
}

/**
 * The commands of the configured plugins, as their manifests have them. A plugin that cannot be found or read adds none: `svc config check` says why.
 * Reads package.json by hand, because help must not wait for the kernel to load.
 */
export async function contributedCommands(place: Place = here()): Promise<Contributed[]> {
  const plugins = await findSettings({}, place).then(
    config => config.plugins,
    () => []
  )
  const all = plugins.flatMap(entry => commandsOf(entry, pluginPlaces(place.home)))
  return all.filter((one, at) => !isOwn(one.id.split(':')[0] ?? '') && all.findIndex(other => other.id === one.id) === at)
}

interface PackageJson {
  readonly name?: string
  readonly svc?: {
    readonly contributes?: {
      readonly commands?: Readonly<Record<string, { readonly summary?: unknown; readonly module?: unknown } | null>>
    }
  }
}

function commandsOf(entry: PluginEntry, places: readonly string[]): Contributed[] {
  const file = manifestOf(entry, places)
  const pkg = file === undefined ? undefined : readPackage(file)
  if (file === undefined || pkg === undefined) return []
  const plugin = pkg.name ?? ''
  return Object.entries(pkg.svc?.contributes?.commands ?? {}).flatMap(([name, command]) => {
    if (typeof command?.summary !== 'string' || typeof command.module !== 'string') return []
    const module = pathToFileURL(join(dirname(file), command.module)).href
    return [
      {
        id: name
          .trim()
          .split(/[\s:]+/)
          .join(':'),
        summary: command.summary,
        plugin,
        module,
      },
    ]
  })
}

function manifestOf({ use, from }: PluginEntry, places: readonly string[]): string | undefined {
  if (typeof use !== 'string' && !(use instanceof URL)) return undefined
  const name = String(use)
  const near = [...(from === undefined ? [] : [from.startsWith('file:') ? from : pathToFileURL(from).href]), ...places]
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
