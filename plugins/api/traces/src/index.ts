import { setTimeout as sleep } from 'node:timers/promises'
import { type CallContext, definePlugin, Host, systemContext } from '@svc/core'
import { MetricSources, Peers, Routes, Store } from '@svc/core/contracts'
import { openSpace } from '@svc/storage-kit'
import { createCollector } from './collector.ts'
import { TRACES_CONFIG } from './config.ts'
import { createTraceReader } from './reader.ts'
import { createTraceRoutes } from './routes.ts'
import { SPACE } from './space.ts'
import { createTraceMetrics, createTraceStorage } from './storage.ts'

const TOPIC = 'traces'
/** The host reports spans every 20 ms. */
const REPORTED_MS = 30
const [SWEEP_MS, PRUNE_MS] = [1_000, 60_000]

export default definePlugin({
  section: 'traces',
  config: TRACES_CONFIG,
  requires: { host: Host, store: Store },
  optional: { peers: Peers },
  async setup(scope, { host, store, peers }) {
    const { config, log } = scope
    const lasting = systemContext(scope.signal, 'traces')
    const { worker } = await host.report(lasting)
    await openSpace(store, SPACE, {}, lasting)
    const storage = createTraceStorage({ store, keep: config.keep, worker, log, lasting })
    const collector = createCollector({ worker, sink: storage })
    if (config.enabled) scope.tap(Host.hooks.spans, collector.take)
    if (config.enabled && config.content) scope.tap(Host.hooks.spanContents, collector.content)

    /** Writes what this worker holds, also the spans that the host has not reported yet. */
    const settleHere = async () => {
      await sleep(REPORTED_MS)
      await storage.flush()
    }
    scope.tap(Peers.hooks.message, ({ topic }) => (topic === TOPIC ? settleHere() : undefined))
    const settle = async (ctx: CallContext) => (peers ? await peers.broadcast(TOPIC, null, ctx) : await settleHere())

    const timers = [setInterval(collector.sweep, SWEEP_MS), setInterval(() => void storage.prune(), PRUNE_MS)]
    for (const timer of timers) timer.unref()
    scope.defer(async () => {
      for (const timer of timers) clearInterval(timer)
    })
    // a request that ends with the server is stored too
    scope.tap(Host.hooks.closing, settleHere, { stage: AFTER_REQUESTS })

    for (const [name, route] of Object.entries(createTraceRoutes({ reader: createTraceReader(store), settle })))
      scope.add(Routes, name, route)
    scope.add(MetricSources, 'traces', createTraceMetrics(collector, storage))
  },
})

/** The HTTP server waits for its requests at stage 0. */
const AFTER_REQUESTS = 600
