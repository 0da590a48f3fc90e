import { definePlugin, Host, type SlotView, type Use, within, type SvcError, svcError } from '@svc/core'
import {
  type Figures,
  type Json,
  Listeners,
  type PeerAnswer,
  PeerAnswers,
  Peers,
  type PeerMessage,
  Store,
} from '@svc/core/contracts'
import type { WorkerLink } from '@svc/runtime'

/** Before the http plugin listens: who serves has taken all news. */
const BEFORE_SERVING = 900
/** After the http plugin has drained: these figures are the last. */
const AFTER_SERVING = 1_000
const JOIN_MS = 30_000
const PROBE_MS = 5_000

/** The service `Peers` of a worker of `svc serve`, over its line to the supervisor; and the listener that the supervisor is. */
export const workersPlugin = ({ peers: line, listen }: Pick<WorkerLink, 'peers' | 'listen'>, serverId: string, workers: number) =>
  definePlugin({
    requires: { answers: PeerAnswers },
    optional: { store: Store },
    provides: Peers,
    setup(scope, { answers, store }) {
      const { hooks, log } = scope
      const release = (holder: string, use: Use) =>
        store
          ?.releaseHolder(holder, use)
          .catch((err: unknown) => log.warn({ err, holder }, 'its leases are free only when they run out'))
      const join = () =>
        line.join({
          told: (news, use) => hooks.told(news as PeerMessage, use),
          figures: use => hooks.figures({}, use),
          inherit: (figures, use) => hooks.inherit(figures as Figures, use),
          wanted: (name, use) => hooks.wanted({ name }, use),
          answer: (topic, message, use) => answerOf(answers, topic).answer(message as Json, use),
          async gone(pid, use) {
            const holder = `${serverId}/${pid}/`
            await release(holder, use)
            await hooks.gone({ holder }, use)
          },
        })
      const ready = async (use: Use) => {
        if (workers > 1 && store) await checkShared(store, workers, use)
        await join()
        return undefined
      }
      scope.add(Listeners, 'supervisor', { listen })
      scope.tap(Host.hooks.ready, (_, use) => ready(use), { stage: BEFORE_SERVING, limitMs: JOIN_MS })
      scope.tap(Host.hooks.closing, () => line.leave(), { stage: AFTER_SERVING })
      return {
        async tell(topic, message, use) {
          await hooks.told({ topic, message }, use)
          await line.tell({ topic, message }, use)
        },
        figures: async use => (await line.figures(use)) as readonly Figures[],
        enter: (name, limit, use) => line.enter(name, limit, use),
        leave: (name, use) => line.vacate(name, use),
        self: () => line.self(),
        ask: (worker, topic, message, use) => line.ask(worker, topic, message, use) as AsyncIterable<Json>,
      }
    },
  })

function answerOf(answers: SlotView<PeerAnswer>, topic: string): PeerAnswer {
  const answer = answers.get(topic)
  if (!answer) throw peerSilent(topic)
  return answer
}

/** Throws MEMORY_NOT_SHARED. A store that is in trouble just now says nothing of this, and its health check says that. */
async function checkShared(store: Store, workers: number, use: Use): Promise<void> {
  const probed = await within(PROBE_MS, signal => store.probe({ ...use, signal }), use).catch(() => undefined)
  if (probed?.shared === false) throw memoryNotShared(probed.kind, workers)
}

/** Each worker would have conversations, tokens and counts of its own. */
const memoryNotShared = (kind: string, workers: number): SvcError =>
  svcError(
    'MEMORY_NOT_SHARED',
    `${workers} workers cannot share a store of the kind "${kind}": each would have conversations of its own`,
    {
      details: { kind, workers },
      hint: 'take a store that processes share, such as @svc/plugin-store-sqlite, or set server.workers to 1',
    }
  )

const peerSilent = (topic: string): SvcError =>
  svcError('PEER_SILENT', `this worker answers to no topic "${topic}"`, {
    details: { topic },
    hint: 'it has another set of plugins than the worker that asked: svc reload brings up both anew',
  })
