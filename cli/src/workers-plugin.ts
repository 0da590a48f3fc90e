import { definePlugin, Host, type SlotView, type CallContext, withTimeout, type SvcError, svcError } from '@svc/core'
import {
  type KeptCertificate,
  type Listener,
  type WorkerMetrics,
  type Json,
  Listeners,
  type PeerAnswer,
  PeerAnswers,
  Peers,
  Store,
} from '@svc/core/contracts'
import type { WorkerLink } from '@svc/runtime'

/** Before the http plugin listens: a serving worker has received all messages. */
const BEFORE_SERVING = 900
/** After the http plugin has drained: these metrics are the last. */
const AFTER_SERVING = 1_000
const JOIN_MS = 30_000
const PROBE_MS = 5_000

/** The service `Peers` of a worker of `svc serve`, over its connection to the supervisor, and the supervisor as listener. */
export const workersPlugin = (link: Pick<WorkerLink, 'peers' | 'listen' | 'keep' | 'kept'>, workers: number) =>
  definePlugin({
    requires: { answers: PeerAnswers },
    optional: { store: Store },
    provides: Peers,
    setup(scope, { answers, store }) {
      const { hooks, log } = scope
      const { peers: line } = link
      const release = (holder: string, ctx: CallContext) =>
        store
          ?.releaseHolder(holder, ctx)
          .catch((err: unknown) =>
            log.warn({ err, holder }, 'failed to release the leases of an exited worker; they expire on their own')
          )
      const join = () =>
        line.join({
          message: (message, ctx) => hooks.message(message, ctx),
          metrics: ctx => hooks.metrics({}, ctx),
          inherit: (metrics, ctx) => hooks.inherit(metrics as WorkerMetrics, ctx),
          reclaim: (name, ctx) => hooks.reclaim({ name }, ctx),
          answer: (topic, message, ctx) => answerOf(answers, topic).answer(message as Json, ctx),
          async workerExit(worker, ctx) {
            const holder = `${worker}/`
            await release(holder, ctx)
            await hooks.workerExit({ worker, holder }, ctx)
          },
        })
      const ready = async (ctx: CallContext) => {
        if (workers > 1 && store) await checkShared(store, workers, ctx)
        await join()
        return undefined
      }
      scope.add(Listeners, 'supervisor', listenerOf(link))
      scope.tap(Host.hooks.ready, (_, ctx) => ready(ctx), { stage: BEFORE_SERVING, limitMs: JOIN_MS })
      scope.tap(Host.hooks.closing, () => line.leave(), { stage: AFTER_SERVING })
      return {
        async broadcast(topic, message, ctx) {
          await hooks.message({ topic, message }, ctx)
          await line.broadcast({ topic, message }, ctx)
        },
        metrics: async ctx => (await line.metrics(ctx)) as readonly WorkerMetrics[],
        acquire: (name, limit, ctx) => line.acquire(name, limit, ctx),
        release: (name, ctx) => line.release(name, ctx),
        self: () => line.self(),
        ask: (worker, topic, message, ctx) => line.ask(worker, topic, message, ctx) as AsyncIterable<Json>,
      }
    },
  })

/** The name of the certificate in the memory of the supervisor. */
const CERTIFICATE = 'certificate'

/** The supervisor listens, and keeps the last valid certificate for the successors of this worker. */
const listenerOf = ({ listen, keep, kept }: Pick<WorkerLink, 'listen' | 'keep' | 'kept'>): Listener => ({
  listen,
  keepCertificate: certificate => keep(CERTIFICATE, certificate),
  keptCertificate: async () => (await kept(CERTIFICATE)) as KeptCertificate | undefined,
})

function answerOf(answers: SlotView<PeerAnswer>, topic: string): PeerAnswer {
  const answer = answers.get(topic)
  if (!answer) throw peerSilent(topic)
  return answer
}

/** Throws MEMORY_NOT_SHARED. Ignores errors of the store, which its health check reports. */
async function checkShared(store: Store, workers: number, ctx: CallContext): Promise<void> {
  const probed = await withTimeout(PROBE_MS, signal => store.probe({ ...ctx, signal }), ctx).catch(() => undefined)
  if (probed?.shared === false) throw memoryNotShared(probed.kind, workers)
}

/** Each worker would have its own conversations, tokens and counts. */
const memoryNotShared = (kind: string, workers: number): SvcError =>
  svcError(
    'MEMORY_NOT_SHARED',
    `${workers} workers cannot share a store of the kind "${kind}": each would have its own conversations`,
    {
      details: { kind, workers },
      hint: 'Use a store that processes share, such as @svc/plugin-store-sqlite, or set server.workers to 1',
    }
  )

const peerSilent = (topic: string): SvcError =>
  svcError('PEER_SILENT', `this worker has no handler for the topic "${topic}"`, {
    details: { topic },
    hint: 'Run `svc reload`: the worker that sent the request has a different set of plugins',
  })
