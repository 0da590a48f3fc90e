import type { Host, PluginReport } from '@svc/core'
import type { Check, CheckReport, WorkerMetrics, Peers, MetricFamily } from '@svc/core/contracts'
import { nameOf } from './quarantine.ts'

/** The states of the isolated plugins of one worker, by name. */
export type PluginStates = { readonly [name: string]: { readonly state: string; readonly restarts: number } }

/** Checks the isolated plugins. `/health` reports this worker alone, since quarantine holds in all workers. `/api/v1/status` sums all workers. */
export const pluginsCheck = (host: Host, peers: Pick<Peers, 'metrics'> | undefined): Check => ({
  probe: async ctx => reportOf([await statesOf(host, ctx)]),
  ...(peers ? { status: async ctx => reportOf((await peers.metrics(ctx)).filter(metric => !metric.ended).map(statesIn)) } : {}),
})

export async function statesOf(host: Host, ctx: Parameters<Host['report']>[0]): Promise<PluginStates> {
  const { plugins } = await host.report(ctx)
  const isolated = plugins.filter(plugin => plugin.isolation === 'process')
  return Object.fromEntries(
    isolated.map(plugin => [reportedName(plugin), { state: plugin.state, restarts: plugin.restarts ?? 0 }])
  )
}

const statesIn = ({ isolation }: WorkerMetrics): PluginStates =>
  (isolation as { readonly states?: PluginStates } | undefined)?.states ?? {}

const reportedName = ({ name, instance }: PluginReport) =>
  nameOf({ plugin: name, ...(instance === undefined ? {} : { instance }) })

/** From the best to the worst. */
const STATES = ['running', 'restarting', 'quarantined']

function reportOf(workers: readonly PluginStates[]): CheckReport {
  const detail: Record<string, { state: string; restarts: number }> = {}
  for (const [name, { state, restarts }] of workers.flatMap(worker => Object.entries(worker))) {
    const sum = detail[name] ?? { state, restarts: 0 }
    detail[name] = { state: worse(sum.state, state), restarts: sum.restarts + restarts }
  }
  const out = Object.entries(detail).filter(([, { state }]) => state === 'quarantined' || state === 'restarting')
  if (out.length === 0) return { status: 'healthy', detail }
  return { status: 'degraded', reason: out.map(([name, { state }]) => `${name} is ${state}`).join(', '), detail }
}

const worse = (a: string, b: string) => (STATES.indexOf(a) > STATES.indexOf(b) ? a : b)

type Value = (pluginReport: PluginReport) => number
const FAMILIES: readonly (Omit<MetricFamily, 'values' | 'aggregator'> & { readonly value: Value })[] = [
  {
    name: 'svc_plugin_up',
    help: 'Running processes of an isolated plugin, summed over the workers.',
    type: 'gauge',
    value: item => Number(item.state === 'running'),
  },
  {
    name: 'svc_plugin_quarantined',
    help: 'Whether an isolated plugin is in quarantine because its process ended too often.',
    type: 'gauge',
    value: item => Number(item.state === 'quarantined'),
  },
  {
    name: 'svc_plugin_restarts_total',
    help: 'Restarts of the process of an isolated plugin.',
    type: 'counter',
    value: item => item.restarts ?? 0,
  },
  {
    name: 'svc_plugin_cpu_seconds_total',
    help: 'Processor time of isolated plugins.',
    type: 'counter',
    value: item => (item.cpuMs ?? 0) / 1000,
  },
  { name: 'svc_plugin_memory_bytes', help: 'Memory of isolated plugins.', type: 'gauge', value: item => item.memoryBytes ?? 0 },
]

/** Builds the metrics of isolated plugins from the report of the host. */
export function familiesOf(plugins: readonly PluginReport[]): MetricFamily[] {
  const isolated = plugins.filter(plugin => plugin.isolation === 'process' && plugin.state !== 'failed')
  const labels = ({ name, instance = '' }: PluginReport) => ({ plugin: name, instance })
  const plain = FAMILIES.map(({ value, ...family }) => ({
    ...family,
    aggregator: 'sum' as const,
    values: isolated.map(plugin => ({ labels: labels(plugin), value: value(plugin) })),
  }))
  const refusals = isolated.flatMap(plugin =>
    Object.entries(plugin.refusals ?? {}).map(([kind, value]) => ({ labels: { ...labels(plugin), kind }, value }))
  )
  const help = 'Accesses that isolated plugins were refused, by kind.'
  return [...plain, { name: 'svc_plugin_refusals_total', help, type: 'counter', aggregator: 'sum', values: refusals }]
}
