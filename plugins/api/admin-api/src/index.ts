import { definePlugin, Events } from '@svc/core'
import {
  Configuration,
  Jobs,
  PluginSet,
  ProfileFile,
  Routes,
  Schedules,
  Secrets,
  ServerControl,
  Store,
  StoreAdmin,
  Tokens,
} from '@svc/core/contracts'
import { createRoutes } from './routes.ts'

/** The management API. The routes of a service are missing without it. */
export default definePlugin({
  requires: { events: Events },
  optional: {
    configuration: Configuration,
    control: ServerControl,
    jobs: Jobs,
    pluginSet: PluginSet,
    profiles: ProfileFile,
    schedules: Schedules,
    secrets: Secrets,
    store: Store,
    storeAdmin: StoreAdmin,
    tokens: Tokens,
  },
  setup(scope, services) {
    const routes = createRoutes({ ...services, log: scope.log })
    for (const [name, route] of Object.entries(routes)) scope.add(Routes, name, route)
  },
})
