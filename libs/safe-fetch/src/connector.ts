import type { LookupAddress, LookupOptions } from 'node:dns'
import { isIP } from 'node:net'
import { Agent, buildConnector, type Dispatcher, ProxyAgent } from 'undici'
import type { AddressGuard } from './addresses.ts'
import { addressForbidden } from './errors.ts'
import type { GuardedResolve } from './resolve.ts'

export { request } from 'undici'

/** Options of the connections of a guarded fetch. */
export interface ConnectorOptions {
  readonly guard: AddressGuard
  /** Resolves to permitted addresses only. */
  readonly resolve: GuardedResolve
  readonly connectMs: number
  readonly connections: number
  readonly keepAliveMs: number
  readonly headerBytes: number
  readonly ca: string | undefined
}

type LookupCallback = (error: Error | null, address: string | LookupAddress[], family?: number) => void

/** Creates connections to exactly the addresses that the guard has checked. `Host` and the server name of TLS do not change. */
export function createAgent({ guard, resolve, ...options }: ConnectorOptions): Dispatcher {
  const { SVC_EGRESS: uri } = process.env
  // set in the process of an isolated plugin: the host's proxy is the only way out, and it resolves names and checks addresses itself
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

const lookupWith = (resolve: GuardedResolve, port: number) => (host: string, options: LookupOptions, found: LookupCallback) => {
  resolve(host, port).then(
    addresses => {
      const all = addresses.map(address => ({ address, family: isIP(address) }))
      if (options.all) found(null, all)
      else found(null, all[0]!.address, all[0]!.family)
    },
    (error: Error) => found(error, [])
  )
}
