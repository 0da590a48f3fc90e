import { definePlugin, Host } from '@svc/core'
import { Routes } from '@svc/core/contracts'
import { createRoutes } from './routes.ts'
import { OPTIONAL, REQUIRED } from './services.ts'

/** Stage of the hook `closing`: open streams end before the server waits for open requests. */
const LEAVING = -100

/** The management API. The routes of a service are missing without it. */
export default definePlugin({
  requires: REQUIRED,
  optional: OPTIONAL,
  setup(scope, services) {
    const leaving = new AbortController()
    const routes = createRoutes({ ...services, log: scope.log, leaving: leaving.signal })
    for (const [name, route] of Object.entries(routes)) scope.add(Routes, name, route)
    scope.tap(Host.hooks.closing, () => leaving.abort(), { stage: LEAVING })
  },
})
