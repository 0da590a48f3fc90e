import { isIP } from 'node:net'
import type { PluginReport } from '@svc/core'
import type { ServerInfo } from '@svc/runtime'
import type { Metrics, Series } from '../server/metrics.ts'
import { readServerMetrics } from '../server/server-status.ts'

/** Plugins of a server. */
export interface ServerPlugins {
  readonly plugins: readonly PluginReport[]
  /** When isolated ones stood so, in ISO 8601; absent where they stand so now. */
  readonly asOf?: string
}

/** Isolated plugins as they are now: the report of the host, updated with the metrics of the server. Without metrics, the report and its time. */
export async function asTheyAre(plugins: readonly PluginReport[], info: ServerInfo): Promise<ServerPlugins> {
  if (!plugins.some(one => one.isolation === 'process')) return { plugins }
  const workers = info.workers.filter(one => one.state === 'ready')
  const metrics = info.url === '' ? undefined : await metricsOf(info.url)
  if (metrics === undefined || !hasPluginMetrics(metrics)) return { plugins, asOf: timeOf(workers, info) }
  return { plugins: plugins.map(one => live(one, metrics, workers.length)) }
}

function metricsOf(url: string): Promise<Metrics | undefined> {
  const { hostname } = new URL(url)
  const trusted = hostname === 'localhost' || isIP(hostname.replaceAll(/[[\]]/g, '')) !== 0
  return readServerMetrics({ url, trusted }).then(
    metrics => metrics.metrics,
    () => undefined // a server that listens no more has said what it could
  )
}

const hasPluginMetrics = (metrics: Metrics) => [...metrics.values()].some(one => one.name === 'svc_plugin_up')

/** A host reports the state of its plugins once, when it is ready. */
const timeOf = (workers: ServerInfo['workers'], { startedAt }: ServerInfo) =>
  new Date(Math.min(...workers.map(one => one.startedAt), workers.length === 0 ? startedAt : Infinity)).toISOString()

/** Shown with outdated states. */
export const OLD_FIGURES = 'the server publishes no metrics. Load the plugin metrics, and set SVC_API_KEY if authentication is on'

function live(plugin: PluginReport, metrics: Metrics, workers: number): PluginReport {
  const { name, instance = '' } = plugin
  const own = [...metrics.values()].filter(one => one.labels.plugin === name && (one.labels.instance ?? '') === instance)
  const value = (metric: string) => own.find(one => one.name === metric)?.value
  const up = value('svc_plugin_up')
  if (up === undefined) return plugin
  const refused = own.filter(one => one.name === 'svc_plugin_refusals_total')
  return {
    ...plugin,
    state: (value('svc_plugin_quarantined') ?? 0) > 0 ? 'quarantined' : up < workers ? 'restarting' : 'running',
    restarts: value('svc_plugin_restarts_total') ?? 0,
    refusals: Object.fromEntries(refused.map(kindOf)),
    cpuMs: (value('svc_plugin_cpu_seconds_total') ?? 0) * 1000,
    memoryBytes: value('svc_plugin_memory_bytes') ?? 0,
  }
}

const kindOf = ({ labels, value }: Series) => [labels.kind ?? '', value] as const

/** `network 3, read 1`; undefined where nothing was refused. */
export function refusedText({ refusals = {} }: PluginReport): string | undefined {
  const counts = Object.entries(refusals).filter(([, count]) => count > 0)
  return counts.length === 0 ? undefined : counts.map(([kind, count]) => `${kind} ${count}`).join(', ')
}
