import { definePlugin, Events, Host } from '@svc/core'
import {
  Chat,
  Checks,
  Configuration,
  Jobs,
  McpClients,
  ModelAliases,
  ModelCalls,
  ModelHealth,
  Modes,
  PluginSet,
  Prices,
  ProfileFile,
  Providers,
  Routes,
  Schedules,
  Secrets,
  Selection,
  ServerControl,
  Store,
  StoreAdmin,
  Teams,
  Tokens,
  Tools,
  WorkflowNodes,
  Workflows,
} from '@svc/core/contracts'
import { createRoutes } from './routes.ts'

/** Stage of the hook `closing`: open streams end before the server waits for open requests. */
const LEAVING = -100

/** The management API. The routes of a service are missing without it. */
export default definePlugin({
  requires: {
    events: Events,
    tools: Tools,
    modes: Modes,
    providers: Providers,
    aliases: ModelAliases,
    checks: Checks,
    nodes: WorkflowNodes,
  },
  optional: {
    chat: Chat,
    clients: McpClients,
    configuration: Configuration,
    control: ServerControl,
    health: ModelHealth,
    jobs: Jobs,
    modelCalls: ModelCalls,
    pluginSet: PluginSet,
    prices: Prices,
    profiles: ProfileFile,
    schedules: Schedules,
    secrets: Secrets,
    selection: Selection,
    store: Store,
    storeAdmin: StoreAdmin,
    teams: Teams,
    tokens: Tokens,
    workflows: Workflows,
  },
  setup(scope, services) {
    const leaving = new AbortController()
    const routes = createRoutes({ ...services, log: scope.log, leaving: leaving.signal })
    for (const [name, route] of Object.entries(routes)) scope.add(Routes, name, route)
    scope.tap(Host.hooks.closing, () => leaving.abort(), { stage: LEAVING })
  },
})
