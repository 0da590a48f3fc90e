import { definePlugin, Events, Host, schema, systemContext } from '@svc/core'
import { Http, JobKinds, Jobs, MetricSources, Peers, Routes, Secrets, Store } from '@svc/core/contracts'
import { createGuardedFetch, fetchKeys } from '@svc/safe-fetch'
import { openSpace } from '@svc/storage-kit'
import { Collector } from './collector.ts'
import { Deliveries, KIND } from './deliveries.ts'
import { createRoutes } from './routes.ts'
import { SPACE, Webhooks } from './webhooks.ts'

export interface WebhooksConfig {
  allow: string[]
  timeout_ms: number
  retry_delays_s: number[]
}

const { allow, timeout_ms } = fetchKeys({ timeoutMs: 15_000, longestMs: 60_000, maxBytes: 1024 })
/** The answer of a receiver is not used: only its beginning is read. */
const ANSWER_BYTES = 16_384
/** The delays of Standard Webhooks: 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h, 24 h. */
const DELAYS_S = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]

/** After the server has drained: the last requests have published their events. */
const AFTER_SERVING = 500
const DRAIN_MS = 5_000

/** Sends events to URLs. Only the workers of a server collect events. */
export default definePlugin({
  section: 'webhooks',
  config: schema<WebhooksConfig>({
    type: 'object',
    additionalProperties: false,
    properties: {
      allow,
      timeout_ms: { ...timeout_ms, description: 'Maximum milliseconds of one delivery.' },
      retry_delays_s: {
        type: 'array',
        items: { type: 'integer', minimum: 0, maximum: 604_800 },
        maxItems: 99,
        default: DELAYS_S,
        description: 'Seconds before each further attempt after a failed one. After the last, the delivery is a dead letter.',
      },
    },
  }),
  requires: { host: Host, events: Events, store: Store, jobs: Jobs, secrets: Secrets },
  optional: { peers: Peers, http: Http },
  async setup(scope, { host, events, store, jobs, secrets, peers, http }) {
    const { config, log } = scope
    const lasting = systemContext(scope.signal, 'webhooks')
    const { worker } = await host.report(lasting)
    await openSpace(store, SPACE, {}, lasting)
    const web = scope.use(
      createGuardedFetch({
        allow: config.allow,
        userAgent: 'svc-webhooks/0.1',
        // a redirect could lead to an address that the operator has not named
        limits: { totalMs: config.timeout_ms, bodyBytes: ANSWER_BYTES, wireBytes: ANSWER_BYTES, redirects: 0 },
      })
    )
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
