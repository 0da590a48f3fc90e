import { definePlugin, Events } from '@svc/core'
import { Chat, Jobs, McpClients, Modes, Routes, Selection, Tools } from '@svc/core/contracts'
import { createRoutes } from './routes.ts'

/** The management API. The routes of a service are missing without it. */
export default definePlugin({
  requires: { events: Events, tools: Tools, modes: Modes },
  optional: { jobs: Jobs, chat: Chat, selection: Selection, clients: McpClients },
  setup(scope, services) {
    const routes = createRoutes({ ...services, log: scope.log })
    for (const [name, route] of Object.entries(routes)) scope.add(Routes, name, route)
  },
})
