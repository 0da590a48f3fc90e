import { isIP } from 'node:net'
import type { PluginReport } from '@svc/core'
import type { ServerInfo } from '@svc/core/processes'
import type { Metrics, Series } from '../metrics-text.ts'
import { readFigures } from '../server-figures.ts'

/** Isolated plugins as they are now: what their host told when it was ready is told again with what the server counts. As it was where the server does not tell. */
export async function asTheyAre(plugins: readonly PluginReport[], info: ServerInfo): Promise<readonly PluginReport[]> {
  if (info.url === '' || !plugins.some(one => one.isolation === 'process')) return plugins
  const { hostname } = new URL(info.url)
  const isHere = hostname === 'localhost' || isIP(hostname.replaceAll(/[[\]]/g, '')) !== 0
  const metrics = await readFigures({ url: info.url, trusted: isHere }).then(
    figures => figures.metrics,
    () => undefined // a server that listens no more has said what it could
  )
  const workers = info.workers.filter(one => one.state === 'ready').length
  return metrics === undefined ? plugins : plugins.map(one => live(one, metrics, workers))
}

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
