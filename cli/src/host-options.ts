import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type AnySlot, type Config, get, type HostOptions, type PluginEntry } from '@svc/core'
import { usePrecompiled } from '@svc/core/config'
import * as contracts from '@svc/core/contracts'
import type { QuarantinedName } from '@svc/core/contracts'
import type { Program } from '@svc/runtime/plugin-paths'
import { setHome } from './command-place.ts'
import { isolateWith } from './isolate-with.ts'
import { RESERVED } from './reserved.ts'
import { LOCK_LAYER, OURS, PACKAGE_FOLDER, placed } from './plugin-places.ts'
import { RESERVED_WORDS } from './summaries.ts'

// the build writes it; a checkout has none
usePrecompiled(join(import.meta.dirname, 'validators.cjs'))

const isSlot = (value: object): value is AnySlot => 'what' in value && value.what === 'slot'

/** The slots of the contracts. A plugin can add to a slot that no loaded plugin reads. */
const SLOTS = Object.values(contracts)
  .filter(isSlot)
  .map(slot => slot.name)

/** The options of every host that the command line starts. */
export const hostOptions = (
  config: Config,
  home: string,
  excluded: readonly QuarantinedName[] = []
): HostOptions & { readonly config: Config } => ({
  config: { ...config, plugins: placed(config.plugins, home) },
  from: [OURS],
  reserved: RESERVED,
  slots: SLOTS,
  commands: RESERVED_WORDS,
  version: version(),
  isolate: isolateWith(config, excluded),
  ...(config.plugins.some(plugin => plugin.files !== undefined) ? { watchFiles: () => watchedFiles(config) } : {}),
  without: plugin => (isInstalled(config, plugin) ? `disable it: svc plugins disable ${plugin}` : undefined),
})

/** svc with a configuration, for what concerns its files. */
export const programOf = (config: Config, home: string): Program => ({
  folder: resolve(PACKAGE_FOLDER),
  from: OURS,
  config: { ...config, plugins: placed(config.plugins, home) },
  home,
  setHome: setHome({ home, env: process.env }),
  cwd: process.cwd(),
})

/** Reports only plugins whose files were intact at the start. */
async function watchedFiles({ plugins, problems }: Config) {
  const { watchFiles } = await import('@svc/plugin-manager/installed')
  const changed = watchFiles(plugins)
  const known = new Set(problems.map(problem => problem.plugin))
  return () => changed().filter(item => !known.has(item.plugin))
}

/** Nothing in a build can be disabled. */
function isInstalled({ layers }: Config, plugin: string): boolean {
  if (process.env.SVC_PLUGINS) return false
  const { plugins = [] } = layers.find(layer => layer.name === LOCK_LAYER)?.value ?? {}
  return (plugins as PluginEntry[]).some(item => item.name === plugin)
}

/** The version of this package. */
function version(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}

/** The number of workers of a server with this configuration. */
export const workersIn = (config: Config): number => Number(get(config.value, ['server', 'workers']) ?? 1)
