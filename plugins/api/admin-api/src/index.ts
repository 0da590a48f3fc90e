import { definePlugin, Events } from '@svc/core'
import { Jobs, PluginSet, Routes } from '@svc/core/contracts'
import { createRoutes } from './routes.ts'

/** The management API. The routes of a service are missing without it. */
export default definePlugin({
  requires: { events: Events },
  optional: { jobs: Jobs, pluginSet: PluginSet },
  setup(scope, services) {
    const routes = createRoutes({ ...services, log: scope.log })
    for (const [name, route] of Object.entries(routes)) scope.add(Routes, name, route)
  },
})
