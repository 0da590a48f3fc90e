import { type CallContext, definePlugin, Events, Host, systemContext } from '@svc/core'
import { Chat, Http, ModelCalls, Peers, Prices, Routes, Store } from '@svc/core/contracts'
import { openSpace } from '@svc/storage-kit'
import { SPACE, createRecorder, deleteOld, followRuns } from './recorder.ts'
import { USAGE_CONFIG } from './config.ts'
import { createUsageRoutes } from './routes.ts'

const TOPIC = 'usage'
const [FLUSH_MS, PRUNE_MS] = [5_000, 10 * 60_000]
/** The HTTP server waits for its requests at stage 0. */
const AFTER_REQUESTS = 600

export default definePlugin({
  section: 'usage',
  config: USAGE_CONFIG,
  requires: { host: Host, store: Store, events: Events },
  optional: { peers: Peers, prices: Prices },
  async setup(scope, { host, store, events, peers, prices }) {
    const { config, log } = scope
    const lasting = systemContext(scope.signal, 'usage')
    const { worker } = await host.report(lasting)
    await openSpace(store, SPACE, {}, lasting)
    const recorder = createRecorder({ store, prices, worker, log, lasting })
    if (config.enabled) {
      scope.tap(Http.hooks.done, recorder.request)
      scope.tap(ModelCalls.hooks.modelDone, recorder.model)
      scope.tap(Chat.hooks.end, recorder.turn)
      void followRuns(events, recorder.run, lasting)
    }
    scope.tap(Peers.hooks.message, ({ topic }) => (topic === TOPIC ? recorder.flush() : undefined))
    scope.tap(Host.hooks.closing, recorder.flush, { stage: AFTER_REQUESTS })
    const settle = async (ctx: CallContext) => (peers ? await peers.broadcast(TOPIC, null, ctx) : await recorder.flush())
    const prune = () => deleteOld(store, { config, worker, log }, lasting)
    const timers = [setInterval(() => void recorder.flush(), FLUSH_MS), setInterval(() => void prune(), PRUNE_MS)]
    for (const timer of timers) timer.unref()
    scope.defer(() => timers.forEach(timer => clearInterval(timer)))
    for (const [name, route] of Object.entries(createUsageRoutes({ store, prices, settle }))) scope.add(Routes, name, route)
  },
})
