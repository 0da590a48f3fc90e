import { definePlugin, Host, systemContext } from '@svc/core'
import { NodeBus, PeerAnswers, Peers, Store } from '@svc/core/contracts'
import { busOnJoin } from '@svc/storage-kit/bus'

export default definePlugin({
  requires: { store: Store, host: Host, answers: PeerAnswers },
  provides: NodeBus,
  async setup(scope, { store, host, answers }) {
    const { hooks, log } = scope
    const lasting = systemContext(scope.signal, 'bus-store')
    const { worker, nodeId } = await host.report(lasting)
    const { service, exited } = busOnJoin(scope, worker, async () => {
      // Loaded only on servers of a cluster.
      const [{ StoreBus }, { SPACE }, { openSpace }] = await Promise.all([
        import('./bus.ts'),
        import('./space.ts'),
        import('@svc/storage-kit'),
      ])
      await openSpace(store, SPACE, {}, lasting)
      return new StoreBus({ store, self: worker, node: nodeId, answers, hooks, log, lasting })
    })
    scope.tap(Peers.hooks.workerExit, exited)
    return service
  },
})
