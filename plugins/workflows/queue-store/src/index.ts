import { definePlugin, Host, systemContext } from '@svc/core'
import { Peers, RunQueue, Store } from '@svc/core/contracts'
import { openSpace } from '@svc/storage-kit'
import { RUN_SPACE } from '@svc/storage-kit/run-leases'
import { StoreQueue } from '@svc/storage-kit/store-queue'

export default definePlugin({
  requires: { store: Store, host: Host },
  provides: RunQueue,
  async setup(scope, { store, host }) {
    const lasting = systemContext(scope.signal, 'queue-store')
    const { worker, nodeId } = await host.report(lasting)
    await openSpace(store, RUN_SPACE, {}, lasting)
    const queue = new StoreQueue({ store, holder: `${worker}/runs/`, node: nodeId, lasting })
    scope.tap(Peers.hooks.workerExit, ({ holder }) => queue.gone(holder, lasting))
    return queue
  },
})
