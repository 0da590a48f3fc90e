import { definePlugin, Events, Host, systemContext } from '@svc/core'
import {
  Chat,
  Conversations,
  ModelCalls,
  Modes,
  PeerAnswers,
  Peers,
  Selection,
  Store,
  Tools,
  TurnStreams,
} from '@svc/core/contracts'
import { createTurnRunner } from './chat.ts'
import { createChat } from './interrupted-turns.ts'
import { createQuestions } from './questions.ts'
import { CHAT_CONFIG } from './settings.ts'
import { createTitles } from './titles.ts'
import { createTurnStreams, TOPIC } from './turn-streams.ts'
import { openWaitingTurns } from './waiting-turns.ts'

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
  optional: { peers: Peers, store: Store },
  provides: Chat,
  alsoProvides: [TurnStreams],
  async setup(scope, { host, peers, store, ...given }) {
    const { config, hooks, log, span } = scope
    const lasting = systemContext(scope.signal, 'chat')
    const { worker } = await host.report(lasting)
    const questions = createQuestions(peers, given.events)
    scope.tap(Peers.hooks.message, questions.onPeerMessage)

    // a host that runs alone has no other worker that could continue its turns
    const kept = { holder: `${worker}/chat/`, keepMs: peers ? config.interrupted_keep_s * 1000 : 0, log, lasting }
    const waiting = store && kept.keepMs > 0 ? scope.use(await openWaitingTurns({ ...kept, store })) : undefined
    if (waiting) scope.tap(Conversations.hooks.deleted, waiting.onDeleted)

    const titles = createTitles({ ...given, config: config.titles, log, lasting })
    const runner = createTurnRunner({ ...given, config, hooks, log, span, questions, waiting, titles, lasting })
    const turns = createTurnStreams({ chat: runner, peers, worker, resumeMs: config.resume_s * 1000 })
    scope.tap(Peers.hooks.message, turns.onPeerMessage)
    scope.add(PeerAnswers, TOPIC, turns.answer)
    scope.tap(Host.hooks.closing, turns.drain, { stage: AFTER_REQUESTS, limitMs: Number.POSITIVE_INFINITY })
    return createChat({ questions, waiting, runner, turns, conversations: given.conversations })
  },
})
