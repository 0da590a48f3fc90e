import type { ConfigFor, ConfigTree } from '@svc/core'
import type { CuratedModules } from './curated.ts'
import type { DocumentedConfig } from './reserved.ts'

/**
 * Types a `svc.config.ts` for the plugins that come with svc, and for the modules in `M`. Returns its argument: `export default
 * defineConfig<[typeof import('svc-plugin-weather')]>({ server: { port: 9000 }, plugins: ['svc-plugin-weather'] })`
 */
export function defineConfig<M extends readonly unknown[] = []>(
  config: ConfigFor<[...CuratedModules, ...M]> & DocumentedConfig
): ConfigTree {
  return config as ConfigTree
}
