import { withClosedQuery } from '@svc/api-types'
import type { Events, Log } from '@svc/core'
import type { Jobs, PluginSet, Route } from '@svc/core/contracts'
import { type Publish, publishChange } from '@svc/plugin-kit'
import { createJobRoutes } from './routes/jobs.ts'
import { createPluginRoutes } from './routes/plugins.ts'

export interface RouteOptions {
  readonly events: Events
  readonly log: Log
  readonly jobs?: Jobs | undefined
  readonly pluginSet?: PluginSet | undefined
}

/** The routes of the management API by name. */
export function createRoutes({ events, log, jobs, pluginSet }: RouteOptions): Record<string, Route> {
  const publish: Publish = (change, ctx) => publishChange(events, log, change, ctx)
  const routes = {
    ...(jobs ? createJobRoutes(jobs, publish) : {}),
    ...(pluginSet ? createPluginRoutes(pluginSet, publish) : {}),
  }
  return Object.fromEntries(Object.entries(routes).map(([name, route]) => [name, withClosedQuery(route)]))
}
