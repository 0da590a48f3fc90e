import { definePlugin } from '@svc/core'
import { Chat, Http, NamedModels, Routes } from '@svc/core/contracts'
import { createRunRoute } from './route.ts'

/**
 * AG-UI for frontends such as CopilotKit: each profile is an agent, whose run is a turn of chat that is not stored. Teams and workflows
 * are agents by `NamedModels`.
 */
export default definePlugin({
  requires: { chat: Chat, http: Http },
  optional: { named: NamedModels },
  setup(scope, services) {
    scope.add(Routes, 'agui_run', createRunRoute(services))
  },
})
