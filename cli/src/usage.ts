import type { Metrics, Series } from './metrics-text.ts'

/** What one plugin has taken, all workers together. */
export interface PluginUsage {
  readonly name: string
  /** Of its taps and of what it adds. */
  readonly calls: number
  readonly errors: number
  /** Of all these calls; those that overlap count each. */
  readonly ms: number
  /** Of one in a process of its own. */
  readonly isolated?: {
    readonly memoryBytes: number
    readonly cpuMs: number
    readonly restarts: number
    readonly refusals: number
    readonly quarantined: boolean
  }
}

const TOGETHER = ['hook', 'plugin']

/** What metrics say of each plugin. */
export function usageOf(metrics: Metrics): PluginUsage[] {
  const named = Map.groupBy(metrics.values(), series => series.name)
  const sum = (family: string, plugin: string) =>
    (named.get(`svc_${family}`) ?? []).reduce((total, { labels, value }) => (labels.plugin === plugin ? total + value : total), 0)
  const both = (what: string, plugin: string) => TOGETHER.reduce((total, kind) => total + sum(`${kind}_${what}`, plugin), 0)
  const isolated = new Set(pluginsIn(named.get('svc_plugin_up')))
  const calling = TOGETHER.flatMap(kind => pluginsIn(named.get(`svc_${kind}_calls_total`)))
  return [...new Set([...isolated, ...calling])].map(name => ({
    name,
    calls: both('calls_total', name),
    errors: both('errors_total', name),
    ms: both('seconds_total', name) * 1000,
    ...(isolated.has(name) ? { isolated: processOf(name, sum) } : {}),
  }))
}

const pluginsIn = (series: readonly Series[] = []) => series.flatMap(({ labels }) => labels.plugin ?? [])

const processOf = (name: string, sum: (family: string, plugin: string) => number) => ({
  memoryBytes: sum('plugin_memory_bytes', name),
  cpuMs: sum('plugin_cpu_seconds_total', name) * 1000,
  restarts: sum('plugin_restarts_total', name),
  refusals: sum('plugin_refusals_total', name),
  quarantined: sum('plugin_quarantined', name) > 0,
})
