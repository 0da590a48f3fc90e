import { definePlugin, Host } from '@svc/core'
import { AuthSchemes, Http, Mounts, Routes } from '@svc/core/contracts'
import { serverConfig } from './config.ts'
import { TIDY_MS } from './listener.ts'
import { createServer } from './server.ts'

/** After all others are ready, and no longer than its own limits allow. */
const LAST = 1_000

export default definePlugin({
  section: 'server',
  config: serverConfig,
  requires: { routes: Routes, mounts: Mounts, schemes: AuthSchemes },
  provides: Http,
  setup(scope, given) {
    const { config, hooks, log } = scope
    const server = createServer({ config, hooks, log, ...given })
    scope.tap(
      Host.hooks.ready,
      async () => {
        await server.listen()
        return undefined
      },
      { stage: LAST, limitMs: 30_000 }
    )
    scope.tap(Host.hooks.closing, ({ successor }) => server.drain(successor), {
      limitMs: config.shutdown_timeout * 1000 + 2 * TIDY_MS,
    })
    scope.defer(() => server.drain(false))
    return server.service
  },
})
