import { definePlugin, Host, systemContext } from '@svc/core'
import { NodeBus, PeerAnswers, Peers, Redis, Store } from '@svc/core/contracts'
import { busOnJoin } from '@svc/storage-kit/bus'

/** After the http plugin has drained. */
const AFTER_SERVING = 900
const LEAVE_MS = 5_000

/** The bus of the workers of a cluster, in Redis. */
export default definePlugin({
  requires: { redis: Redis, store: Store, host: Host, answers: PeerAnswers },
  provides: NodeBus,
  async setup(scope, { redis, store, host, answers }) {
    const { hooks, log } = scope
    const lasting = systemContext(scope.signal, 'bus-redis')
    const { worker, nodeId } = await host.report(lasting)
    const { service, exited } = busOnJoin(worker, async () => {
      const { openBus } = await import('./bus.ts')
      return openBus({ plugin: scope.name, redis, store, self: worker, node: nodeId, answers, hooks, log, lasting })
    })
    scope.tap(Peers.hooks.workerExit, ({ worker: other }, ctx) => exited(other, ctx))
    scope.tap(Host.hooks.closing, () => service.leave(systemContext(AbortSignal.timeout(LEAVE_MS), 'bus-redis')), {
      stage: AFTER_SERVING,
    })
    return service
  },
})
