import { definePlugin, Events, Host, systemContext } from '@svc/core'
import { Chat, Conversations, ModelCalls, Modes, PeerAnswers, Peers, Selection, Tools, TurnStreams } from '@svc/core/contracts'
import { createChat } from './chat.ts'
import { createQuestions } from './questions.ts'
import { CHAT_CONFIG } from './settings.ts'
import { createTurnStreams, TOPIC } from './turn-streams.ts'

/** The HTTP server waits for its requests at stage 0: afterwards only turns without a reader are left. */
const AFTER_REQUESTS = 100

export default definePlugin({
  section: 'chat',
  config: CHAT_CONFIG,
  requires: {
    host: Host,
    events: Events,
    conversations: Conversations,
    selection: Selection,
    modelCalls: ModelCalls,
    tools: Tools,
    modes: Modes,
  },
  optional: { peers: Peers },
  provides: Chat,
  alsoProvides: [TurnStreams],
  async setup(scope, { host, peers, ...given }) {
    const { config, hooks, log, span } = scope
    const lasting = systemContext(scope.signal, 'chat')
    const questions = createQuestions(peers)
    scope.tap(Peers.hooks.message, questions.onPeerMessage)
    const chat = createChat({ ...given, config, hooks, log, span, questions, lasting })
    const { worker } = await host.report(lasting)
    const { streams, answer, drain } = createTurnStreams({ chat, peers, worker, resumeMs: config.resume_s * 1000 })
    scope.add(PeerAnswers, TOPIC, answer)
    scope.tap(Host.hooks.closing, drain, { stage: AFTER_REQUESTS, limitMs: Number.POSITIVE_INFINITY })
    return { ...chat, ...streams }
  },
})
