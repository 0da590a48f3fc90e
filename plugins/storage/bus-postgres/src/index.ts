import { definePlugin, Host, systemContext } from '@svc/core'
import { NodeBus, PeerAnswers, Peers, Postgres, Store } from '@svc/core/contracts'
import { busOnJoin } from '@svc/storage-kit/bus'

/** After the http plugin has drained. */
const AFTER_SERVING = 900
const LEAVE_MS = 5_000

/** The bus of the workers of a cluster, in the database of the store. */
export default definePlugin({
  requires: { postgres: Postgres, store: Store, host: Host, answers: PeerAnswers },
  provides: NodeBus,
  async setup(scope, { postgres, store, host, answers }) {
    const { hooks, log } = scope
    const lasting = systemContext(scope.signal, 'bus-postgres')
    const { worker, nodeId, clusterId } = await host.report(lasting)
    const { service, exited } = busOnJoin(worker, async () => {
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
    scope.tap(Peers.hooks.workerExit, ({ worker: other }, ctx) => exited(other, ctx))
    scope.tap(Host.hooks.closing, () => service.leave(systemContext(AbortSignal.timeout(LEAVE_MS), 'bus-postgres')), {
      stage: AFTER_SERVING,
    })
    return service
  },
})
