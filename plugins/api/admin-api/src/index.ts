import { definePlugin, Events, Host } from '@svc/core'
import {
  Chat,
  Checks,
  Jobs,
  McpClients,
  ModelAliases,
  ModelCalls,
  ModelHealth,
  Modes,
  Prices,
  Providers,
  Routes,
  Selection,
  Teams,
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
    jobs: Jobs,
    chat: Chat,
    selection: Selection,
    clients: McpClients,
    modelCalls: ModelCalls,
    prices: Prices,
    health: ModelHealth,
    teams: Teams,
    workflows: Workflows,
  },
  setup(scope, services) {
    const leaving = new AbortController()
    const routes = createRoutes({ ...services, log: scope.log, leaving: leaving.signal })
    for (const [name, route] of Object.entries(routes)) scope.add(Routes, name, route)
    scope.tap(Host.hooks.closing, () => leaving.abort(), { stage: LEAVING })
  },
})
