import { definePlugin, Host, systemContext } from '@svc/core'
import { NodeBus, PeerAnswers, Peers, Store } from '@svc/core/contracts'
import { busOnJoin } from '@svc/storage-kit/bus'

/** After the http plugin has drained. */
const AFTER_SERVING = 900
const LEAVE_MS = 5_000

export default definePlugin({
  requires: { store: Store, host: Host, answers: PeerAnswers },
  provides: NodeBus,
  async setup(scope, { store, host, answers }) {
    const { hooks, log } = scope
    const lasting = systemContext(scope.signal, 'bus-store')
    const { worker, nodeId } = await host.report(lasting)
    const { service, exited } = busOnJoin(worker, async () => {
      // Loaded only on servers of a cluster.
      const [{ StoreBus }, { SPACE }, { openSpace }] = await Promise.all([
        import('./bus.ts'),
        import('./space.ts'),
        import('@svc/storage-kit'),
      ])
      await openSpace(store, SPACE, {}, lasting)
      return new StoreBus({ store, self: worker, node: nodeId, answers, hooks, log, lasting })
    })
    scope.tap(Peers.hooks.workerExit, ({ worker: other }, ctx) => exited(other, ctx))
    scope.tap(Host.hooks.closing, () => service.leave(systemContext(AbortSignal.timeout(LEAVE_MS), 'bus-store')), {
      stage: AFTER_SERVING,
    })
    return service
  },
})
