import { findSettings, here, setHome } from '@svc/cli/program'
import { unconfiguredIn } from '../../set/installed-layer.ts'
import { type PluginReport, systemContext } from '@svc/core'
import type { PluginDetail } from '@svc/core/contracts'
import { findServers, type FoundServer, type ServerInfo } from '@svc/runtime'
import type { LockedPlugin } from '../../set.ts'
import { TOPIC } from '../../plugin-set.ts'

/** Plugins of a server. */
export interface ServerPlugins {
  readonly plugins: readonly PluginReport[]
  /** The time of the state of isolated plugins, in ISO 8601; absent if it is current. */
  readonly asOf?: string
}

/**
 * The present state of isolated plugins: the report of the host, updated with what the server says now. If it does not answer, the
 * report and its time.
 */
export async function asTheyAre(plugins: readonly PluginReport[], { control, info }: FoundServer): Promise<ServerPlugins> {
  if (!plugins.some(plugin => plugin.isolation === 'process')) return { plugins }
  const ready = info.workers.filter(worker => worker.state === 'ready')
  // the report is the last known state of a server that no longer answers
  const now = await pluginsOf(control).catch(() => undefined)
  return now === undefined ? { plugins, asOf: timeOf(ready, info) } : { plugins: plugins.map(plugin => live(plugin, now)) }
}

/** The plugins of a server over all its workers. Throws PEER_SILENT if it does not load this plugin. */
export async function pluginsOf(control: FoundServer['control']): Promise<readonly PluginDetail[]> {
  for await (const answer of control.ask(TOPIC, null, systemContext(AbortSignal.timeout(ASK_MS), 'svc plugins')))
    return answer as readonly PluginDetail[]
  throw new Error('the server did not answer')
}

/** A host reports the state of its plugins once, when it is ready. */
const timeOf = (workers: ServerInfo['workers'], { startedAt }: ServerInfo) =>
  new Date(Math.min(...workers.map(worker => worker.startedAt), workers.length === 0 ? startedAt : Infinity)).toISOString()

/** A hint for outdated states. */
export const OUTDATED_STATE = 'the server does not answer, or does not load the plugin @svc/plugin-manager'

function live(plugin: PluginReport, now: readonly PluginDetail[]): PluginReport {
  const found = now.find(({ name }) => name === plugin.name)
  const { state, refusals, process } = found?.instances.find(({ name }) => name === plugin.instance) ?? found ?? {}
  if (state === undefined || process === undefined || state === 'disabled' || state === 'idle') return plugin
  const { restarts, cpu_ms: cpuMs, memory_bytes: memoryBytes } = process
  return { ...plugin, state, restarts, refusals: refusals ?? {}, cpuMs, memoryBytes }
}

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

async function reportOf(server: FoundServer, isMeant: (plugin: PluginReport) => boolean): Promise<ServerPlugins> {
  const { plugins } = await server.control.report(systemContext(AbortSignal.timeout(ASK_MS)))
  return asTheyAre(plugins.filter(isMeant), server)
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
