import { definePlugin, Events } from '@svc/core'
import { Jobs, Routes, Schedules, Secrets, Store, StoreAdmin, Tokens } from '@svc/core/contracts'
import { createRoutes } from './routes.ts'

/** The management API. The routes of a service are missing without it. */
export default definePlugin({
  requires: { events: Events },
  optional: { jobs: Jobs, schedules: Schedules, secrets: Secrets, store: Store, storeAdmin: StoreAdmin, tokens: Tokens },
  setup(scope, services) {
    const routes = createRoutes({ ...services, log: scope.log })
    for (const [name, route] of Object.entries(routes)) scope.add(Routes, name, route)
  },
})
