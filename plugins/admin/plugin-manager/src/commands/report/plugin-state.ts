import { isIP } from 'node:net'
import { findSettings, here, setHome } from '@svc/cli/program'
import { unconfiguredIn } from '../../set/installed-layer.ts'
import { type PluginReport, systemContext } from '@svc/core'
import { findServers, type FoundServer, type ServerInfo } from '@svc/runtime'
import type { LockedPlugin } from '../../set.ts'
import type { Metrics, MetricSeries } from '../server/metrics.ts'
import { readServerMetrics } from '../server/server-status.ts'

/** Plugins of a server. */
export interface ServerPlugins {
  readonly plugins: readonly PluginReport[]
  /** The time of the state of isolated plugins, in ISO 8601; absent if it is current. */
  readonly asOf?: string
}

/**
 * The present state of isolated plugins: the report of the host, updated with the metrics of the server. Without metrics, the
 * report and its time.
 */
export async function asTheyAre(plugins: readonly PluginReport[], info: ServerInfo): Promise<ServerPlugins> {
  if (!plugins.some(plugin => plugin.isolation === 'process')) return { plugins }
  const workers = info.workers.filter(worker => worker.state === 'ready')
  const metrics = info.url === '' ? undefined : await metricsOf(info.url)
  if (metrics === undefined || !hasPluginMetrics(metrics)) return { plugins, asOf: timeOf(workers, info) }
  return { plugins: plugins.map(plugin => live(plugin, metrics, workers.length)) }
}

function metricsOf(url: string): Promise<Metrics | undefined> {
  const { hostname } = new URL(url)
  const trusted = hostname === 'localhost' || isIP(hostname.replaceAll(/[[\]]/g, '')) !== 0
  return readServerMetrics({ url, trusted }).then(
    metrics => metrics.metrics,
    () => undefined // the report is the last known state of a server that no longer listens
  )
}

const hasPluginMetrics = (metrics: Metrics) => [...metrics.values()].some(metric => metric.name === 'svc_plugin_up')

/** A host reports the state of its plugins once, when it is ready. */
const timeOf = (workers: ServerInfo['workers'], { startedAt }: ServerInfo) =>
  new Date(Math.min(...workers.map(worker => worker.startedAt), workers.length === 0 ? startedAt : Infinity)).toISOString()

/** A hint for outdated states. */
export const OUTDATED_STATE =
  'the server publishes no metrics. Enable the plugin @svc/plugin-metrics, and set SVC_API_KEY if authentication is on'

function live(plugin: PluginReport, metrics: Metrics, workers: number): PluginReport {
  const { name, instance = '' } = plugin
  const own = [...metrics.values()].filter(metric => metric.labels.plugin === name && (metric.labels.instance ?? '') === instance)
  const value = (metric: string) => own.find(item => item.name === metric)?.value
  const up = value('svc_plugin_up')
  if (up === undefined) return plugin
  const refused = own.filter(metric => metric.name === 'svc_plugin_refusals_total')
  return {
    ...plugin,
    state: (value('svc_plugin_quarantined') ?? 0) > 0 ? 'quarantined' : up < workers ? 'restarting' : 'running',
    restarts: value('svc_plugin_restarts_total') ?? 0,
    refusals: Object.fromEntries(refused.map(kindOf)),
    cpuMs: (value('svc_plugin_cpu_seconds_total') ?? 0) * 1000,
    memoryBytes: value('svc_plugin_memory_bytes') ?? 0,
  }
}

const kindOf = ({ labels, value }: MetricSeries) => [labels.kind ?? '', value] as const

/** `network 3, read 1`; undefined if nothing was refused. */
export function refusedText({ refusals = {} }: PluginReport): string | undefined {
  const counts = Object.entries(refusals).filter(([, count]) => count > 0)
  return counts.length === 0 ? undefined : counts.map(([kind, count]) => `${kind} ${count}`).join(', ')
}

const ASK_MS = 10_000

/** The state of these plugins in each running server of the home. */
export async function reportsOf(isMeant: (plugin: PluginReport) => boolean): Promise<ServerPlugins[]> {
  using stack = new DisposableStack()
  const servers = (await findServers(here().home)).map(server => stack.use(server))
  return await Promise.all(servers.map(server => reportOf(server, isMeant)))
}

async function reportOf({ control, info }: FoundServer, isMeant: (plugin: PluginReport) => boolean): Promise<ServerPlugins> {
  const { plugins } = await control.report(systemContext(AbortSignal.timeout(ASK_MS)))
  return asTheyAre(plugins.filter(isMeant), info)
}

/** An enabled installed plugin that does not run. */
export interface Idle {
  readonly locked: LockedPlugin
  /**
   * `not configured`: it needs an entry in the configuration; `not loaded`: the configuration disables it, or it was installed
   * after the start.
   */
  readonly health: 'not configured' | 'not loaded'
  /** How to make it run. */
  readonly hint: string
}

/** The plugins that are not in `loaded`. */
export async function idleOf(
  plugins: readonly LockedPlugin[],
  loaded: readonly { readonly name: string }[],
  config?: string
): Promise<Idle[]> {
  const names = new Set(loaded.map(item => item.name))
  const idle = plugins.filter(plugin => plugin.enabled && !names.has(plugin.name))
  if (idle.length === 0) return []
  // this command does not report problems of the configuration
  const waiting = await findSettings(config === undefined ? {} : { config })
    .then(found => unconfiguredIn('providers', found, setHome()))
    .catch(() => [])
  return idle.map(locked => {
    const hint = waiting.find(item => item.plugin === locked.name)?.hint
    return hint === undefined ? { locked, ...NOT_LOADED } : { locked, health: 'not configured', hint }
  })
}

const NOT_LOADED = {
  health: 'not loaded',
  hint: 'Run svc reload if a server runs, unless svc.config.* has enabled: false for it',
} as const

/** The text for a person: `not configured: write providers: { weather: {} } into svc.config.*`. */
export const idleText = ({ health, hint }: Idle): string => `${health}: ${hint}`
