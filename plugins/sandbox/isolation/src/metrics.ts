import type { PluginReport } from '@svc/core'
import type { MetricFamily } from '@svc/core/contracts'

type Value = (one: PluginReport) => number
const FAMILIES: readonly (Omit<MetricFamily, 'values' | 'aggregator'> & { readonly value: Value })[] = [
  {
    name: 'svc_plugin_up',
    help: 'Running processes of an isolated plugin, summed over the workers.',
    type: 'gauge',
    value: one => Number(one.state === 'running'),
  },
  {
    name: 'svc_plugin_quarantined',
    help: 'Whether an isolated plugin is in quarantine because its process ended too often.',
    type: 'gauge',
    value: one => Number(one.state === 'quarantined'),
  },
  {
    name: 'svc_plugin_restarts_total',
    help: 'Restarts of the process of an isolated plugin.',
    type: 'counter',
    value: one => one.restarts ?? 0,
  },
  {
    name: 'svc_plugin_cpu_seconds_total',
    help: 'Processor time of isolated plugins.',
    type: 'counter',
    value: one => (one.cpuMs ?? 0) / 1000,
  },
  { name: 'svc_plugin_memory_bytes', help: 'Memory of isolated plugins.', type: 'gauge', value: one => one.memoryBytes ?? 0 },
]

/** Builds the metrics of isolated plugins from the report of the host. */
export function familiesOf(plugins: readonly PluginReport[]): MetricFamily[] {
  const isolated = plugins.filter(one => one.isolation === 'process' && one.state !== 'failed')
  const labels = ({ name, instance = '' }: PluginReport) => ({ plugin: name, instance })
  const plain = FAMILIES.map(({ value, ...family }) => ({
    ...family,
    aggregator: 'sum' as const,
    values: isolated.map(one => ({ labels: labels(one), value: value(one) })),
  }))
  const refusals = isolated.flatMap(one =>
    Object.entries(one.refusals ?? {}).map(([kind, value]) => ({ labels: { ...labels(one), kind }, value }))
  )
  const help = 'Accesses that isolated plugins were refused, by kind.'
  return [...plain, { name: 'svc_plugin_refusals_total', help, type: 'counter', aggregator: 'sum', values: refusals }]
}
