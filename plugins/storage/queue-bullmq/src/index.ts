import { definePlugin, Host, systemContext } from '@svc/core'
import { Checks, NodeBus, Peers, Redis, RunQueue, Store } from '@svc/core/contracts'
import { openSpace } from '@svc/storage-kit'
import { RUN_SPACE } from '@svc/storage-kit/run-leases'
import { Jobs } from './jobs.ts'
import { BullQueue, LOCK_MS, TOPIC } from './queue.ts'

const STOP_MS = 2_000

/** The queue of workflow runs of a cluster, in Redis. */
export default definePlugin({
  requires: { redis: Redis, store: Store, host: Host },
  optional: { bus: NodeBus },
  provides: RunQueue,
  async setup(scope, { redis, store, host, bus }) {
    const { log } = scope
    const lasting = systemContext(scope.signal, 'queue-bullmq')
    const { worker, nodeId } = await host.report(lasting)
    const holder = `${worker}/runs/`
    await openSpace(store, RUN_SPACE, {}, lasting)
    const jobs = await Jobs.open({ redis, node: nodeId, holder, lockMs: LOCK_MS, log, lasting })
    const queue = new BullQueue({ jobs, store, bus, holder, node: nodeId, log, lasting })
    queue.begin()
    scope.defer(async () => {
      queue.end()
      const stopped = jobs.close().catch(() => {})
      await Promise.race([stopped, new Promise(resolve => setTimeout(resolve, STOP_MS).unref())])
    })
    scope.add(Checks, 'run_queue', { probe: async () => queue.health() })
    scope.tap(Peers.hooks.workerExit, ({ holder: ended }) =>
      queue.gone(ended, lasting).catch((error: unknown) => {
        // while this worker ends too, another one does it
        if (!lasting.signal.aborted) throw error
      })
    )
    scope.tap(NodeBus.hooks.message, ({ topic }) => {
      if (topic === TOPIC) queue.rung()
    })
    return queue
  },
})
