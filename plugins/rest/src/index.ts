import { definePlugin, Host } from '@svc/core'
import { AuthSchemes, Chat, Checks, Conversations, Http, Modes, Providers, Routes, Selection, Tools } from '@svc/core/contracts'
import { createChatRoutes } from './routes/chat.ts'
import { createConfigRoutes } from './routes/config.ts'
import { createConversationRoutes } from './routes/conversations.ts'
import { createDiscoveryRoutes } from './routes/discovery.ts'
import { createHealthRoutes } from './routes/health.ts'
import { createOpenApiRoutes } from './routes/openapi.ts'
import { createStatusRoutes } from './routes/status.ts'

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
    routes: Routes,
    schemes: AuthSchemes,
  },
  setup(scope, given) {
    const routes = {
      ...createChatRoutes(given),
      ...createConversationRoutes(given),
      ...createConfigRoutes(given),
      ...createDiscoveryRoutes(given),
      ...createHealthRoutes(given),
      ...createStatusRoutes(given),
      ...createOpenApiRoutes(given),
    }
    for (const [name, route] of Object.entries(routes)) scope.add(Routes, name, route)
  },
})
