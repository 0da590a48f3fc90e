import { definePlugin, Events, Host, systemContext } from '@svc/core'
import { Http, JobKinds, Jobs, MetricSources, Peers, Routes, Secrets, Store } from '@svc/core/contracts'
import { createGuardedFetch } from '@svc/safe-fetch'
import { openSpace } from '@svc/storage-kit'
import { Collector } from './collector.ts'
import { Deliveries, KIND } from './deliveries.ts'
import { createRoutes } from './routes.ts'
import { fetchOptions, WEBHOOKS_CONFIG } from './settings.ts'
import { SPACE, Webhooks } from './webhooks.ts'

/** After the server has drained: the last requests have published their events. */
const AFTER_SERVING = 500
const DRAIN_MS = 5_000

/** Sends events to URLs. Only the workers of a server collect events. */
export default definePlugin({
  section: 'webhooks',
  config: WEBHOOKS_CONFIG,
  requires: { host: Host, events: Events, store: Store, jobs: Jobs, secrets: Secrets },
  optional: { peers: Peers, http: Http },
  async setup(scope, { host, events, store, jobs, secrets, peers, http }) {
    const { config, log } = scope
    const lasting = systemContext(scope.signal, 'webhooks')
    const { worker } = await host.report(lasting)
    await openSpace(store, SPACE, {}, lasting)
    const web = scope.use(createGuardedFetch(fetchOptions(config)))
    const webhooks = new Webhooks({ store, secrets, events, log })
    const delaysMs = config.retry_delays_s.map(seconds => seconds * 1000)
    const deliveries = new Deliveries({ webhooks, jobs, web, worker, delaysMs, timeoutMs: config.timeout_ms })
    scope.add(JobKinds, KIND, deliveries.kind())
    for (const [name, route] of Object.entries(createRoutes(webhooks, deliveries))) scope.add(Routes, name, route)
    if (peers === undefined && http === undefined) return
    const collector = new Collector({ webhooks, deliveries, events, worker, log, lasting })
    scope.add(MetricSources, 'webhooks', { read: async () => collector.metrics() })
    scope.tap(Host.hooks.ready, () => collector.begin())
    scope.tap(Host.hooks.closing, () => collector.drain(DRAIN_MS), { stage: AFTER_SERVING, limitMs: 2 * DRAIN_MS })
  },
})

export type { WebhooksConfig } from './settings.ts'
