import { withClosedQuery } from '@svc/api-types'
import type { Events, Log } from '@svc/core'
import type {
  Configuration,
  Jobs,
  PluginSet,
  ProfileFile,
  Route,
  Schedules,
  Secrets,
  ServerControl,
  Store,
  StoreAdmin,
  Tokens,
} from '@svc/core/contracts'
import { type Publish, publishChange } from '@svc/plugin-kit'
import { createJobRoutes } from './routes/jobs.ts'
import { createPluginRoutes } from './routes/plugins.ts'
import { createProfileRoutes } from './routes/profiles.ts'
import { createScheduleRoutes } from './routes/schedules.ts'
import { createSecretRoutes } from './routes/secrets.ts'
import { createServerRoutes } from './routes/server.ts'
import { createStoreRoutes } from './routes/store.ts'
import { createTokenRoutes } from './routes/tokens.ts'

export interface RouteOptions {
  readonly events: Events
  readonly log: Log
  readonly configuration?: Configuration | undefined
  readonly control?: ServerControl | undefined
  readonly jobs?: Jobs | undefined
  readonly pluginSet?: PluginSet | undefined
  readonly profiles?: ProfileFile | undefined
  readonly schedules?: Schedules | undefined
  readonly secrets?: Secrets | undefined
  readonly store?: Store | undefined
  readonly storeAdmin?: StoreAdmin | undefined
  readonly tokens?: Tokens | undefined
}

/** The routes of the management API by name. */
export function createRoutes({ events, log, ...services }: RouteOptions): Record<string, Route> {
  const publish: Publish = (change, ctx) => publishChange(events, log, change, ctx)
  const { configuration, control, jobs, pluginSet, profiles, schedules, secrets, store, storeAdmin: admin, tokens } = services
  const routes = {
    ...(jobs ? createJobRoutes(jobs, publish) : {}),
    ...(pluginSet ? createPluginRoutes(pluginSet, publish) : {}),
    ...(profiles ? createProfileRoutes(profiles, publish) : {}),
    ...(schedules ? createScheduleRoutes(schedules, publish) : {}),
    ...(secrets ? createSecretRoutes(secrets, publish) : {}),
    ...createServerRoutes({ configuration, control }, publish),
    ...(store ? createStoreRoutes({ store, admin, jobs }, publish) : {}),
    ...(tokens ? createTokenRoutes(tokens) : {}),
  }
  return Object.fromEntries(Object.entries(routes).map(([name, route]) => [name, withClosedQuery(route)]))
}
