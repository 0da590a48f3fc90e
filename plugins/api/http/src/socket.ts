import type { Server as PlainServer } from 'node:http'
import type { Server as TlsServer } from 'node:https'
import type { Log } from '@svc/core'
import { type Certificate, readCertificate, watchCertificate } from './certificate.ts'
import type { ServerConfig } from './config.ts'

// An `import` of node:http reads all its names, WebSocket among them, and so loads undici: a tenth of a start.
const nodeHttp = process.getBuiltinModule('node:http')

/** Node's server, plain or TLS. It opens no port: connections come to it by `emit('connection', socket)`, as its documentation shows. */
export interface ServerSocket extends Disposable {
  readonly server: PlainServer | TlsServer
}

/** Makes Node's server with the limits of the configuration. Throws what is wrong with the certificate. Disposing ends the watch over its files. */
export async function createSocket(config: ServerConfig, log: Log): Promise<ServerSocket> {
  const { ssl } = config
  return ssl.enabled ? secure(config, await readCertificate(ssl), log) : plain(config)
}

const plain = (config: ServerConfig): ServerSocket => ({
  server: nodeHttp.createServer(optionsOf(config)),
  [Symbol.dispose]() {},
})

function secure(config: ServerConfig, first: Certificate, log: Log): ServerSocket {
  const { ssl } = config
  const tls = (one: Certificate) => ({ ...one, minVersion: 'TLSv1.2' as const })
  const server = process.getBuiltinModule('node:https').createServer({
    ...optionsOf(config),
    ...tls(first),
    ALPNProtocols: ['http/1.1'],
    handshakeTimeout: ssl.handshake_timeout_ms,
  })
  server.on('tlsClientError', err => log.debug({ err }, 'a TLS handshake failed'))
  const watching = watchCertificate({ ssl, first, log, take: next => server.setSecureContext(tls(next)) })
  return { server, [Symbol.dispose]: () => watching[Symbol.dispose]() }
}

const optionsOf = (config: ServerConfig) => ({
  maxHeaderSize: config.header_limit,
  headersTimeout: config.headers_timeout_ms,
  requestTimeout: config.request_timeout_ms,
  keepAliveTimeout: config.keep_alive_ms,
  connectionsCheckingInterval: Math.min(5_000, config.headers_timeout_ms),
  joinDuplicateHeaders: true, // else Node drops the second of two, and two that contradict each other look like one
  requireHostHeader: false, // the gate `host` asks for it: so the refusal is an error record
})
