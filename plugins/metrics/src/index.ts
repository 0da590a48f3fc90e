import { definePlugin, Host, schema } from '@svc/core'
import { Chat, Http, MetricSources, Routes } from '@svc/core/contracts'
import { createExposition } from './exposition.ts'
import { hostFigures } from './host-figures.ts'
import { createModelCounts } from './model-counts.ts'
import { collectNodeFigures } from './node-figures.ts'
import { createRequestCounts } from './request-counts.ts'

export interface MetricsConfig {
  node: boolean
}

/** prom-client takes 60 ms to load: not while the first requests come. */
const LOAD_MS = 1_000

export default definePlugin({
  section: 'metrics',
  config: schema<MetricsConfig>({
    type: 'object',
    additionalProperties: false,
    properties: { node: { type: 'boolean', default: true, description: "Whether Node's own figures are shown." } },
  }),
  requires: { host: Host, http: Http, sources: MetricSources },
  setup(scope, { host, http, sources }) {
    const requests = createRequestCounts()
    const models = createModelCounts()
    scope.tap(Http.hooks.done, done => requests.count(done))
    scope.tap(Chat.hooks.modelDone, done => models.count(done))
    scope.add(MetricSources, 'service', {
      read: async use => [...requests.read(), ...models.read(), ...(await hostFigures(host, http, use))],
    })
    scope.add(Routes, 'metrics', createExposition(sources, scope.log))
    if (!scope.config.node) return
    scope.add(MetricSources, 'node', { read: async () => (await collectNodeFigures())() })
    const timer = setTimeout(() => void collectNodeFigures(), LOAD_MS).unref()
    scope.defer(() => clearTimeout(timer))
  },
})
