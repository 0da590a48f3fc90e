import { withClosedQuery } from '@svc/api-types'
import type { Events, Log } from '@svc/core'
import type { Jobs, Route } from '@svc/core/contracts'
import { type Publish, publishChange } from '@svc/plugin-kit'
import { createJobRoutes } from './routes/jobs.ts'

export interface RouteOptions {
  readonly events: Events
  readonly log: Log
  readonly jobs?: Jobs | undefined
}

/** The routes of the management API by name. */
export function createRoutes({ events, log, jobs }: RouteOptions): Record<string, Route> {
  const publish: Publish = (change, ctx) => publishChange(events, log, change, ctx)
  const routes = {
    ...(jobs ? createJobRoutes(jobs, publish) : {}),
  }
  return Object.fromEntries(Object.entries(routes).map(([name, route]) => [name, withClosedQuery(route)]))
}
