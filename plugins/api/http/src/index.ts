import { resolve } from 'node:path'
import { definePlugin, Host, systemContext } from '@svc/core'
import {
  AuthSchemes,
  Counts,
  ErrorFormats,
  Http,
  Limits,
  Listeners,
  Mounts,
  Peers,
  ProtectedPaths,
  Routes,
  Store,
} from '@svc/core/contracts'
import { createServer, serverProblems } from './server.ts'
import { serverConfig } from './config.ts'

/** The server opens after all other plugins are ready. */
const LAST = 1_000

export default definePlugin({
  section: 'server',
  config: serverConfig,
  check: serverProblems,
  requires: { host: Host, routes: Routes, mounts: Mounts, schemes: AuthSchemes, formats: ErrorFormats, listeners: Listeners },
  optional: { limits: Limits, peers: Peers, store: Store, counts: Counts },
  provides: Http,
  async setup(scope, given) {
    const { config, hooks, log, span } = scope
    const files = [config.ssl.cert, config.ssl.key].flatMap(file => (file === undefined ? [] : [resolve(file)]))
    if (files.length > 0) scope.add(ProtectedPaths, 'certificate', { paths: files, owner: 'the certificate of this server' })
    const server = await createServer({ config, hooks, span, log, lasting: systemContext(scope.signal, 'http'), ...given })
    scope.tap(
      Host.hooks.ready,
      async (_, callContext) => {
        await server.open(callContext)
        return undefined
      },
      { stage: LAST, limitMs: 30_000 }
    )
    // `drain` has its own timeout
    scope.tap(Host.hooks.closing, options => server.drain(options), { limitMs: Number.POSITIVE_INFINITY })
    scope.tap(Peers.hooks.metrics, server.metrics.own)
    scope.tap(Peers.hooks.inherit, server.metrics.inherit)
    scope.tap(Peers.hooks.reclaim, server.wanted)
    scope.tap(Peers.hooks.message, server.onPeerMessage)
    scope.defer(() => server.drain({ successor: false }))
    return server.service
  },
})
