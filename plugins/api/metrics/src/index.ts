import { definePlugin, Host, schema } from '@svc/core'
import { ModelCalls, Http, MetricSources, Peers, Routes } from '@svc/core/contracts'
import { createExposition, createMetricsCollector } from './metrics-collector.ts'
import { collectNodeMetrics, hostMetrics } from './host-metrics.ts'
import { createModelCounts, createRequestCounts } from './counts.ts'

export interface MetricsConfig {
  node: boolean
}

export default definePlugin({
  section: 'metrics',
  config: schema<MetricsConfig>({
    type: 'object',
    additionalProperties: false,
    properties: { node: { type: 'boolean', default: true, description: "Expose Node's own metrics." } },
  }),
  requires: { host: Host, http: Http, sources: MetricSources },
  optional: { peers: Peers },
  setup(scope, { host, http, sources, peers }) {
    const requests = createRequestCounts()
    const models = createModelCounts()
    scope.tap(Http.hooks.done, requests.count)
    scope.tap(ModelCalls.hooks.modelDone, models.count)
    scope.add(MetricSources, 'service', {
      read: async ctx => [...requests.read(), ...models.read(), ...(await hostMetrics(host, ctx))],
    })
    const metrics = createMetricsCollector({ sources, peers, host, log: scope.log })
    scope.tap(Peers.hooks.metrics, metrics.own)
    scope.tap(Peers.hooks.inherit, metrics.inherit)
    scope.tap(Peers.hooks.message, metrics.onPeerMessage)
    scope.add(Routes, 'metrics', createExposition(metrics, http))
    // collected only from the first scrape on, because prom-client takes 60 ms and 8 MiB
    const node = async () => (metrics.wasRead() ? (await collectNodeMetrics())() : [])
    if (scope.config.node) scope.add(MetricSources, 'node', { read: node })
  },
})
