import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Config, ConfigTree, PluginEntry } from '@svc/core'
import { findConfig, get } from '@svc/core/config'
import { type CommandPlace, here, setHome } from './command-place.ts'
import { LOCK_LAYER, OURS, placed } from './plugin-places.ts'
import { DEFAULTS, selectedDefaults } from './curated.ts'
import { flagsLayer, join as merged, type ServeOptions } from './serve-flags.ts'

/**
 * Finds the configuration that `svc serve` with these options would run with; `more` overrides it. Throws CONFIG_UNREADABLE.
 */
export async function findSettings(
  options: ServeOptions = {},
  place: CommandPlace = here(),
  more: ConfigTree = {}
): Promise<Config> {
  const { home, cwd, env, onlyNamed } = place
  const rest = {
    ...(onlyNamed ? { onlyNamed } : {}),
    ...(typeof options.config === 'string' ? { file: options.config } : {}),
    ...(await installedIn(place, options)),
  }
  let defaults = DEFAULTS
  const find = (flags: ConfigTree) => findConfig({ home, cwd, env, ...rest, flags, defaults })
  let own = await find(merged(flagsLayer(options), more))
  const selected = selectedDefaults({
    storeUrl: get(own.value, ['store', 'url']),
    loaded: own.plugins.map(({ use }) => use).filter(use => typeof use === 'string'),
    redisUrl: get(own.value, ['redis', 'url']),
    redisUse: get(own.value, ['redis', 'use']),
  })
  if (selected) {
    defaults = selected
    own = await find(merged(flagsLayer(options), more))
  }
  const config = await withFlagProblems(options.surface === 'mcp' ? await find(toolServerLayer(options, own)) : own, options)
  // a file that the user names needs no check of its owner
  if (typeof options.config === 'string' || !config.plugins.some(plugin => isLocal(plugin))) return config
  const { foreignPlugins } = await import('@svc/runtime/plugin-paths')
  return { ...config, problems: [...config.problems, ...foreignPlugins(placed(config.plugins, home), OURS)] }
}

/** `--tools` restricts the MCP server. Without one, a user could believe that the API offers only these tools. */
async function withFlagProblems(config: Config, { tools }: ServeOptions): Promise<Config> {
  if (tools === undefined || get(config.value, ['mcp', 'server', 'enabled']) === true) return config
  // help needs this file, but not the kernel, which the errors load
  const { toolsUnserved } = await import('./errors.ts')
  return { ...config, problems: [...config.problems, toolsUnserved()] }
}

/** Only plugins in folders and files need the check, not packages. */
const isLocal = ({ use }: PluginEntry) => typeof use === 'string' && /^(\.{0,2}\/|\.{1,2}$|file:)/.test(use)

/** Reads the installed plugins. A start without installed plugins makes one file check. */
async function installedIn(place: CommandPlace, { linked }: ServeOptions) {
  const home = setHome(place)
  // `svc plugins dev` loads the plugin alone: an installed version of it would clash
  if (linked !== undefined) return {}
  if (place.installed === undefined && !existsSync(join(home, LOCK_LAYER))) return {}
  const { readInstalled } = await import('@svc/plugin-manager/installed')
  return { installed: await readInstalled(home, place.installed) }
}

const used = (config: Config) => config.layers.filter(layer => layer.name !== 'defaults' && Object.keys(layer.value).length > 0)

/** The sources of a configuration besides the defaults, for a person. */
export const sourceNames = (config: Config): string[] => used(config).map(layer => layer.name)

/** The files and layers of a configuration besides the defaults. */
export const sourcesOf = (config: Config): string[] => used(config).map(layer => layer.file ?? layer.name)

/** Plugins that serve more than tools. */
const OTHERS = ['@svc/plugin-rest', '@svc/plugin-docs-page']
const HOST = '127.0.0.1'
const PORT = 8081

/**
 * The flags of `svc mcp serve` as a layer of configuration: the HTTP server uses the address of the tool server and serves only
 * its paths.
 */
function toolServerLayer(options: ServeOptions, { value }: Config): ConfigTree {
  const configured = (key: string) => get(value, ['mcp', 'server', key])
  return merged(flagsLayer(options), {
    server: { host: configured('host') ?? HOST, port: options.port ?? configured('port') ?? PORT },
    mcp: { server: { enabled: true } },
    plugins: OTHERS.map(use => ({ use, enabled: false })),
  })
}
