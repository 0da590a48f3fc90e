import { type SvcError, svcError } from '@svc/core'
import type { McpErrorClass, McpFailure } from '@svc/core/contracts'
import { stripResult } from '@svc/plugin-kit'

/** What is known of a failure besides its class. */
export interface FailureFacts {
  /** Whether the server may have got it: `no` is certain. */
  readonly delivered?: 'no' | 'maybe' | 'yes'
  /** JSON-RPC's code, where the server answered with an error. */
  readonly rpcCode?: number
  readonly cause?: unknown
}

const HINTS: Readonly<Record<McpErrorClass, string>> = {
  connection_refused: 'see whether the server runs: svc mcp test <name>',
  authentication_failed: 'check the key, or log in: svc mcp login <name>',
  tool_not_found: 'see what it has: svc mcp tools <name>',
  timeout: 'give it more time (timeout), or ask for less',
  tool_error: 'fix what the tool says, and call it again',
  protocol_error: 'the server does not keep to the protocol: svc mcp test <name> tells more',
  cancelled: 'call it again',
}
const RETRYABLE: ReadonlySet<McpErrorClass> = new Set(['connection_refused', 'timeout'])

/** An error MCP_CALL_FAILED. What is `said` must be free of credentials and of paths of this machine; hidden characters in it are taken out. */
export function callFailed(server: string, kind: McpErrorClass, said: string, facts: FailureFacts = {}): SvcError {
  const { delivered = 'maybe', rpcCode, cause } = facts
  const { text: message } = stripResult(said)
  return svcError('MCP_CALL_FAILED', `${server}: ${message}`, {
    details: {
      server,
      class: kind,
      message,
      retryable: RETRYABLE.has(kind),
      delivered,
      ...(rpcCode !== undefined && { rpcCode }),
    },
    hint: HINTS[kind].replace('<name>', server),
    cause,
  })
}

/** Class and words of an error that `callFailed` made; of any other, `protocol_error`. */
export function failureOf(error: unknown): McpFailure {
  const details = (error as { details?: { class?: McpErrorClass; message?: string } } | undefined)?.details
  if (details?.class !== undefined && details.message !== undefined) return { class: details.class, message: details.message }
  return { class: 'protocol_error', message: error instanceof Error ? error.message : String(error) }
}
