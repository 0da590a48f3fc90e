import { type CallContext, definePlugin, Events, Host, type Log, systemContext } from '@svc/core'
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
import { openSpace } from '@svc/storage-kit'
import { createTurnRunner } from './chat.ts'
import { createInterruptedTurns } from './interrupted-turns.ts'
import { createQuestions } from './questions.ts'
import { CHAT_CONFIG } from './settings.ts'
import { createTurnStreams, TOPIC } from './turn-streams.ts'
import { createWaitingTurns, SPACE, type WaitingTurns } from './waiting-turns.ts'

/** The HTTP server waits for its requests at stage 0: afterwards only turns without a reader are left. */
const AFTER_REQUESTS = 100
const SWEEP_MS = 3_600_000

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
    const questions = createQuestions(peers)
    scope.tap(Peers.hooks.message, questions.onPeerMessage)

    // a host that runs alone has no other worker that could continue its turns
    const keepMs = peers ? config.interrupted_keep_s * 1000 : 0
    const waiting =
      store && keepMs > 0 ? await openWaiting({ store, holder: `${worker}/chat/`, keepMs, log, lasting }) : undefined
    if (waiting) {
      scope.tap(Conversations.hooks.deleted, ({ conversationId }) => waiting.drop(conversationId, lasting))
      const sweeping = sweep(waiting, log, lasting)
      scope.tap(Host.hooks.ready, sweeping)
      const timer = setInterval(sweeping, SWEEP_MS).unref()
      scope.defer(async () => clearInterval(timer))
    }

    const runner = createTurnRunner({ ...given, config, hooks, log, span, questions, waiting, lasting })
    const turns = createTurnStreams({ chat: runner, peers, worker, resumeMs: config.resume_s * 1000 })
    scope.tap(Peers.hooks.message, turns.onPeerMessage)
    scope.add(PeerAnswers, TOPIC, turns.answer)
    scope.tap(Host.hooks.closing, turns.drain, { stage: AFTER_REQUESTS, limitMs: Number.POSITIVE_INFINITY })
    const { streams, interrupted } = turns
    const { conversations } = given
    const { stream, reply, callTool } = runner
    return {
      ...{ stream, reply, callTool },
      ...streams,
      ...createInterruptedTurns({ questions, waiting, runner, streams, interrupted, conversations }),
    }
  },
})

async function openWaiting(options: Parameters<typeof createWaitingTurns>[0]): Promise<WaitingTurns> {
  await openSpace(options.store, SPACE, {}, options.lasting)
  return createWaitingTurns(options)
}

/** Removes expired turns. An expired turn that is still stored cannot be answered. */
const sweep = (waiting: WaitingTurns, log: Log, lasting: CallContext) => async (): Promise<undefined> => {
  await waiting.sweep(lasting).catch((err: unknown) => log.warn({ err }, 'failed to remove expired turns'))
}
