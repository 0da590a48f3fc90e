import { definePlugin, Host, systemContext } from '@svc/core'
import { Checks, NodeBus, Peers, Postgres, RunQueue, type SqlValue, Store } from '@svc/core/contracts'
import { openBoss } from './boss.ts'
import { Jobs } from './jobs.ts'
import { PgBossQueue, takeOver, TOPIC } from './queue.ts'

const STOP_MS = 2_000

/** The queue of workflow runs of a cluster, in the database of the store. */
export default definePlugin({
  requires: { postgres: Postgres, store: Store, host: Host },
  optional: { bus: NodeBus },
  provides: RunQueue,
  async setup(scope, { postgres, store, host, bus }) {
    const { log } = scope
    const lasting = systemContext(scope.signal, 'queue-pgboss')
    const { worker, nodeId } = await host.report(lasting)
    const opened = await openBoss({
      send: (text, values) => postgres.runApart({ text, ...(values ? { values: values as readonly SqlValue[] } : {}) }, lasting),
      storeSchema: (await postgres.schema(lasting)).slice(1, -1),
      mayMigrate: await postgres.mayMigrate(lasting),
      log,
    })
    const jobs = new Jobs({ ...opened, postgres, lasting })
    await takeOver(store, jobs, lasting)
    const queue = new PgBossQueue({ jobs, store, bus, holder: `${worker}/runs/`, node: nodeId, log, lasting })
    queue.begin()
    scope.defer(async () => {
      queue.end()
      const stopped = opened.boss.stop({ graceful: false, close: false }).catch(() => {})
      await Promise.race([stopped, new Promise(resolve => setTimeout(resolve, STOP_MS).unref())])
    })
    scope.add(Checks, 'run_queue', { probe: async () => queue.health() })
    scope.tap(Peers.hooks.workerExit, ({ holder }) =>
      queue.gone(holder, lasting).catch((error: unknown) => {
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
