import { definePlugin, Host, systemContext } from '@svc/core'
import { NodeBus, PeerAnswers, Peers, Postgres, Store } from '@svc/core/contracts'
import { busOnJoin } from '@svc/storage-kit/bus'

/** The bus of the workers of a cluster, in the database of the store. */
export default definePlugin({
  requires: { postgres: Postgres, store: Store, host: Host, answers: PeerAnswers },
  provides: NodeBus,
  async setup(scope, { postgres, store, host, answers }) {
    const { hooks, log } = scope
    const lasting = systemContext(scope.signal, 'bus-postgres')
    const { worker, nodeId, clusterId } = await host.report(lasting)
    const { service, exited } = busOnJoin(scope, worker, async () => {
      const { openBus } = await import('./bus.ts')
      return openBus({
        plugin: scope.name,
        postgres,
        store,
        self: worker,
        node: nodeId,
        cluster: clusterId,
        answers,
        hooks,
        log,
        lasting,
      })
    })
    scope.tap(Peers.hooks.workerExit, exited)
    return service
  },
})
