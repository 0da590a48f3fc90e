import { svcError } from '@svc/core'

export const toolUnknown = (name: string) => svcError('TOOL_NOT_FOUND', `there is no tool "${name.slice(0, 100)}"`)

/** What callers of a tool are told that its server has changed. */
export const withheldWords = (name: string, server: string) =>
  `the tool "${name}" has changed and is out of use until somebody approves it: svc mcp approve ${server}`

export const toolWithheld = (name: string, server: string) =>
  svcError('TOOL_NOT_FOUND', withheldWords(name, server), {
    details: { tool: name, server, reason: 'changed' },
    hint: `see what is new with svc mcp tools ${server}, and approve it with svc mcp approve ${server}`,
  })

/** The arguments of a call break the schema of the tool; `field` is the place of the first fault (`arguments.path`). */
export const argumentsInvalid = (message: string, field: string, reason: string) =>
  svcError('INVALID_VALUE', message, { details: { field, reason }, hint: 'fix the arguments and call again' })

export const toolBroken = (name: string, cause: unknown) =>
  svcError('TOOL_EXECUTION_FAILED', `the tool "${name}" cannot be called: its parameters are no JSON Schema`, {
    cause,
    details: { tool: name, reason: 'broken schema' },
  })

export const callLate = (name: string, limitMs: number) =>
  svcError('TIMEOUT', `the tool "${name}" did not end within ${limitMs / 1000} s`, {
    details: { tool: name, timeout_ms: limitMs },
  })

const RETRY_SECONDS = 1

/** So many calls wait for a place already. */
export const callsWaiting = (limit: number) =>
  svcError('RATE_LIMITED', `${limit} calls wait for their turn already; try again`, {
    details: { limit, window: 0, retry_after: RETRY_SECONDS },
  })

export const parameterMismatch = (header: string, path: readonly string[], what: string) =>
  svcError('MCP_HEADER_MISMATCH', `the header ${header}, which repeats arguments.${path.join('.')}, ${what}`, {
    details: { header, field: `arguments.${path.join('.')}` },
  })

/** The tool says that it failed; `content` is what it answered. */
export const toolFailed = (name: string, reason: string, content: readonly unknown[]) =>
  svcError('TOOL_EXECUTION_FAILED', `the tool "${name}" failed: ${reason}`, { details: { tool: name, reason, content } })

/** The tool, or the server behind it, found that it took too long. */
export const toolLate = (name: string, message: string) => svcError('TIMEOUT', message, { details: { tool: name } })

/** The server behind a tool did not do its part. */
export const upstreamFailed = (message: string, server: string, retryable: boolean) =>
  svcError('PROVIDER_ERROR', message, { details: { server, retryable } })
