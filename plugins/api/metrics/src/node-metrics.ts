import type { MetricFamily } from '@svc/core/contracts'

// Node's figures are those of the process, however many hosts it has; what collects them cannot be taken down again.
let collecting: Promise<() => Promise<MetricFamily[]>> | undefined

/** Begins to collect Node's own figures (memory, event loop, garbage collection), once a process. Loads prom-client. */
export function collectNodeMetrics(): Promise<() => Promise<MetricFamily[]>> {
  collecting ??= collect()
  return collecting
}

async function collect() {
  const { collectDefaultMetrics, Registry } = await import('prom-client')
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  return async () => ((await registry.getMetricsAsJSON()) as unknown as MetricFamily[]).map(joinable)
}

const JOINED = ['sum', 'first', 'max']

/** prom-client leaves some figures out when it joins workers, or takes their mean: of these the worst one counts. */
function joinable(family: MetricFamily): MetricFamily {
  const aggregator = JOINED.includes(family.aggregator) ? family.aggregator : 'max'
  return { name: family.name, help: family.help, type: family.type, values: family.values, aggregator }
}
