import { codeOf, type Events, type Log, messageOf, type CallContext } from '@svc/core'
import {
  type McpErrorClass,
  McpToolCalled,
  McpToolCompleted,
  McpToolError,
  type McpToolEvent,
  type ToolResult,
  type ToolStep,
} from '@svc/core/contracts'
import { type StepsEnd, watchedSteps } from '@svc/mcp-protocol'
import type { CallMetrics, CallOf } from './call-metrics.ts'

/** Tells of calls as they happen: on the event bus, in the figures and in the log; of arguments and results nothing. */
export interface Ledger {
  /** The same steps; the call begins with the first `next` and ends with exactly one word, however its reader leaves. */
  keep(call: CallOf, steps: AsyncIterable<ToolStep>, ctx: CallContext): AsyncIterable<ToolStep>
}

/** How a call ended; without a class it was completed. */
interface Ending {
  readonly class?: McpErrorClass
  readonly error?: string
}

/** A reader that leaves before the end no longer wants the call. */
const LEFT: Ending = { class: 'cancelled', error: 'the caller has left' }

/** A call whose steps end without a last word. */
const MUTE: Ending = { class: 'protocol_error', error: 'the call ended without a result' }

export function createLedger(events: Events, metrics: CallMetrics, log: Log): Ledger {
  const tellEnd = (event: McpToolEvent, ending: Ending, ctx: CallContext) => {
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
      'a tool of a connected server was called'
    )
    if (ending.class === undefined) void events.publish(McpToolCompleted, event, ctx)
    else void events.publish(McpToolError, { ...event, error_class: ending.class, error: ending.error ?? '' }, ctx)
  }
  return {
    keep({ server, tool }, steps, ctx) {
      let begun = 0
      const call_id = crypto.randomUUID()
      const now = (duration: number): McpToolEvent => ({
        source: 'mcp',
        tool_name: tool,
        call_id,
        server,
        direction: 'outbound',
        duration,
        timestamp: Date.now(),
      })
      const begin = () => {
        begun = performance.now()
        void events.publish(McpToolCalled, now(0), ctx)
        return steps
      }
      return watchedSteps(begin, end => tellEnd(now((performance.now() - begun) / 1000), endingOf(end, ctx), ctx))
    },
  }
}

function endingOf(end: StepsEnd, ctx: CallContext): Ending {
  if (end === 'left') return LEFT
  if (end === 'mute') return MUTE
  if ('thrown' in end) return failureOf(end.thrown, ctx)
  const { last } = end
  return last.type === 'result' && last.result.isError ? { class: 'tool_error', error: wordsOf(last.result) } : {}
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
  const { class: told } = (error as { details?: { class?: unknown } }).details ?? {}
  if (CLASSES.includes(told as string)) return { class: told as McpErrorClass, error: messageOf(error) }
  if (signal.aborted) return codeOf(error) === 'TIMEOUT' ? { class: 'timeout', error: messageOf(error) } : LEFT
  return { class: 'protocol_error', error: 'the call failed inside this service' }
}

/** A tool's own words are its result: the bus gets that there were some. */
const wordsOf = ({ content }: ToolResult) => `the tool says that it failed (${content.length} parts of content)`
