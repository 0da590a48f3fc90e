import type { MetricFamily } from '@svc/core/contracts'

// Node's figures are those of the process, however many hosts it has; what collects them cannot be taken down again.
let collecting: Promise<() => Promise<MetricFamily[]>> | undefined

/** Begins to collect Node's own figures (memory, event loop, garbage collection), once a process. Loads prom-client. */
export function collectNodeFigures(): Promise<() => Promise<MetricFamily[]>> {
  collecting ??= collect()
  return collecting
}

async function collect() {
  const { collectDefaultMetrics, Registry } = await import('prom-client')
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  return async () => plain(await registry.getMetricsAsJSON())
}

/** prom-client's own form, without what is not plain. */
const plain = (families: object[]) => JSON.parse(JSON.stringify(families)) as MetricFamily[]
