import type { Http, MetricFamily, Route } from '@svc/core/contracts'
import { gauge, withPointedBounds } from './families.ts'
import type { MetricsCollector } from './metrics-collector.ts'

/** All workers' figures as one text. */
export function createExposition(metrics: MetricsCollector, http: Http): Route {
  return {
    method: 'GET',
    path: '/metrics',
    summary: 'Figures for Prometheus',
    scope: 'read',
    uncounted: true,
    responses: {
      '200': { description: 'Text in the Prometheus exposition format.', schema: { type: 'string' }, contentType: 'text/plain' },
    },
    async handle(_request, ctx) {
      const workers = await metrics.read(ctx)
      const { requestsActive } = await http.metrics(ctx)
      const active = gauge('svc_requests_active', 'Requests under way.', requestsActive)
      return exposed([[active], ...workers.map(families => families.map(withPointedBounds))])
    },
  }
}

async function exposed(workers: readonly (readonly MetricFamily[])[]) {
  const { AggregatorRegistry } = await import('prom-client')
  const registry = AggregatorRegistry.aggregate(workers as unknown as object[])
  return { text: await registry.metrics(), headers: { 'Content-Type': registry.contentType } }
}
