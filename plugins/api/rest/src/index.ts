import { definePlugin, Host } from '@svc/core'
import {
  AuthSchemes,
  Chat,
  Checks,
  Conversations,
  HealthFacts,
  Http,
  Modes,
  Cluster,
  NodeBus,
  Providers,
  Recommend,
  Routes,
  Selection,
  Store,
  Tools,
  TurnStreams,
  Workflows,
} from '@svc/core/contracts'
import { createRoutes, LEAVING } from './routes.ts'
import { REST_CONFIG } from './settings.ts'

export default definePlugin({
  section: 'rest',
  config: REST_CONFIG,
  requires: {
    host: Host,
    http: Http,
    chat: Chat,
    turnStreams: TurnStreams,
    conversations: Conversations,
    selection: Selection,
    modes: Modes,
    providers: Providers,
    tools: Tools,
    checks: Checks,
    facts: HealthFacts,
    routes: Routes,
    schemes: AuthSchemes,
  },
  optional: { store: Store, bus: NodeBus, cluster: Cluster, workflows: Workflows, recommend: Recommend },
  setup(scope, given) {
    const { routes, leave } = createRoutes({ ...given, chatBodyLimit: scope.config.chat_body_limit, log: scope.log })
    for (const [name, route] of Object.entries(routes)) scope.add(Routes, name, route)
    scope.tap(Host.hooks.closing, leave, { stage: LEAVING })
  },
})

export type { RestConfig } from './settings.ts'
