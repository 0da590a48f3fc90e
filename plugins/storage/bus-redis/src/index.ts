import { definePlugin, Host, systemContext } from '@svc/core'
import { NodeBus, PeerAnswers, Peers, Redis, Store } from '@svc/core/contracts'
import { busOnJoin } from '@svc/storage-kit/bus'

/** The bus of the workers of a cluster, in Redis. */
export default definePlugin({
  requires: { redis: Redis, store: Store, host: Host, answers: PeerAnswers },
  provides: NodeBus,
  async setup(scope, { redis, store, host, answers }) {
    const { hooks, log } = scope
    const lasting = systemContext(scope.signal, 'bus-redis')
    const { worker, nodeId } = await host.report(lasting)
    const { service, exited } = busOnJoin(scope, worker, async () => {
      const { openBus } = await import('./bus.ts')
      return openBus({ plugin: scope.name, redis, store, self: worker, node: nodeId, answers, hooks, log, lasting })
    })
    scope.tap(Peers.hooks.workerExit, exited)
    return service
  },
})
