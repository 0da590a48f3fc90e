import type { Config, ConfigTree } from '@svc/core'
import { get } from '@svc/core/config'
import { flagsLayer, join, type ServeOptions } from './serve-flags.ts'

/** What serves something else than tools. */
const OTHERS = ['@svc/plugin-rest', '@svc/plugin-docs-page']
const HOST = '127.0.0.1'
const PORT = 8081

/** The flags of `svc mcp serve` as a layer of configuration: the HTTP server listens where the tool server is to, and serves its paths alone. */
export function toolServerLayer(options: ServeOptions, { value }: Config): ConfigTree {
  const told = (key: string) => get(value, ['mcp', 'server', key])
  return join(flagsLayer(options), {
    server: { host: told('host') ?? HOST, port: options.port ?? told('port') ?? PORT },
    mcp: { server: { enabled: true } },
    plugins: OTHERS.map(use => ({ use, enabled: false })),
  })
}
