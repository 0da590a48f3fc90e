import type { LookupAddress, LookupOptions } from 'node:dns'
import { isIP } from 'node:net'
import { Agent, buildConnector, type Dispatcher, ProxyAgent } from 'undici'
import type { AddressGuard } from './addresses.ts'
import { addressForbidden } from './errors.ts'
import type { GuardedResolve } from './resolve.ts'

export { request } from 'undici'

/** What the connections of a guarded fetch are made of. */
export interface ConnectorOptions {
  readonly guard: AddressGuard
  /** Answers only what may be reached. */
  readonly resolve: GuardedResolve
  readonly connectMs: number
  readonly connections: number
  readonly keepAliveMs: number
  readonly headerBytes: number
  readonly ca: string | undefined
}

type Found = (error: Error | null, address: string | LookupAddress[], family?: number) => void

/** Connections that go where the guard looked: the socket is given the very addresses that were checked, while Host and the name of TLS stay what they were. */
export function createAgent({ guard, resolve, ...options }: ConnectorOptions): Dispatcher {
  const { SVC_EGRESS: uri } = process.env
  // Set in the process of an isolated plugin: the host's proxy is its only way out, finds the names and looks at the addresses itself.
  if (uri !== undefined) return new ProxyAgent({ uri, ...poolOf(options), ...trust(options), proxyTunnel: true })
  const connectorTo = (port: number) =>
    buildConnector({
      allowH2: false,
      timeout: options.connectMs,
      lookup: lookupWith(resolve, port),
      maxCachedSessions: 0,
      ...(options.ca !== undefined && { ca: options.ca }),
    } as buildConnector.BuildOptions)
  return new Agent({
    connect(target, done) {
      const { hostname } = target
      const port = Number(target.port) || (target.protocol === 'https:' ? 443 : 80)
      // an address needs no lookup
      if (isIP(hostname) !== 0 && !guard.permits(hostname, hostname, port)) done(addressForbidden(hostname), null)
      else connectorTo(port)(target, done)
    },
    ...poolOf(options),
  })
}

type Pool = Pick<ConnectorOptions, 'connections' | 'keepAliveMs' | 'headerBytes'>

const poolOf = ({ connections, keepAliveMs, headerBytes }: Pool) => ({
  allowH2: false,
  connections,
  pipelining: keepAliveMs > 0 ? 1 : 0,
  keepAliveTimeout: Math.max(keepAliveMs, 1),
  keepAliveMaxTimeout: Math.max(keepAliveMs, 1),
  maxHeaderSize: headerBytes,
})

const trust = ({ ca }: Pick<ConnectorOptions, 'ca'>) => (ca === undefined ? {} : { requestTls: { ca } })

const lookupWith = (resolve: GuardedResolve, port: number) => (host: string, options: LookupOptions, found: Found) => {
  resolve(host, port).then(
    addresses => {
      const all = addresses.map(address => ({ address, family: isIP(address) }))
      if (options.all) found(null, all)
      else found(null, all[0]!.address, all[0]!.family)
    },
    (error: Error) => found(error, [])
  )
}
