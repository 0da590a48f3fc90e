import { definePlugin, systemContext } from '@svc/core'
import { Chat, Checks, Conversations, ModelAliases, Modes, Peers, Providers, Selection, Tools } from '@svc/core/contracts'
import { createChat } from './chat.ts'
import { createProviderCounts, createProvidersCheck } from './providers-check.ts'
import { createQuestions } from './questions.ts'
import { CHAT_CONFIG } from './settings.ts'

export default definePlugin({
  section: 'chat',
  config: CHAT_CONFIG,
  requires: {
    conversations: Conversations,
    selection: Selection,
    providers: Providers,
    tools: Tools,
    modes: Modes,
    aliases: ModelAliases,
  },
  optional: { peers: Peers },
  provides: Chat,
  setup(scope, { peers, ...given }) {
    const counts = createProviderCounts(peers)
    scope.tap(Peers.hooks.metrics, counts.own)
    scope.tap(Peers.hooks.inherit, counts.inherit)
    const questions = createQuestions(peers)
    scope.tap(Peers.hooks.message, questions.onPeerMessage)
    scope.add(Checks, 'providers', createProvidersCheck(given.providers, counts, scope.log, scope.signal))
    return createChat({
      ...given,
      config: scope.config,
      hooks: scope.hooks,
      log: scope.log,
      counts,
      questions,
      lasting: systemContext(scope.signal, 'chat'),
    })
  },
})
