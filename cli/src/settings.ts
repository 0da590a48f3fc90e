import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Config, ConfigTree, PluginEntry } from '@svc/core'
import { findConfig, svcHome, get } from '@svc/core/config'
import type { Lock } from '@svc/plugin-manager/installed'
import { LOCK_LAYER } from './plugin-places.ts'
import { DEFAULTS } from './curated.ts'
import { flagsLayer, join as merged, type ServeOptions } from './serve-flags.ts'

/** What a command knows before it reads any configuration. */
export interface Place {
  readonly home: string
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
  /** What is taken for installed, in place of what is. */
  readonly installed?: Lock
  /** No file is read but the one that the user named. */
  readonly onlyNamed?: boolean
}

/** Where this process stands. */
export const here = (): Place => ({ home: svcHome(), cwd: process.cwd(), env: process.env })

/** Finds the configuration that `svc serve` with these options runs with; `more` is laid over it. Throws CONFIG_UNREADABLE. */
export async function findSettings(options: ServeOptions = {}, place: Place = here(), more: ConfigTree = {}): Promise<Config> {
  const { home, cwd, env, onlyNamed } = place
  const rest = {
    ...(onlyNamed ? { onlyNamed } : {}),
    ...(typeof options.config === 'string' ? { file: options.config } : {}),
    ...(await installedIn(place, options)),
  }
  const find = (flags: ConfigTree) => findConfig({ home, cwd, env, ...rest, flags, defaults: DEFAULTS })
  const own = await find(merged(flagsLayer(options), more))
  const config = options.surface === 'mcp' ? await find(toolServerLayer(options, own)) : own
  // what the user names is taken as it is
  if (typeof options.config === 'string' || !config.plugins.some(one => isLocal(one))) return config
  const { foreignPlugins } = await import('./plugin-paths.ts')
  return { ...config, problems: [...config.problems, ...foreignPlugins(config, home)] }
}

/** A plugin in a folder or file, not a package: only those are looked at. */
const isLocal = ({ use }: PluginEntry) => typeof use === 'string' && /^(\.{0,2}\/|\.{1,2}$|file:)/.test(use)

/** Where the lock and the installed plugins lie: the svc home; of a curated build, the build (`SVC_PLUGINS`). */
export const setHome = ({ home, env }: Pick<Place, 'home' | 'env'> = here()): string =>
  env.SVC_PLUGINS ? resolve(env.SVC_PLUGINS) : home

/** What a person installed; a start where nothing is pays for one look. */
async function installedIn(place: Place, { linked }: ServeOptions) {
  const home = setHome(place)
  // who writes a plugin tries it alone: it may be installed itself, in the form it had
  if (linked !== undefined) return {}
  if (place.installed === undefined && !existsSync(join(home, LOCK_LAYER))) return {}
  const { readInstalled } = await import('./installed.ts')
  return { installed: await readInstalled(home, place.installed) }
}

const used = (config: Config) => config.layers.filter(layer => layer.name !== 'defaults' && Object.keys(layer.value).length > 0)

/** What a configuration came from besides the defaults, as a person finds it. */
export const sourceNames = (config: Config): string[] => used(config).map(layer => layer.name)

/** The files and layers that a configuration came from, besides the defaults. */
export const sourcesOf = (config: Config): string[] => used(config).map(layer => layer.file ?? layer.name)

/** What serves something else than tools. */
const OTHERS = ['@svc/plugin-rest', '@svc/plugin-docs-page']
const HOST = '127.0.0.1'
const PORT = 8081

/** The flags of `svc mcp serve` as a layer of configuration: the HTTP server listens where the tool server is to, and serves its paths alone. */
function toolServerLayer(options: ServeOptions, { value }: Config): ConfigTree {
  const told = (key: string) => get(value, ['mcp', 'server', key])
  return merged(flagsLayer(options), {
    server: { host: told('host') ?? HOST, port: options.port ?? told('port') ?? PORT },
    mcp: { server: { enabled: true } },
    plugins: OTHERS.map(use => ({ use, enabled: false })),
  })
}
