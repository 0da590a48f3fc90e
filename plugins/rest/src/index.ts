import { definePlugin, Host } from '@svc/core'
import {
  AuthSchemes,
  Chat,
  Checks,
  Conversations,
  HealthFacts,
  Http,
  Modes,
  Providers,
  Routes,
  Selection,
  Tools,
} from '@svc/core/contracts'
import { createRoutes } from './routes.ts'

export default definePlugin({
  requires: {
    host: Host,
    http: Http,
    chat: Chat,
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
  setup(scope, given) {
    for (const [name, route] of Object.entries(createRoutes(given))) scope.add(Routes, name, route)
  },
})
