import { type CallContext, codeOf, definePlugin, Events, Host, type Log, systemContext } from '@svc/core'
import { Chat, Http, ModelCalls, Peers, Prices, Routes, RunEnded, Store } from '@svc/core/contracts'
import { keepLease, openSpace } from '@svc/storage-kit'
import { BUCKETS, SPACE, type Step, STEP_MS } from './bucket.ts'
import { USAGE_CONFIG, type UsageConfig } from './config.ts'
import { createRecorder } from './recorder.ts'
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

async function followRuns(events: Events, take: ReturnType<typeof createRecorder>['run'], ctx: CallContext): Promise<void> {
  const filter = { categories: [RunEnded.category], types: [RunEnded.type] }
  for await (const { data } of events.subscribe(filter, ctx)) take(data as unknown as Parameters<typeof take>[0])
}

const [LEASE_MS, PAGE] = [30_000, 500]

interface PruneOptions {
  readonly config: UsageConfig
  readonly worker: string
  readonly log: Log
}

/** Deletes the buckets that are older than `usage.keep`, unless another worker does so. */
async function deleteOld(store: Store, { config: { keep }, worker, log }: PruneOptions, ctx: CallContext): Promise<void> {
  const ages: Readonly<Record<Step, number>> = { minute: keep.hours * STEP_MS.hour, hour: keep.days * 24 * STEP_MS.hour }
  try {
    await using held = await keepLease(store, 'usage.prune', { holder: `${worker}/usage`, ttlMs: LEASE_MS, waitMs: 0 }, ctx)
    for (const step of ['minute', 'hour'] as const) {
      const to = `${step}/${String(Date.now() - ages[step]).padStart(15, '0')}`
      for (;;) {
        const { records } = await store.range(BUCKETS, { from: `${step}/`, to, limit: PAGE }, held.ctx)
        if (records.length === 0) break
        await store.batch(
          records.map(({ key }) => ({ op: 'delete' as const, collection: BUCKETS, key })),
          {},
          held.ctx
        )
      }
    }
  } catch (err) {
    if (codeOf(err) !== 'LEASE_BUSY' && !ctx.signal.aborted) log.warn({ err }, 'failed to delete old usage')
  }
}
