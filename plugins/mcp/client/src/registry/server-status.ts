import { maskArguments } from '@svc/core'
import type { Check, McpClients, McpErrorClass, McpServerInfo, McpState, McpTool, MetricFamily } from '@svc/core/contracts'
import { counter, createDistribution, type Distribution, histogram, metricFamily, shortList } from '@svc/plugin-kit'
import { STATES } from '../connection/states.ts'
import { callTimesOf, placementOf } from './client-options.ts'
import { isRemovable, type McpServerSettings } from './configured-servers.ts'
import type { ReportedStatus } from './records.ts'
import type { ServerRegistry } from './server-registry.ts'
import type { McpClientConfig } from './settings.ts'

const NEVER_CONNECTED: ReportedStatus = { state: 'disconnected', since: 0, attempts: 0 }

/** The public description of a server as far as the registry knows it, without credentials. */
export function serverInfoOf(server: McpServerSettings, registry?: ServerRegistry): McpServerInfo {
  const { entry } = server
  const status = registry?.state(server)?.status ?? NEVER_CONNECTED
  const isEnabled = registry?.isEnabled(server) ?? entry.enabled ?? true
  const tools = registry?.tools(server) ?? []
  const named = (wanted: McpTool['status']) => tools.filter(one => one.status === wanted).map(one => one.name)
  const changed = named('changed')
  return {
    ...status,
    name: entry.name,
    ...locationOf(entry),
    ...(isEnabled ? {} : { state: 'disabled' }),
    tools: isEnabled && status.state !== 'quarantined' ? named('good') : [],
    ...(changed.length === 0 ? {} : { changed }),
    effects: entry.effects ?? ['execute', 'network'],
    callLimitMs: callTimesOf(entry).total,
    runs: placementOf(entry),
    workplace: entry.workplace ?? entry.url === undefined,
    removable: isRemovable(server),
  }
}

const locationOf = ({ url, command = '', args = [] }: McpClientConfig) =>
  url === undefined ? { command: [command, ...maskArguments(args, '…')] } : { url: publicUrl(url) }

/** An address without its query, which can hold a key. */
export function publicUrl(url: string): string {
  const { origin, pathname } = new URL(url)
  return `${origin}${pathname}`
}

const MAX_LENGTH = 200

/** Healthy while no enabled server needs attention. Reads the last reports; sends nothing to the servers. */
export const createHealth = (clients: Pick<McpClients, 'list'>): Check => ({
  async probe(ctx) {
    const all = await clients.list(ctx)
    const bad = all.filter(one => STATES[one.state].needsAttention)
    const detail = { servers: Object.fromEntries(all.map(({ name, state }) => [name, state])) }
    return bad.length === 0 ? { status: 'healthy', detail } : { status: 'degraded', reason: reasonOf(bad), detail }
  },
})

const reasonOf = (bad: readonly McpServerInfo[]): string =>
  `MCP servers: ${shortList(bad.map(one => `${one.name} is ${one.state}${causeOf(one)}`))}`

/** The error class; of a degraded server the message, which names the tools. */
function causeOf({ state, lastError }: McpServerInfo): string {
  if (lastError === undefined) return ''
  return ` (${state === 'degraded' ? lastError.message.slice(0, MAX_LENGTH) : lastError.class})`
}

/** Upper bounds of the buckets, in seconds. */
const BOUNDS = [0.01, 0.05, 0.1, 0.5, 1, 5, 30] as const

const STATE_HELP = 'State of the connection to an MCP server: 1 for the current one.'

interface ServerCounts {
  connections: number
  readonly seconds: Distribution
  readonly errors: Map<McpErrorClass, number>
}

/** Metrics of the servers that this worker owns or has owned. The labels are configured names, so their number is bounded. */
export class McpServerMetrics {
  readonly #all = new Map<string, ServerCounts>()

  ended(server: string, error: McpErrorClass | undefined, duration: number): void {
    const { seconds, errors } = this.#of(server)
    seconds.add(duration)
    if (error) errors.set(error, (errors.get(error) ?? 0) + 1)
  }

  connected(server: string): void {
    this.#of(server).connections += 1
  }

  read(owned: readonly { readonly server: string; readonly state: McpState }[]): readonly MetricFamily[] {
    const all = [...this.#all].map(([server, counts]) => ({ labels: { server }, ...counts }))
    const errors = all.flatMap(one => [...one.errors].map(([kind, value]) => ({ labels: { ...one.labels, class: kind }, value })))
    const samples = (read: (counts: ServerCounts) => number) => all.map(one => ({ labels: one.labels, value: read(one) }))
    const seconds = all.map(one => [one.labels, one.seconds] as const)
    const states = owned.map(labels => ({ labels, value: 1 }))
    return [
      counter(
        'svc_mcp_client_calls_total',
        'Calls to MCP servers.',
        samples(one => one.seconds.count)
      ),
      counter('svc_mcp_client_errors_total', 'Failed calls to MCP servers, by class.', errors),
      counter(
        'svc_mcp_client_connections_total',
        'Connections made to MCP servers.',
        samples(one => one.connections)
      ),
      histogram('svc_mcp_client_call_seconds', 'Duration of calls to MCP servers in seconds.', seconds),
      metricFamily('gauge', 'svc_mcp_client_state', STATE_HELP, states, 'max'),
    ]
  }

  #of(server: string): ServerCounts {
    const counts = this.#all.get(server) ?? { connections: 0, seconds: createDistribution(BOUNDS), errors: new Map() }
    this.#all.set(server, counts)
    return counts
  }
}
