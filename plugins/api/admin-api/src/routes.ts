import { withClosedQuery } from '@svc/api-types'
import type { Events, Host, Log } from '@svc/core'
import type {
  Configuration,
  Jobs,
  McpClients,
  Cluster,
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
import { createClusterRoutes } from './routes/cluster.ts'
import { createJobRoutes } from './routes/jobs.ts'
import { createMcpRoutes } from './routes/mcp.ts'
import { createPluginRoutes } from './routes/plugins.ts'
import { createProfileRoutes } from './routes/profiles.ts'
import { createProviderRoutes, type ProviderServices } from './routes/providers.ts'
import { createScheduleRoutes } from './routes/schedules.ts'
import { createSecretRoutes } from './routes/secrets.ts'
import { createServerRoutes } from './routes/server.ts'
import { createStoreRoutes } from './routes/store.ts'
import { createTeamRoutes, type TeamServices } from './routes/teams.ts'
import { createTokenRoutes } from './routes/tokens.ts'
import { createToolRoutes, type ToolServices } from './routes/tools.ts'
import { createWorkflowRoutes, type WorkflowServices } from './routes/workflows.ts'

export interface RouteOptions extends Partial<ToolServices & ProviderServices & TeamServices & WorkflowServices> {
  readonly events: Events
  readonly log: Log
  readonly host: Host
  readonly cluster?: Cluster | undefined
  readonly configuration?: Configuration | undefined
  readonly control?: ServerControl | undefined
  readonly jobs?: Jobs | undefined
  readonly clients?: McpClients | undefined
  readonly pluginSet?: PluginSet | undefined
  readonly profiles?: ProfileFile | undefined
  readonly schedules?: Schedules | undefined
  readonly secrets?: Secrets | undefined
  readonly store?: Store | undefined
  readonly storeAdmin?: StoreAdmin | undefined
  readonly tokens?: Tokens | undefined
}

/** The routes of the management API by name. */
export function createRoutes({ events, log, ...parts }: RouteOptions): Record<string, Route> {
  const publish: Publish = (change, ctx) => publishChange(events, log, change, ctx)
  const {
    configuration,
    control,
    clients,
    jobs,
    pluginSet,
    profiles,
    schedules,
    secrets,
    store,
    storeAdmin: admin,
    tokens,
  } = parts
  const routes = {
    ...createClusterRoutes(parts),
    ...(jobs ? createJobRoutes(jobs, publish) : {}),
    ...(pluginSet ? createPluginRoutes(pluginSet, publish) : {}),
    ...(profiles ? createProfileRoutes(profiles, publish) : {}),
    ...(schedules ? createScheduleRoutes(schedules, publish) : {}),
    ...(secrets ? createSecretRoutes(secrets, publish) : {}),
    ...createServerRoutes({ configuration, control }, publish),
    ...(store ? createStoreRoutes({ store, admin, jobs }, publish) : {}),
    ...(tokens ? createTokenRoutes(tokens) : {}),
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
