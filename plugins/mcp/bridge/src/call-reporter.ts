import { codeOf, type Events, type Log, messageOf, type CallContext } from '@svc/core'
import {
  type McpErrorClass,
  McpToolCalled,
  McpToolCompleted,
  McpToolError,
  type McpToolEvent,
  type MetricFamily,
  type Sample,
  type ToolResult,
  type ToolStep,
} from '@svc/core/contracts'
import { type StepsEnd, watchedSteps } from '@svc/mcp-protocol'
import { createModelNames } from '@svc/plugin-kit'

/** Reports calls on the event bus, in the metrics and in the log, without arguments and results. */
export interface CallReporter {
  /** Returns the same steps. The first `next` reports the begin of the call, and exactly one report follows at its end. */
  report(call: CallOf, steps: AsyncIterable<ToolStep>, ctx: CallContext): AsyncIterable<ToolStep>
}

/** How a call ended. A call without a class is completed. */
interface Ending {
  readonly class?: McpErrorClass
  readonly error?: string
}

const ABANDONED: Ending = { class: 'cancelled', error: 'the caller cancelled the call' }

const INCOMPLETE: Ending = { class: 'protocol_error', error: 'the call ended without a result' }

export function createCallReporter(events: Events, metrics: CallMetrics, log: Log): CallReporter {
  const reportEnd = (event: McpToolEvent, ending: Ending, ctx: CallContext) => {
    const { server, tool_name: tool, call_id, duration } = event
    const outcome = ending.class ?? 'completed'
    metrics.ended({ server, tool }, outcome, duration)
    log.info(
      {
        server,
        tool,
        call_id,
        outcome,
        duration_ms: Math.round(duration * 1000),
        principal: ctx.principal.id,
        request_id: ctx.requestId,
      },
      'called a tool of an MCP server'
    )
    if (ending.class === undefined) void events.publish(McpToolCompleted, event, ctx)
    else void events.publish(McpToolError, { ...event, error_class: ending.class, error: ending.error ?? '' }, ctx)
  }
  return {
    report({ server, tool }, steps, ctx) {
      let startedAt = 0
      const call_id = crypto.randomUUID()
      const eventAfter = (duration: number): McpToolEvent => ({
        source: 'mcp',
        tool_name: tool,
        call_id,
        server,
        direction: 'outbound',
        duration,
        timestamp: Date.now(),
      })
      const begin = () => {
        startedAt = performance.now()
        void events.publish(McpToolCalled, eventAfter(0), ctx)
        return steps
      }
      return watchedSteps(begin, end => reportEnd(eventAfter((performance.now() - startedAt) / 1000), endingOf(end, ctx), ctx))
    },
  }
}

function endingOf(end: StepsEnd, ctx: CallContext): Ending {
  if (end === 'abandoned') return ABANDONED
  if (end === 'incomplete') return INCOMPLETE
  if ('thrown' in end) return failureOf(end.thrown, ctx)
  const { last } = end
  return last.type === 'result' && last.result.isError ? { class: 'tool_error', error: describeFailure(last.result) } : {}
}

const CLASSES: readonly string[] = [
  'connection_refused',
  'authentication_failed',
  'tool_not_found',
  'timeout',
  'tool_error',
  'protocol_error',
  'cancelled',
] satisfies McpErrorClass[]

function failureOf(error: unknown, { signal }: CallContext): Ending {
  const { class: errorClass } = (error as { details?: { class?: unknown } }).details ?? {}
  if (CLASSES.includes(errorClass as string)) return { class: errorClass as McpErrorClass, error: messageOf(error) }
  if (signal.aborted) return codeOf(error) === 'TIMEOUT' ? { class: 'timeout', error: messageOf(error) } : ABANDONED
  return { class: 'protocol_error', error: 'the call failed in svc' }
}

/** The text of a failed call is its result. Events must not contain it. */
const describeFailure = ({ content }: ToolResult) => `the tool reported a failure (${content.length} parts of content)`

/** The tool and its server. `tool` is the name in this service. */
interface CallOf {
  readonly server: string
  readonly tool: string
}

/** Counts calls by server, tool and outcome. */
interface CallMetrics {
  ended(call: CallOf, outcome: string, seconds: number): void
  read(): readonly MetricFamily[]
}

interface Row {
  readonly labels: { readonly server: string; readonly tool: string; readonly outcome: string }
  calls: number
  seconds: number
}

export function createCallMetrics(): CallMetrics {
  // a server can have a thousand tools: only the first ones get a name of their own
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
      family('svc_mcp_tool_calls_total', 'Calls of tools of connected servers, by outcome.', rows, row => row.calls),
      family('svc_mcp_tool_seconds_total', 'Duration of these calls in seconds.', rows, row => row.seconds),
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
