import { definePlugin } from '@svc/core'
import { Chat, Http, Routes } from '@svc/core/contracts'
import { createRunRoute } from './route.ts'

/** AG-UI for frontends such as CopilotKit: each profile is an agent, whose run is a turn of chat that is not stored. */
export default definePlugin({
  requires: { chat: Chat, http: Http },
  setup(scope, services) {
    scope.add(Routes, 'agui_run', createRunRoute(services))
  },
})
