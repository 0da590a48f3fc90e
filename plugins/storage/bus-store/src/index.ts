import { definePlugin, Host, systemContext } from '@svc/core'
import { NodeBus, PeerAnswers, Peers, Store } from '@svc/core/contracts'
import type { StoreBus } from './bus.ts'
import { notJoined } from './errors.ts'

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
    let opened: Promise<StoreBus> | undefined
    const open = async () => {
      // Loaded only on servers of a cluster.
      const [{ StoreBus }, { SPACE }, { openSpace }] = await Promise.all([
        import('./bus.ts'),
        import('./space.ts'),
        import('@svc/storage-kit'),
      ])
      await openSpace(store, SPACE, {}, lasting)
      return new StoreBus({ store, self: worker, node: nodeId, answers, hooks, log, lasting })
    }
    const bus = async () => opened ?? Promise.reject(notJoined(worker))
    const leave = async (ctx = systemContext(AbortSignal.timeout(LEAVE_MS), 'bus-store')) => (await opened)?.leave(ctx)
    scope.tap(Peers.hooks.workerExit, async ({ worker: exited }, ctx) => (await opened)?.exited(exited, ctx))
    scope.tap(Host.hooks.closing, () => leave(), { stage: AFTER_SERVING })
    return {
      join: async (facts, ctx) => (await (opened ??= open())).join(facts, ctx),
      leave,
      members: async ctx => (await bus()).members(ctx),
      publish: async (topic, message, ctx) => (await bus()).publish(topic, message, ctx),
      async *call(to, topic, message, ctx) {
        yield* (await bus()).call(to, topic, message, ctx)
      },
      acquire: async (name, limit, ctx) => (await bus()).acquire(name, limit, ctx),
      release: async (name, ctx) => (await bus()).release(name, ctx),
    }
  },
})
