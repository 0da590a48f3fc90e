import { type SvcError, svcError } from '@svc/core'
import { callFailed } from '@svc/mcp-protocol'

const quoted = (names: readonly string[]) => names.map(name => `"${name}"`).join(', ')

export const callerCannotAnswer = (tool: string, asked: readonly string[]): SvcError =>
  svcError('TOOL_NEEDS_ANSWER', `the tool "${tool}" asks the user for input (${quoted(asked)}), but this caller cannot answer`, {
    details: { tool, asked },
    hint: 'Call the tool from an MCP client that can answer requests',
  })

export const noResult = (tool: string, server: string): SvcError =>
  callFailed(server, 'protocol_error', `the call of "${tool}" ended without a result`)

export const nameClash = (name: string, server: string, cause: unknown): SvcError =>
  svcError('MCP_NAME_CLASH', `cannot add the tool "${name}" of the MCP server "${server}": another tool has this name`, {
    details: { name, server },
    hint: 'Rename the server, or add the tool to "deny" in its entry of mcp.clients',
    cause,
  })
