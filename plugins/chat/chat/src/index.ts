import { definePlugin, Events, systemContext } from '@svc/core'
import { Chat, Conversations, ModelCalls, Modes, Peers, Selection, Tools } from '@svc/core/contracts'
import { createChat } from './chat.ts'
import { createQuestions } from './questions.ts'
import { CHAT_CONFIG } from './settings.ts'

export default definePlugin({
  section: 'chat',
  config: CHAT_CONFIG,
  requires: {
    events: Events,
    conversations: Conversations,
    selection: Selection,
    modelCalls: ModelCalls,
    tools: Tools,
    modes: Modes,
  },
  optional: { peers: Peers },
  provides: Chat,
  setup(scope, { peers, ...given }) {
    const questions = createQuestions(peers)
    scope.tap(Peers.hooks.message, questions.onPeerMessage)
    return createChat({
      ...given,
      config: scope.config,
      hooks: scope.hooks,
      log: scope.log,
      span: scope.span,
      questions,
      lasting: systemContext(scope.signal, 'chat'),
    })
  },
})
