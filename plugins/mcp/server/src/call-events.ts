import { codeOf, type Events, type Use } from '@svc/core'
import { type McpErrorClass, McpToolCalled, McpToolCompleted, McpToolError, type McpToolEvent } from '@svc/core/contracts'
import { failureOf } from '@svc/mcp-protocol'
import type { CallEnd } from './call.ts'
import type { PublishedTool } from './catalogue.ts'

/** How a call ended: with an end, or with what was thrown. */
export type CallOutcome = { readonly end: CallEnd } | { readonly thrown: unknown }

interface Failure {
  readonly error_class: McpErrorClass
  readonly error: string
}

/** Tells the bus that a call begins, and answers what tells its end. Neither arguments nor results are told, so none of the tool's own words. */
export function tellCall(events: Events, { name, set }: PublishedTool, use: Use): (outcome: CallOutcome) => void {
  const begun = performance.now()
  const call_id = crypto.randomUUID()
  const data = (duration: number): McpToolEvent => ({
    source: 'mcp',
    tool_name: name,
    server: set,
    direction: 'inbound',
    call_id,
    duration,
    timestamp: Date.now(),
  })
  void events.publish(McpToolCalled, data(0), use)
  return outcome => {
    const failure = failureIn(outcome, use)
    const told = data((performance.now() - begun) / 1000)
    if (failure) void events.publish(McpToolError, { ...told, ...failure }, use)
    else void events.publish(McpToolCompleted, told, use)
  }
}

const failed = (error: string, error_class: McpErrorClass = 'tool_error'): Failure => ({ error_class, error })

function failureIn(outcome: CallOutcome, { signal }: Use): Failure | undefined {
  if ('thrown' in outcome)
    return signal.aborted ? failed('its caller left, or cancelled it', 'cancelled') : failureOfThrown(outcome.thrown)
  const { end } = outcome
  if (end.type === 'input' || end.result.isError !== true) return undefined
  return end.thrown === undefined ? failed('the tool says that it failed') : failureOfThrown(end.thrown)
}

function failureOfThrown(thrown: unknown): Failure {
  const code = codeOf(thrown)
  if (code === 'MCP_CALL_FAILED') {
    const { class: error_class, message } = failureOf(thrown)
    return failed(message, error_class)
  }
  if (code === 'TIMEOUT') return failed('it took too long', 'timeout')
  if (code === 'INVALID_VALUE') return failed('the arguments break its schema')
  return failed(code === 'RATE_LIMITED' ? 'too many calls wait already' : 'the tool failed')
}
