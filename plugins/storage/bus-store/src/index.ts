import { definePlugin, Host, systemContext } from '@svc/core'
import { NodeBus, PeerAnswers, Peers, Store } from '@svc/core/contracts'
import { openSpace } from '@svc/storage-kit'
import { StoreBus } from './bus.ts'
import { SPACE } from './space.ts'

/** After the http plugin has drained. */
const AFTER_SERVING = 900
const LEAVE_MS = 5_000

export default definePlugin({
  requires: { store: Store, host: Host, answers: PeerAnswers },
  provides: NodeBus,
  async setup(scope, { store, host, answers }) {
    const lasting = systemContext(scope.signal, 'bus-store')
    const { worker, nodeId } = await host.report(lasting)
    await openSpace(store, SPACE, {}, lasting)
    const bus = new StoreBus({ store, self: worker, node: nodeId, answers, hooks: scope.hooks, log: scope.log, lasting })
    scope.tap(Peers.hooks.workerExit, ({ worker: exited }, ctx) => bus.exited(exited, ctx))
    const leave = () => bus.leave(systemContext(AbortSignal.timeout(LEAVE_MS), 'bus-store'))
    scope.tap(Host.hooks.closing, leave, { stage: AFTER_SERVING })
    return bus
  },
})
