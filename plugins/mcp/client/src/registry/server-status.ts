import { maskArguments } from '@svc/core'
import type {
  Check,
  McpClients,
  McpErrorClass,
  McpServerInfo,
  McpState,
  McpTool,
  MetricFamily,
  Sample,
} from '@svc/core/contracts'
import { STATES } from '../connection/states.ts'
import { callTimesOf } from './client-options.ts'
import type { Server } from './configured-servers.ts'
import type { ReportedStatus } from './records.ts'

export interface ServerFacts {
  /** As the owner reports it; undefined before the first report. */
  readonly status: ReportedStatus | undefined
  readonly isEnabled: boolean
  readonly tools: readonly McpTool[] | undefined
}

const NEVER_CONNECTED: ReportedStatus = { state: 'disconnected', since: 0, attempts: 0 }

/** The public description of a server, without credentials. */
export function serverInfoOf({ entry }: Server, { status = NEVER_CONNECTED, isEnabled, tools = [] }: ServerFacts): McpServerInfo {
  const named = (standing: McpTool['standing']) => tools.filter(one => one.standing === standing).map(one => one.name)
  const changed = named('changed')
  const location =
    entry.url === undefined
      ? { command: [entry.command ?? '', ...maskArguments(entry.args ?? [], '…')] }
      : { url: publicUrl(entry.url) }
  return {
    ...status,
    name: entry.name,
    ...location,
    ...(isEnabled ? {} : { state: 'disabled' }),
    tools: isEnabled && status.state !== 'quarantined' ? named('good') : [],
    ...(changed.length === 0 ? {} : { changed }),
    effects: entry.effects ?? ['execute', 'network'],
    callLimitMs: callTimesOf(entry).total,
  }
}

/** An address without its query, which can hold a key. */
export function publicUrl(url: string): string {
  const { origin, pathname } = new URL(url)
  return `${origin}${pathname}`
}

const SHOWN = 5
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

function reasonOf(bad: readonly McpServerInfo[]): string {
  const named = bad.slice(0, SHOWN).map(one => `${one.name} is ${one.state}${causeOf(one)}`)
  return `MCP servers: ${named.join(', ')}${bad.length > SHOWN ? ` and ${bad.length - SHOWN} more` : ''}`
}

/** The error class; of a degraded server the message, which names the tools. */
function causeOf({ state, lastError }: McpServerInfo): string {
  if (lastError === undefined) return ''
  return ` (${state === 'degraded' ? lastError.message.slice(0, MAX_LENGTH) : lastError.class})`
}

/** Upper bounds of the buckets, in seconds. */
const BOUNDS = [0.01, 0.05, 0.1, 0.5, 1, 5, 30] as const

interface ServerCounts {
  calls: number
  connections: number
  seconds: number
  readonly buckets: number[]
  readonly errors: Map<McpErrorClass, number>
}

/** Metrics of the servers that this worker owns or has owned. The labels are configured names, so their number is bounded. */
export class ServerMetrics {
  readonly #all = new Map<string, ServerCounts>()

  ended(server: string, error: McpErrorClass | undefined, seconds: number): void {
    const counts = this.#of(server)
    counts.calls += 1
    counts.seconds += seconds
    for (let at = BOUNDS.length - 1; at >= 0 && seconds <= BOUNDS[at]!; at--) counts.buckets[at]! += 1
    if (error) counts.errors.set(error, (counts.errors.get(error) ?? 0) + 1)
  }

  connected(server: string): void {
    this.#of(server).connections += 1
  }

  read(owned: readonly { readonly server: string; readonly state: McpState }[]): readonly MetricFamily[] {
    const all = [...this.#all]
    const each = (value: (counts: ServerCounts) => number): Sample[] =>
      all.map(([server, counts]) => ({ labels: { server }, value: value(counts) }))
    const calls = each(counts => counts.calls)
    const errors = all.flatMap(([server, counts]) =>
      [...counts.errors].map(([kind, value]) => ({ labels: { server, class: kind }, value }))
    )
    const connections = each(counts => counts.connections)
    const seconds = all.flatMap(([server, counts]) => histogram(server, counts))
    const states = owned.map(({ server, state }) => ({ labels: { server, state }, value: 1 }))
    return [
      family('svc_mcp_client_calls_total', 'Calls to MCP servers.', 'counter', calls),
      family('svc_mcp_client_errors_total', 'Failed calls to MCP servers, by class.', 'counter', errors),
      family('svc_mcp_client_connections_total', 'Connections made to MCP servers.', 'counter', connections),
      family('svc_mcp_client_call_seconds', 'Duration of calls to MCP servers in seconds.', 'histogram', seconds),
      family('svc_mcp_client_state', 'State of the connection to an MCP server: 1 for the current one.', 'gauge', states),
    ]
  }

  #of(server: string): ServerCounts {
    const known = this.#all.get(server)
    if (known) return known
    const counts = { calls: 0, connections: 0, seconds: 0, buckets: BOUNDS.map(() => 0), errors: new Map() }
    this.#all.set(server, counts)
    return counts
  }
}

const family = (name: string, help: string, type: MetricFamily['type'], values: readonly Sample[]): MetricFamily => ({
  name,
  help,
  type,
  aggregator: type === 'gauge' ? 'max' : 'sum',
  values,
})

function histogram(server: string, { buckets, calls, seconds }: ServerCounts): Sample[] {
  const bucket = (le: number | string, value: number): Sample => ({
    labels: { le, server },
    value,
    metricName: 'svc_mcp_client_call_seconds_bucket',
  })
  return [
    ...BOUNDS.map((le, at) => bucket(le, buckets[at]!)),
    bucket('+Inf', calls),
    { labels: { server }, value: seconds, metricName: 'svc_mcp_client_call_seconds_sum' },
    { labels: { server }, value: calls, metricName: 'svc_mcp_client_call_seconds_count' },
  ]
}
