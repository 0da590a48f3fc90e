import { definePlugin, systemUse } from '@svc/core'
import { Chat, Checks, Conversations, Modes, Providers, Selection, Tools } from '@svc/core/contracts'
import { createChat } from './chat.ts'
import { createCounts, createProvidersCheck } from './providers-check.ts'
import { CHAT_CONFIG } from './settings.ts'

export default definePlugin({
  section: 'chat',
  config: CHAT_CONFIG,
  requires: { conversations: Conversations, selection: Selection, providers: Providers, tools: Tools, modes: Modes },
  provides: Chat,
  setup(scope, given) {
    const counts = createCounts()
    scope.add(Checks, 'providers', createProvidersCheck(given.providers, counts, scope.signal))
    return createChat({
      ...given,
      config: scope.config,
      hooks: scope.hooks,
      log: scope.log,
      counts,
      lasting: systemUse(scope.signal, 'chat'),
    })
  },
})
