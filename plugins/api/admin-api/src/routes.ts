import { withClosedQuery } from '@svc/api-types'
import type { Events, Log } from '@svc/core'
import type { Jobs, McpClients, Route } from '@svc/core/contracts'
import { type Publish, publishChange } from '@svc/plugin-kit'
import { createJobRoutes } from './routes/jobs.ts'
import { createMcpRoutes } from './routes/mcp.ts'
import { createProviderRoutes, type ProviderServices } from './routes/providers.ts'
import { createTeamRoutes, type TeamServices } from './routes/teams.ts'
import { createToolRoutes, type ToolServices } from './routes/tools.ts'
import { createWorkflowRoutes, type WorkflowServices } from './routes/workflows.ts'

export interface RouteOptions extends Partial<ToolServices & ProviderServices & TeamServices & WorkflowServices> {
  readonly events: Events
  readonly log: Log
  readonly jobs?: Jobs | undefined
  readonly clients?: McpClients | undefined
}

/** The routes of the management API by name. */
export function createRoutes({ events, log, jobs, clients, ...parts }: RouteOptions): Record<string, Route> {
  const publish: Publish = (change, ctx) => publishChange(events, log, change, ctx)
  const routes = {
    ...(jobs ? createJobRoutes(jobs, publish) : {}),
    ...(clients && parts.leaving ? createMcpRoutes(clients, publish, parts.leaving) : {}),
    ...(has(parts, 'providers', 'aliases', 'checks', 'modelCalls', 'selection') ? createProviderRoutes(parts) : {}),
    ...(has(parts, 'workflows', 'nodes') ? createWorkflowRoutes(parts, publish) : {}),
    ...(has(parts, 'teams', 'workflows', 'leaving') ? createTeamRoutes(parts, publish) : {}),
    ...(has(parts, 'chat', 'tools', 'modes', 'selection') ? createToolRoutes(parts) : {}),
  }
  return Object.fromEntries(Object.entries(routes).map(([name, route]) => [name, withClosedQuery(route)]))
}

/** Whether these services are there. */
const has = <T extends object, K extends keyof T>(parts: T, ...names: readonly K[]): parts is T & Required<Pick<T, K>> =>
  names.every(name => parts[name] !== undefined)
