import type { McpErrorClass, McpState, MetricFamily, Sample } from '@svc/core/contracts'

/** What is counted of the servers that this worker owns, or has owned. */
export interface Figures {
  ended(server: string, outcome: McpErrorClass | undefined, seconds: number): void
  connected(server: string): void
  read(owned: readonly { readonly server: string; readonly state: McpState }[]): readonly MetricFamily[]
}

/** Seconds. */
const BOUNDS = [0.01, 0.05, 0.1, 0.5, 1, 5, 30] as const

interface Count {
  calls: number
  connections: number
  seconds: number
  readonly buckets: number[]
  readonly errors: Map<McpErrorClass, number>
}

/** Counts by server: names that the configuration has, so there are never more. */
export function createFigures(): Figures {
  const all = new Map<string, Count>()
  const of = (server: string): Count => {
    const one = all.get(server) ?? { calls: 0, connections: 0, seconds: 0, buckets: BOUNDS.map(() => 0), errors: new Map() }
    all.set(server, one)
    return one
  }
  return {
    ended(server, outcome, seconds) {
      const one = of(server)
      one.calls += 1
      one.seconds += seconds
      for (let at = BOUNDS.length - 1; at >= 0 && seconds <= BOUNDS[at]!; at--) one.buckets[at]! += 1
      if (outcome) one.errors.set(outcome, (one.errors.get(outcome) ?? 0) + 1)
    },
    connected(server) {
      of(server).connections += 1
    },
    read: owned => [
      family(
        'svc_mcp_client_calls_total',
        'Calls to tool servers.',
        'counter',
        samples(all, one => one.calls)
      ),
      family('svc_mcp_client_errors_total', 'Calls to tool servers that failed, by class.', 'counter', errorsOf(all)),
      family(
        'svc_mcp_client_connections_total',
        'Connections made to tool servers.',
        'counter',
        samples(all, one => one.connections)
      ),
      family('svc_mcp_client_call_seconds', 'Seconds of calls to tool servers.', 'histogram', secondsOf(all)),
      family('svc_mcp_client_state', 'How the connection to a tool server stands: 1 for its state.', 'gauge', statesOf(owned)),
    ],
  }
}

type Counts = ReadonlyMap<string, Count>

const family = (name: string, help: string, type: MetricFamily['type'], values: readonly Sample[]): MetricFamily => ({
  name,
  help,
  type,
  aggregator: type === 'gauge' ? 'max' : 'sum',
  values,
})

const samples = (all: Counts, value: (one: Count) => number): Sample[] =>
  [...all].map(([server, one]) => ({ labels: { server }, value: value(one) }))

const errorsOf = (all: Counts): Sample[] =>
  [...all].flatMap(([server, { errors }]) => [...errors].map(([kind, value]) => ({ labels: { server, class: kind }, value })))

const statesOf = (owned: readonly { readonly server: string; readonly state: McpState }[]): Sample[] =>
  owned.map(({ server, state }) => ({ labels: { server, state }, value: 1 }))

const secondsOf = (all: Counts): Sample[] =>
  [...all].flatMap(([server, one]) => [
    ...BOUNDS.map((le, at) => bucket(server, le, one.buckets[at]!)),
    bucket(server, '+Inf', one.calls),
    { labels: { server }, value: one.seconds, metricName: 'svc_mcp_client_call_seconds_sum' },
    { labels: { server }, value: one.calls, metricName: 'svc_mcp_client_call_seconds_count' },
  ])

const bucket = (server: string, le: number | string, value: number): Sample => ({
  labels: { le, server },
  value,
  metricName: 'svc_mcp_client_call_seconds_bucket',
})
