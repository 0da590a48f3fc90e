import { messageOf, type Log, type SlotView, type Use } from '@svc/core'
import type { MetricFamily, MetricSource, Route } from '@svc/core/contracts'
import { withPointedBounds } from './families.ts'

/** All sources as one text. A source that fails is left out, and the log says so. */
export function createExposition(sources: SlotView<MetricSource>, log: Log): Route {
  const readOne = async ([name, source]: [string, MetricSource], use: Use) => {
    try {
      return await source.read(use)
    } catch (error) {
      log.warn({ source: name, err: error }, `the metrics of ${name} are missing: ${messageOf(error)}`)
      return []
    }
  }
  return {
    method: 'GET',
    path: '/metrics',
    summary: 'Figures for Prometheus',
    scope: 'read',
    uncounted: true,
    responses: {
      '200': { description: 'Text in the Prometheus exposition format.', schema: { type: 'string' }, contentType: 'text/plain' },
    },
    async handle(_request, use) {
      const read = await Promise.all(sources.entries().map(entry => readOne(entry, use)))
      return exposed(read.flat().map(withPointedBounds))
    },
  }
}

async function exposed(families: readonly MetricFamily[]) {
  const { AggregatorRegistry } = await import('prom-client')
  const registry = AggregatorRegistry.aggregate([families as unknown as object])
  return { text: await registry.metrics(), headers: { 'Content-Type': registry.contentType } }
}
