import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Config, HostOptions } from '@svc/core'
import { findConfig, svcHome } from '@svc/core/config'
import { DEFAULTS } from './curated.ts'
import { RESERVED } from './reserved.ts'
import { flagsLayer, type ServeOptions } from './serve-flags.ts'

/** What a command knows before it reads any configuration. */
export interface Place {
  readonly home: string
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
}

/** Where this process stands. */
export const here = (): Place => ({ home: svcHome(), cwd: process.cwd(), env: process.env })

/** Finds the configuration that `svc serve` with these options runs with. Throws CONFIG_UNREADABLE. */
export function findSettings(options: ServeOptions = {}, { home, cwd, env }: Place = here()): Promise<Config> {
  const file = typeof options.config === 'string' ? { file: options.config } : {}
  return findConfig({ home, cwd, env, ...file, flags: flagsLayer(options), defaults: DEFAULTS })
}

/** Where names of plugins are looked up that no file of configuration brings: what was installed into the home, then what came with svc. */
export const pluginPlaces = (home: string): string[] => [pathToFileURL(join(home, 'plugins', '/')).href, import.meta.url]

/** What every host of the command line is started with. */
export const hostOptions = (config: Config, home: string): HostOptions => ({
  config,
  from: pluginPlaces(home),
  reserved: RESERVED,
  version: version(),
})

/** The version of this package. */
function version(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}

/** The files and layers that a configuration came from, besides the defaults. */
export const sourcesOf = (config: Config): string[] =>
  config.layers
    .filter(layer => layer.name !== 'defaults' && Object.keys(layer.value).length > 0)
    .map(layer => layer.file ?? layer.name)
