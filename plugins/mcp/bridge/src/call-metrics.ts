import type { MetricFamily, Sample } from '@svc/core/contracts'
import { createModelNames } from '@svc/plugin-kit'

/** Which tool of which server is called; `tool` is its name in this service. */
export interface CallOf {
  readonly server: string
  readonly tool: string
}

/** Calls of the tools of connected servers, by server, tool and outcome. */
export interface CallMetrics {
  ended(call: CallOf, outcome: string, seconds: number): void
  read(): readonly MetricFamily[]
}

interface Row {
  readonly labels: { readonly server: string; readonly tool: string; readonly outcome: string }
  calls: number
  seconds: number
}

export function createCallMetrics(): CallMetrics {
  // so many by name, the others of a server together: a server may have a thousand tools
  const nameOf = createModelNames()
  const rows = new Map<string, Row>()
  return {
    ended({ server, tool }, outcome, seconds) {
      const { model } = nameOf({ provider: server, model: tool })
      const key = `${server}\n${model}\n${outcome}`
      const row = rows.get(key) ?? { labels: { server, tool: model, outcome }, calls: 0, seconds: 0 }
      row.calls += 1
      row.seconds += seconds
      rows.set(key, row)
    },
    read: () => [
      family('svc_mcp_tool_calls_total', 'Calls of tools of connected servers, by how they ended.', rows, row => row.calls),
      family('svc_mcp_tool_seconds_total', 'Seconds that these calls took.', rows, row => row.seconds),
    ],
  }
}

const family = (name: string, help: string, rows: ReadonlyMap<string, Row>, value: (row: Row) => number): MetricFamily => ({
  name,
  help,
  type: 'counter',
  aggregator: 'sum',
  values: [...rows.values()].map((row): Sample => ({ labels: row.labels, value: value(row) })),
})
